#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A head that is held up, by a signal or by its disk: stalled_head_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import os
import signal
import unittest

from cli_test import PROGRAM, sys
import supervise_test
from supervise_test import MPIRUN, open_mpi

TIMEOUT = '\n[run]\nheartbeat_timeout = "4s"'


class StalledHead(supervise_test.Supervise):
    def check_comes_back(self, *command):
        """The head stands still for longer than its workers bear: they leave, and everything starts again."""
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
        self.check_comes_back(*MPIRUN, PROGRAM, "run", "long.toml")

    def test_a_head_that_was_stopped_in_a_local_run_is_started_again(self):
        self.check_comes_back(PROGRAM, "run", "long.toml", "--local", "2")

    @unittest.skipUnless(open_mpi(), "no mpirun of Open MPI")
    def test_without_supervise_the_file_outcome_says_that_the_head_was_held_up(self):
        self.study(seconds=0.2, more=TIMEOUT)
        process = self.start()
        os.kill(self.ranks()[0], signal.SIGSTOP)
        process.communicate()
        outcome = self.outcome("long")
        self.assertEqual((outcome["exit"], outcome["cause"]), ("75", "stalled"), outcome)
        self.assertRegex(outcome["reason"], "the head was held up for [0-9]+ s: its workers heard nothing of it for 4 s")
        out = self.ranktune("run", "long.toml", "--local", "2")[0]
        self.assertIn("the head was held up", " ".join(out.split()))
        self.assertNotIn("death=yes", (self.cwd / "long" / "logs" / "start-2.log").read_text())


if __name__ == "__main__":
    tests = [f"StalledHead.{name}" for name in vars(StalledHead) if name.startswith("test_")]  # and not those inherited
    unittest.main(argv=sys.argv[:1] + (sys.argv[3:] or tests), verbosity=2)
