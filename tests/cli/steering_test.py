#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Users who steer a running study, also one whose processes are killed: steering_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import json
import os
import re
import signal
import subprocess
import time
import unittest

from cli_test import PROGRAM, TIMEOUT, environment, sys
from resume_test import Long


class Steering(Long):
    def steer(self, *words, code=0):
        return self.ranktune(*words, code=code)

    def trial(self, number, directory="long"):
        trials = self.exported(directory)["trials"]
        return trials[number] if number < len(trials) else {"state": "not there"}

    def wait_for(self, number, *states):
        self.wait_until(lambda: self.trial(number)["state"] in states, f"#{number} in {states}")

    def finish(self, *arguments):
        done = subprocess.run([PROGRAM, "run", *arguments, "--local", "2"], cwd=self.cwd, env=environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT)
        return done.returncode, done.stdout

    def verify(self):
        self.assertIn("verified: ", self.ranktune("replay", "long", "--verify")[0])

    def test_a_trial_is_paused_resumed_and_cancelled_while_the_study_runs(self):
        self.study(seconds=0.8)  # long enough for requests that the head sees once a second
        process = self.start()
        out, _ = self.steer("pause", "long", "0")
        self.assertRegex(out, r"^accepted  pause trial #0\n$")
        self.steer("cancel", "long", "1")
        self.wait_until(lambda: self.trial(0)["state"] == "waiting", "the pause")
        done = self.trial(0)["iterations"] if "iterations" in self.trial(0) else None
        self.assertRegex(self.ranktune("explain", "long", "0")[0], r"(?s)now +paused by a user.*ranktune resume long 0")
        out, err = self.steer("pause", "long", "0", code=2)
        self.assertIn("pause trial #0: refused, trial #0 is paused by a user already", err)
        self.assertIn("there is no trial #17", self.steer("cancel", "long", "17", code=2)[1])
        status = lambda: " ".join(self.ranktune("status", "long")[0].split())
        refused = r"\dZ \S+@\S+: pause trial #0: refused, trial #0 is paused by a user already.*cancel trial #17: refused, there is no trial #17"
        self.wait_until(lambda: re.search(refused, status()), "the answers")
        self.assertRegex(status(), r"requests \S+Z \S+@\S+: pause trial #0: accepted ")
        requests = json.loads(self.ranktune("status", "long", "--json")[0])["requests"]
        self.assertEqual([(each["what"], each["accepted"]) for each in requests],
                         [("pause trial #0", True), ("cancel trial #1", True), ("pause trial #0", False), ("cancel trial #17", False)])
        self.wait_for(1, "stopped")
        self.assertIn("cancelled by a user", self.ranktune("logs", "long", "1")[0] + self.ranktune("explain", "long", "1")[0])
        self.steer("resume", "long", "0")
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 0, out)
        self.assertEqual([t["state"] for t in self.exported("long")["trials"]],
                         ["finished", "stopped", "finished", "finished"])
        self.assertRegex((self.cwd / "long/logs/start-1.log").read_text(), r" I steered +by=\S+@\S+ what=\"pause trial #0\"")
        self.verify()
        self.assertFalse((self.cwd / "long/control").exists() and list((self.cwd / "long/control").iterdir()))
        self.assertIn("is finished. More trials", self.steer("set", "long", "study.num_trials=9", code=2)[1])

    def test_trials_are_added_and_settings_stay_over_a_restart_with_the_same_study_file(self):
        self.study(seconds=0.5)
        process = self.start()
        self.assertIn("add 1 trial: lr=0.25", self.steer("add", "long", "lr=0.25")[0])
        (self.cwd / "more.csv").write_text("lr\n0.125\n0.0625\n")
        self.assertIn("add 2 trials", self.steer("add", "long", "--csv", "more.csv")[0])
        self.assertIn("lr: 7", self.steer("add", "long", "lr=7", code=2)[1])
        self.assertIn("set study.num_trials=8", self.steer("set", "long", "study.num_trials=8")[0])
        self.assertIn("study.seed cannot change in a study that has begun", self.steer("set", "long", "study.seed=8", code=2)[1])
        for setting, words in (("num_trials=50", "did you mean the key study.num_trials?"), ("failure.tolerance=0.3", "did you mean"),
                               ("study.num_trial=50", "study.num_trial: unknown key; did you mean 'num_trials'?"),
                               ("foo=1", "foo: unknown table"), ("foo", "the form is table.key=value, as in study.num_trials=120")):
            refused = self.steer("set", "long", setting, code=2)[1]
            self.assertIn(words, refused)
            self.assertNotIn("results depend on it", refused)
        self.assertIn("cannot read the table 'no.csv': No such file", self.steer("add", "long", "--csv", "no.csv", code=2)[1])
        self.assertIn("checkpoint.keep changes with the next start only: ranktune stop, then ranktune run with checkpoint.keep=...",
                      self.steer("set", "long", "checkpoint.keep=2", code=2)[1])
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 75, out)
        # Nothing runs: what the next start would refuse is refused now, and what it takes over is said as its command.
        self.assertRegex(self.ranktune("set", "long", "checkpoint.keep=2", code=2)[1],
                         r"checkpoint.keep changes with the next start: ranktune run \S*long checkpoint.keep=2 ")
        self.assertIn("ranktune run STUDY_FILE study.seed=8 -o DIRECTORY", self.ranktune("set", "long", "study.seed=8", code=2)[1])
        self.assertIn("did you mean 'num_trials'", self.ranktune("set", "long", "study.num_trails=8", code=2)[1])
        self.assertFalse(list((self.cwd / "long/control").glob("*.ask")))
        code, out = self.finish("long.toml")
        self.assertEqual(code, 0, out)
        trials = self.exported("long")["trials"]
        self.assertEqual(len(trials), 8)
        self.assertTrue({0.25, 0.125, 0.0625} <= {t["configuration"]["lr"] for t in trials})
        self.assertNotIn("num_trials", out.split("ranks")[0])
        self.verify()

    def test_a_request_takes_effect_once_whatever_is_killed_when(self):
        self.study(seconds=0.3)
        for round in range(3):
            process = self.start(reports=2)
            asker = subprocess.Popen([PROGRAM, "add", "long", f"lr=0.{round + 1}"], cwd=self.cwd, env=environment(),
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            time.sleep(0.4 + 0.5 * round)
            self.end(process)
            asker.kill()
            asker.communicate()
        code, out = self.finish("long.toml")
        self.assertEqual(code, 0, out)
        asked = [t["configuration"]["lr"] for t in self.exported("long")["trials"]]
        for round in range(3):
            self.assertLessEqual(asked.count((round + 1) / 10), 1, asked)
            left = [p for p in (self.cwd / "long/control").glob("*.ask")] if (self.cwd / "long/control").exists() else []
            self.assertEqual(left, [])
        self.assertEqual(len(asked), 4 + sum((round + 1) / 10 in asked for round in range(3)))
        self.verify()

    def test_a_request_to_a_study_that_nobody_runs_takes_effect_when_it_goes_on(self):
        self.study(seconds=0.2)
        self.end(self.start())
        out, _ = self.steer("cancel", "long", "0")
        self.assertIn("noted     cancel trial #0", out)
        self.assertIn("ranktune run", out)
        code, out = self.finish("long")
        self.assertEqual(code, 0, out)
        self.assertEqual(self.trial(0)["state"], "stopped")
        self.verify()

    def test_a_study_whose_last_trials_are_paused_ends_and_says_what_to_do(self):
        self.study(seconds=0.3, more="")
        process = self.start("study.num_trials=1", reports=1)
        self.assertIn("accepted", self.steer("pause", "long", "0")[0])
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 75, out)
        self.assertIn("users have paused the trial that is left: ranktune resume", out)
        self.steer("resume", "long", "0")
        code, out = self.finish("long")
        self.assertEqual(code, 0, out)

    def test_the_file_of_another_user_and_one_that_is_no_request_are_refused(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give a file away")
        self.study(seconds=0.8)
        process = self.start()
        control = self.cwd / "long/control"
        control.mkdir()
        (control / "1-1.ask").write_text('request = "1"\nwho = "eve"\nverb = "cancel"\ntrial = 0\nsettings = []\n')
        os.chown(control / "1-1.ask", 65534, 65534)
        (control / "2-2.ask").write_text("rubbish")
        (control / "0-0.ask").mkdir()
        os.mkfifo(control / "0-1.ask")
        (control / "0-2.ask").symlink_to("/nowhere")
        self.wait_until(lambda: (control / "1-1.answer").exists() and (control / "2-2.answer").exists(), "answers")
        self.assertIn("refused: only the owner", (control / "1-1.answer").read_text())
        self.assertIn("refused: the request", (control / "2-2.answer").read_text())
        self.wait_until(lambda: list(control.glob("*.ask")) == [], "their removal")
        self.assertIn("accepted", self.steer("set", "long", "failure.tolerate=0.3")[0])
        self.assertIn(self.trial(0)["state"], ("running", "finished"))  # not cancelled
        self.end(process)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
