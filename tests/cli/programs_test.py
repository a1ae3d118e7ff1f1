#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs as trials, as a user starts them: programs_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import os
import signal
import subprocess
import textwrap
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
SAVING = """[study]
name = "saving"
metric = "loss"
mode = "min"
num_trials = {trials}
max_iterations = 9
seed = 1
[trainable]
command = "{python} train.py"
[searcher]
type = "random"
[scheduler]
type = "asha"
[space]
x = "uniform(0, 1)"
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

    def test_a_program_that_reports_another_metric_is_mended_and_goes_on(self):
        """Exit code 2 after the first report; of the study and the program, what is wrong decides the way on."""
        other = 'echo "{\\"report\\": {\\"scroe\\": 1}}" >&"$RANKTUNE_FD"; read -r answer <&"$RANKTUNE_FD"\n'
        self.script("train.sh", other)
        self.write("programs.toml", STUDY.format(command="./train.sh").replace("= 9", "= 1").replace("ranks = 2", "ranks = 1"))
        run = ["run", "programs.toml", "--local", "2"]
        out, _ = self.ranktune_ends(*run, code=2)
        self.assertIn("lacks the study's metric 'score'; it has scroe", " ".join(out.split()))
        self.assertRegex(out, r"next +ranktune run programs.toml --fresh +# when the study file is mended\n"
                         r" +ranktune run programs.toml --restart-errored\s+# when the program is mended\n")
        out, _ = self.ranktune_ends(*run, "--restart-errored", code=2)  # nothing was mended
        self.assertIn("lacks the study's metric 'score'; it has scroe", " ".join(out.split()))
        self.assertNotIn("1 ok", out)
        self.script("train.sh", "report\n")
        out, _ = self.ranktune_ends(*run, code=2)
        self.assertIn("nothing was started", out)
        self.assertRegex(out, r"--restart-errored\s+# when the program is mended")
        out, _ = self.ranktune(*run, "--restart-errored")
        self.assertIn("2 trials, 2 ok, 0 failed", out)
        # Or the study file was wrong, and the program is as it should be.
        self.script("train.sh", other)
        self.assertIn("began with another study file; nothing was started",
                      self.ranktune(*run, "study.metric=scroe", code=2)[1])
        out, _ = self.ranktune(*run, "study.metric=scroe", "--fresh")
        self.assertIn("2 trials, 2 ok, 0 failed", out)

    def test_a_study_without_a_finite_value_says_why_there_is_no_best_trial(self):
        self.script("train.sh", 'echo "{\\"report\\": {\\"score\\": NaN}}" >&"$RANKTUNE_FD"\n')
        self.write("programs.toml", STUDY.format(command="./train.sh").replace("= 9", "= 1").replace("ranks = 2", "ranks = 1"))
        run = ["run", "programs.toml", "--local", "2"]
        for headline in ("2 trials, 2 ok, 0 failed", "programs is finished (2 trials, exit 4)"):
            out, _ = self.ranktune_ends(*run, code=4)
            self.assertIn(headline, out)
            self.assertIn("score was never finite", out)
            self.assertRegex(out, r"next +ranktune logs programs 0 +# what one of the trials said\n")
            self.assertNotIn("num_trials", out)
            self.assertIn("ranktune run programs.toml --fresh", out)
        trials, _ = self.ranktune("export", "programs", "--format", "csv")
        self.assertRegex(trials, r"(?m)^0,finished,[^,]*,1,,,nan,")

    def program(self, text):
        self.write("train.py", textwrap.dedent(text))

    def test_trials_that_save_to_one_file_end_the_study_and_go_on_in_folders_of_their_own(self):
        """Each waits with its first report until another one has saved, too: both run at the same time."""
        self.program("""
            import glob, json, os, time, ranktune
            here, config = ranktune.context(), ranktune.config()
            if ranktune.checkpoint():
                state = json.load(open(ranktune.checkpoint()))
                open("{HOME}/resumed", "a").write(f"{here.trial}: state of {state['trial']} after {state['epoch']} of {here.iteration}\\n")
            for epoch in range(here.iteration, here.iterations):
                json.dump({"trial": here.trial, "epoch": epoch + 1}, open("state.json", "w"))
                open(f"{HOME}/saved.{here.trial}", "w").close()
                while here.trial < 2 and len(glob.glob("{HOME}/saved.*")) < 2: time.sleep(0.01)
                ranktune.report(loss=config.x + 1 / (epoch + 1), checkpoint="state.json")
        """.replace("{HOME}", str(self.cwd)))
        self.write("saving.toml", SAVING.format(trials=6, python=sys.executable))
        run = ["run", "saving.toml", "--local", "2"]
        out, _ = self.ranktune_ends(*run, code=2)
        self.assertRegex(" ".join(out.split()), "trials #[01] and #[01] run side by side and name the same checkpoint, "
                         f"'{self.cwd.resolve()}/state.json': each may get the state of the other")
        self.assertIn('cwd = "trial"', out)
        self.assertIn("run side by side and name the same checkpoint", " ".join(self.ranktune("status", "saving")[0].split()))
        self.assertNotIn("another variant", out)
        self.assertIn("goes on, when each trial saves to a place of its own", " ".join(out.split()))
        text = (self.cwd / "saving.toml").read_text()
        (self.cwd / "saving.toml").write_text(text.replace("[searcher]", 'cwd = "trial"\n[searcher]'))
        out, _ = self.ranktune(*run)
        self.assertIn("6 trials, 6 ok, 0 failed", out)
        resumed = (self.cwd / "resumed").read_text()
        self.assertRegex(resumed, r"^((\d+): state of \2 after (\d+) of \3\n)+$")
        self.assertTrue((self.cwd / "saving" / "trials" / "5" / "state.json").exists())

    def test_why_a_state_was_not_saved_is_on_the_screen(self):
        for body, why in (('raise ValueError("cannot pickle the optimizer")', "ValueError: cannot pickle the optimizer (train.py:5)"),
                          ("sys.exit(0)", "SystemExit: 0 (train.py:5)"),
                          ("pass", "saved nothing in"), ("return '/no/such'", "it returned '/no/such'"),
                          ("return '..'", "is no file or folder of its own")):
            self.program(f"""
                import sys, ranktune
                here = ranktune.context()
                def save(folder):
                    {body}
                for _ in range(here.iteration, here.iterations): ranktune.report(loss=1.0, checkpoint=save)
            """)
            self.write("saving.toml", SAVING.format(trials=2, python=sys.executable))
            done = subprocess.run([PROGRAM, "run", "saving.toml", "--local", "2", "--fresh"], cwd=self.cwd, env=environment(),
                                  timeout=TIMEOUT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            out = " ".join(done.stdout.split())
            self.assertRegex(out, r"while saving at iteration \d+: ")
            self.assertIn(why, out)
            status = " ".join(self.ranktune("status", "saving")[0].split())
            self.assertIn(why, status)

    def test_an_exception_is_on_the_screen_with_iteration_and_line(self):
        self.program("""
            import ranktune
            ranktune.report(loss=1.0)
            raise KeyError("labels")
        """)
        self.write("saving.toml", SAVING.format(trials=2, python=sys.executable).replace('"asha"', '"fifo"'))
        done = subprocess.run([PROGRAM, "run", "saving.toml", "--local", "2"], cwd=self.cwd, env=environment(), timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertIn("at iteration 2: KeyError: 'labels' (train.py:4)", " ".join(done.stdout.split()))

    def test_whatever_a_save_function_returns_the_state_counts(self):
        self.program("""
            import pathlib, ranktune
            here = ranktune.context()
            if ranktune.checkpoint(): assert (pathlib.Path(ranktune.checkpoint()) / "m").read_text() == str(here.iteration)
            def save(folder):
                path = pathlib.Path(folder) / "m"
                values = (path.write_text(str(epoch + 1)), [str(path)], True, "done", b"m", None, object())
                return values[here.trial % len(values)]
            for epoch in range(here.iteration, here.iterations): ranktune.report(loss=1 / (epoch + here.trial + 1), checkpoint=save)
        """)
        self.write("saving.toml", SAVING.format(trials=14, python=sys.executable))
        self.assertIn("14 trials, 14 ok, 0 failed", self.ranktune("run", "saving.toml", "--local", "2")[0])

    def ranktune_ends(self, *arguments, code):
        """As `ranktune`, for a study that ends with 2 or 4 after it has begun: then its screen says what is wrong."""
        done = subprocess.run([PROGRAM, *arguments], cwd=self.cwd, env=environment(), timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
