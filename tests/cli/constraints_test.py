#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Studies with constraints on metrics, as a user runs them: constraints_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import json
import subprocess
import unittest

from cli_test import PROGRAM, TIMEOUT, Case, environment, sys

STUDY = """[study]
name = "limited"
metric = "score"
mode = "max"
constraints = [{constraints}]
num_trials = 12
max_iterations = 3
seed = 1
[trainable]
command = "sh trial.sh {{x}}"
checkpoints = false
[space]
x = "uniform(0, 1)"
[searcher]
type = "{searcher}"
[scheduler]
type = "asha"
variant = "stop"
"""
# The larger x, the better and the slower.
TRIAL = """for i in 1 2 3; do
    echo "{\\"report\\": {\\"score\\": $1, \\"latency\\": $1}}" >&"$RANKTUNE_FD"
    read -r answer <&"$RANKTUNE_FD"
    case $answer in *stop*) exit 0;; esac
done
"""


class Constraints(Case):
    def study(self, constraints, searcher="tpe"):
        self.write("trial.sh", TRIAL)
        self.write("limited.toml", STUDY.format(constraints=constraints, searcher=searcher))

    def test_the_best_keeps_them(self):
        for searcher in ("tpe", "random"):
            self.study('"latency <= 0.6"', searcher)
            out, _ = self.ranktune("run", "limited.toml", "--local", "2", "--fresh")
            self.assertIn("with latency <= 0.6", " ".join(out.split()))
            exported = self.exported("limited")
            best = exported["trials"][exported["study"]["best_trial"]]
            kept = [trial["configuration"]["x"] for trial in exported["trials"] if trial["configuration"]["x"] <= 0.6]
            self.assertEqual(best["configuration"]["x"], max(kept))
            for trial in exported["trials"]:
                self.assertEqual(trial["best"] is None, trial["configuration"]["x"] > 0.6)
            self.assertIn("with latency <= 0.6", " ".join(self.ranktune("best", "limited")[0].split()))
            self.assertNotIn("nearest", self.ranktune("best", "limited", "--json")[0])
            self.ranktune("replay", "limited", "--verify")
            self.ranktune("report", "limited", "-o", "report.html")

    def test_none_keeps_them(self):
        self.study('"latency <= -1"')
        out = " ".join(self.ranktune("run", "limited.toml", "--local", "2", code=4)[0].split())
        self.assertIn("kept study.constraints (latency <= -1.0)", out)
        trials = self.exported("limited")["trials"]
        nearest = min(range(len(trials)), key=lambda i: trials[i]["configuration"]["x"])
        x = trials[nearest]["configuration"]["x"]
        words = f"nearest #{nearest} score {x:.4f} at iteration 1 of 3; latency {x:.4f} (wanted <= -1.0)"
        self.assertIn(words, out)
        out = " ".join(self.ranktune("best", "limited", code=4)[0].split())
        self.assertIn("no trial has reported a finite score with latency <= -1.0", out)
        self.assertIn(words, out)
        told = json.loads(self.ranktune("best", "limited", "--json", code=4)[0])
        self.assertEqual((told["best"], told["nearest"]["trial"], told["nearest"]["values"]), (None, nearest, {"score": x}))
        self.assertAlmostEqual(told["nearest"]["violation"], x + 1)
        self.assertRegex(self.ranktune("ls")[0], rf"none, near: #{nearest} ")
        self.ranktune("report", "limited", "-o", "report.html")
        self.assertTrue(f"Nearest to it: #{nearest}  score" in (self.cwd / "report.html").read_text())
        self.ranktune("replay", "limited", "--verify")

    def test_a_metric_that_is_never_reported(self):
        self.study('"latncy <= 1"')
        done = subprocess.run([PROGRAM, "run", "limited.toml", "--local", "2"], cwd=self.cwd, env=environment(), timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("lacks the metric of a constraint 'latncy'; it has score, latency. Did you mean 'latency' in study.constraints?",
                      " ".join(done.stdout.split()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
