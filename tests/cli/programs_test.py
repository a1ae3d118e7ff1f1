#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs as trials, as a user starts them: programs_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import os
import signal
import subprocess
import time
import unittest

from cli_test import PROGRAM, TIMEOUT, Case, environment, sys

STUDY = """[study]
name = "programs"
metric = "score"
mode = "max"
num_trials = 2
max_iterations = 9
seed = 1
[trainable]
command = "{command}"
[resources]
ranks = 2
[space]
x = "uniform(0, 1)"
[run]
abort_grace = "2s"
"""
REPORT = """#!/bin/sh
report() { echo "{\\"report\\": {\\"score\\": 1}}" >&"$RANKTUNE_FD"; read -r answer <&"$RANKTUNE_FD"; }
"""


class Programs(Case):
    def script(self, path, text):
        path = self.cwd / path
        path.parent.mkdir(exist_ok=True)
        path.write_text(REPORT + text)
        path.chmod(0o755)

    def test_what_comes_first_in_the_users_path_is_what_a_trial_runs(self):
        """A virtual environment that is activated when the study is started, under the launcher of a --local run."""
        self.script("venv/python3", 'echo "mine, $1"; report\n')
        self.write("programs.toml", STUDY.format(command="python3 {x}"))
        out, _ = self.ranktune("run", "programs.toml", "--local", "2", PATH=f"{self.cwd}/venv:{os.environ['PATH']}",
                               LD_LIBRARY_PATH="/mine")
        self.assertIn("2 trials, 2 ok", out)
        self.assertEqual(self.log().count("| mine, 0."), 4, self.log())

    def log(self):
        return "".join(path.read_text() for path in (self.cwd / "programs" / "logs").glob("workers-*.log"))

    def test_a_stop_does_not_wait_for_ever_for_a_program_that_hangs(self):
        self.script("train.sh", '[ "$RANK" = 0 ] && report; echo hanging; trap "" TERM; while :; do sleep 1; done\n')
        self.write("programs.toml", STUDY.format(command="./train.sh"))
        process = subprocess.Popen([PROGRAM, "run", "programs.toml", "--local", "2"], cwd=self.cwd, env=environment(),
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.kill)
        end = time.monotonic() + TIMEOUT
        while not (self.cwd / "programs" / "logs").is_dir() or self.log().count("| hanging") < 2:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 75, output)
        self.assertIn("waiting for #0, rank 0 (report 2), rank 1 (report 1)", self.log())
        # It goes on later: nothing is held against it.
        self.script("train.sh", "report\n")
        out, _ = self.ranktune("run", "programs.toml", "--local", "2")
        self.assertIn("2 trials, 2 ok", out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
