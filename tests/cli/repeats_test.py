#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Configurations that are trained several times, as a user sees them: repeats_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import re
import statistics
import subprocess
import unittest

from cli_test import PROGRAM, TIMEOUT, Case, environment, sys
from kills import Kills

STUDY = """[study]
name = "thrice"
metric = "score"
mode = "max"
num_trials = 9
max_iterations = 3
seed = 1
[trainable]
builtin = "curve"
noise = 0.05
[space]
lr = "loguniform(1e-3, 1.0)"
[searcher]
type = "{searcher}"
repeats = 3
"""


class Repeats(Kills, Case):
    def groups(self, exported):
        trials = exported["trials"]
        self.assertEqual([trial["repeats_of"] for trial in trials], [0, 0, 0, 3, 3, 3, 6, 6, 6])
        groups = [trials[i:i + 3] for i in range(0, 9, 3)]
        for group in groups:
            self.assertEqual(len({trial["configuration"]["lr"] for trial in group}), 1)
            self.assertEqual(len({trial["best"]["value"] for trial in group}), 3)  # other random numbers
        return [[trial["best"]["value"] for trial in group] for group in groups]

    def check_best(self):
        exported = self.exported("thrice")
        values = self.groups(exported)
        best = max(range(3), key=lambda i: statistics.mean(values[i]))
        self.assertAlmostEqual(exported["study"]["best_mean"], statistics.mean(values[best]), 9)
        self.assertEqual(exported["study"]["best_trial"], 3 * best + max(range(3), key=lambda i: values[best][i]))
        mean = f"{statistics.mean(values[best]):.4f} +- "
        self.assertIn(mean, self.ranktune("best", "thrice")[0])
        self.assertIn("(mean of 3)", self.ranktune("best", "thrice")[0])
        return best, mean

    def test_the_best_configuration_has_the_best_mean(self):
        for searcher in ("random", "auto"):
            self.write("thrice.toml", STUDY.format(searcher=searcher))
            out, _ = self.ranktune("run", "thrice.toml", "--local", "2", "--fresh")
            best, mean = self.check_best()
            self.assertIn(mean, out)
            rows = re.findall(r"(?m)^[ *]*#(\d+) ", self.ranktune("status", "thrice", "--columns", "trial,mean")[0])
            self.assertEqual(rows[:3], [str(3 * best + i) for i in range(3)])
            self.ranktune("replay", "thrice", "--verify")
            self.ranktune("report", "thrice", "-o", "report.html")
            self.assertIn(mean, (self.cwd / "report.html").read_text())

    def test_a_killed_study_goes_on(self):
        self.write("thrice.toml", STUDY.format(searcher="tpe").replace("noise", "seconds = 0.1\nnoise"))
        process = subprocess.Popen([PROGRAM, "run", "thrice.toml", "--local", "2"], cwd=self.cwd, env=environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_until(lambda: (self.cwd / "thrice").is_dir() and self.trials() >= 4, "no fourth trial")
        self.kill_all()
        process.wait()
        self.ranktune("run", "thrice.toml", "--local", "3")
        self.check_best()
        self.ranktune("replay", "thrice", "--verify")

    def trials(self):
        done = subprocess.run([PROGRAM, "export", "thrice", "--format", "json"], cwd=self.cwd, env=environment(),
                              capture_output=True, text=True, timeout=TIMEOUT)
        return done.stdout.count('"repeats_of"')

    def test_the_best_trial_has_the_weights_of_its_last_iteration_where_that_is_the_best(self):
        self.write("thrice.toml", STUDY.format(searcher="random").replace('builtin = "curve"\nnoise = 0.05', f'command = "{sys.executable} train.py"'))
        self.write("train.py", "import ranktune\nc, h = ranktune.config(), ranktune.context()\n"
                   "def save(folder):\n    open(folder + '/state', 'w').write(f'{h.trial} {e + 1}')\n"
                   "for e in range(h.iteration, h.iterations):\n    ranktune.report(score=c.lr + 0.01 * (h.trial % 3) + e, checkpoint=save)\n")
        out, _ = self.ranktune("run", "thrice.toml", "--local", "2")
        self.assertNotIn("weights of", out)
        best = self.exported("thrice")["study"]["best_trial"]
        state, = (self.cwd / "thrice" / "checkpoints").rglob("state")  # and no other is left
        self.assertEqual(state.read_text(), f"{best} 3")

    def test_deterministic_studies_are_the_same_on_any_number_of_ranks(self):
        text = STUDY.format(searcher="tpe").replace("seed = 1", "seed = 1\ndeterministic = true\nmax_concurrent = 3")
        self.write("thrice.toml", text)
        found = []
        for ranks in ("1", "4"):
            self.ranktune("run", "thrice.toml", "--local", ranks, "--fresh")
            exported = self.exported("thrice")
            for trial in exported["trials"]:
                trial["best"].pop("checkpoint_iteration", None)  # what is saved on the way depends on what runs beside
            found.append([(trial["configuration"], trial["best"]) for trial in exported["trials"]])
        self.assertEqual(found[0], found[1])

    def test_schedulers_that_stop_trials_are_refused(self):
        self.write("thrice.toml", STUDY.format(searcher="random") + '[scheduler]\ntype = "asha"\n')
        _, err = self.ranktune("validate", "thrice.toml", code=2)
        self.assertRegex(err, r"15:11  searcher\.repeats: does not go with")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
