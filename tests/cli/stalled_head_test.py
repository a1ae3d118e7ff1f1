#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A head that is held up, and one that is told to end at once: stalled_head_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import os
import signal
import subprocess
import unittest

from cli_test import PROGRAM, environment, sys
import supervise_test
from supervise_test import MPIRUN, open_mpi

TIMEOUT = '\n[run]\nheartbeat_timeout = "4s"'


class StalledHead(supervise_test.Supervise):
    def check_comes_back(self, *command):
        """The head stalls for longer than the time-out of its worker: it leaves, and everything starts again. (With two, the head may
        be awake before the second has left, and goes on with that one.)"""
        self.study(seconds=0.2, more=TIMEOUT)
        process = self.supervise(*command)
        os.kill(self.ranks()[0], signal.SIGSTOP)  # what mpirun does to its ranks in the end, makes it go on
        out = self.finish(process)
        self.assertEqual(out.count("starting the study again"), 1, out)
        self.assertRegex(out, "the head was held up for [0-9]+ s: its workers heard nothing of it for 4 s|"
                              "workers heard nothing of the head for")
        self.assertNotRegex(out, "asked to stop|: SIGTERM\n")  # nobody has asked for anything
        self.assertNotIn("death=yes", (self.cwd / "long" / "logs" / "start-2.log").read_text())
        self.assertEqual({k: self.outcome("long")[k] for k in ("exit", "start", "cause")},
                         {"exit": "0", "start": "2", "cause": "over"})
        self.assertRegex(self.ranktune("replay", "long", "--verify")[0], r"^verified: \d+ records")

    @unittest.skipUnless(open_mpi(), "no mpirun of Open MPI")
    def test_a_head_that_was_stopped_under_mpirun_is_started_again(self):
        self.check_comes_back(*MPIRUN[:-1], "2", PROGRAM, "run", "long.toml")

    def test_a_head_that_was_stopped_in_a_local_run_is_started_again(self):
        self.check_comes_back(PROGRAM, "run", "long.toml", "--local", "1")

    @unittest.skipUnless(open_mpi(), "no mpirun of Open MPI")
    def test_without_supervise_the_file_outcome_says_that_the_head_was_held_up(self):
        self.study(seconds=0.2, more=TIMEOUT)
        # mpirun waits one second between TERM and KILL, in which a busy machine may not run the head.
        process = self.start(workers=1, OMPI_MCA_odls_base_sigkill_timeout="5")
        os.kill(self.ranks()[0], signal.SIGSTOP)
        process.communicate()
        outcome = self.outcome("long")
        self.assertEqual((outcome["exit"], outcome["cause"]), ("75", "stalled"), outcome)
        self.assertRegex(outcome["reason"], "the head was held up for [0-9]+ s: its workers heard nothing of it for 4 s")
        out = self.ranktune("run", "long.toml", "--local", "2")[0]
        self.assertIn("the head was held up", " ".join(out.split()))
        self.assertNotIn("death=yes", (self.cwd / "long" / "logs" / "start-2.log").read_text())

    def check_second_control_c(self, process, file):
        self.wait_until(lambda: '"running": 2' in self.status_file(), "running trials")
        process.send_signal(signal.SIGINT)
        self.wait_until(lambda: '"draining": true' in self.status_file(), "a clean stop under way")
        self.wait_until(lambda: "Ctrl-C again ends it at once" in " ".join(file.read_text().split()), "the words about a second one")
        process.send_signal(signal.SIGINT)
        process.wait()
        self.wait_until(lambda: not self.mine(), "the end of the ranks")
        out = file.read_text()
        self.assertEqual(process.returncode, 75, out)
        words = " ".join(out.split())
        self.assertRegex(words, r"long stopped at once, resumable, in \S+: .* exit 75")
        self.assertIn("why a second Ctrl-C", words)
        self.assertIn("cut off #0, #1: they go on", words)
        self.assertIn("ranktune run long # goes on", words)
        self.assertNotIn("cut short", words)
        outcome = self.outcome("long")
        self.assertEqual((outcome["exit"], outcome["cause"], outcome["reason"]), ("75", "asked", "Ctrl-C"))
        text = self.ranktune("status", "long")[0]
        self.assertIn("stopped, exit 75", text)
        self.assertIn("interrupted 2", text)
        self.assertNotIn("running", text)
        status = self.status()
        self.assertEqual((status["exit_code"], status["stopping"]), (75, None))
        self.assertEqual((status["states"]["running"], status["states"]["interrupted"]), (0, 2))

    def run_to_file(self, *command):
        self.study(seconds=900)
        file = self.cwd / "out"
        with open(file, "w") as out:
            process = subprocess.Popen(command, cwd=self.cwd, env=environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"),
                                       stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        self.addCleanup(lambda: (self.kill_all(), process.wait()))
        return process, file

    def test_a_second_control_c_is_announced_and_leaves_the_end_screen_and_a_status_that_fits(self):
        self.check_second_control_c(*self.run_to_file(PROGRAM, "run", "long.toml", "--local", "2"))

    @unittest.skipUnless(open_mpi(), "no mpirun of Open MPI")
    def test_a_second_control_c_at_supervise_leaves_the_end_screen_and_a_status_that_fits(self):
        self.check_second_control_c(*self.run_to_file(PROGRAM, "supervise", "--", *MPIRUN, PROGRAM, "run", "long.toml"))


if __name__ == "__main__":
    tests = [f"StalledHead.{name}" for name in vars(StalledHead) if name.startswith("test_")]  # and not those inherited
    unittest.main(argv=sys.argv[:1] + (sys.argv[3:] or tests), verbosity=2)
