#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which configurations a study tries, and what there is to see when none has a result: points_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import json
import unittest

from cli_test import Case, sys

STUDY = """[study]
name = "s"
metric = "loss"
mode = "min"
num_trials = {trials}
max_iterations = 3
seed = 7
[trainable]
command = "python3 train.py"
[searcher]
type = "{searcher}"
{more}
[space]
{space}
"""
TRAIN = """import json, ranktune
config, here = ranktune.config(), ranktune.context()
open("seen.jsonl", "a").write(json.dumps([here.trial, here.seed, dict(config)]) + "\\n")
for _ in range(here.iteration, {iterations}):
    ranktune.report(loss={loss})
"""
GRID = "a = [0, 1]\nb = [0.1, 0.2]"


class Points(Case):
    def study(self, trials, searcher, more, space, iterations="here.iterations", loss="float(here.trial)"):
        self.write("s.toml", STUDY.format(trials=trials, searcher=searcher, more=more, space=space))
        self.write("train.py", TRAIN.format(iterations=iterations, loss=loss))

    def seen(self):
        """What programs were given, by trial."""
        lines = map(json.loads, (self.cwd / "seen.jsonl").read_text().splitlines())
        return {trial: (seed, config) for trial, seed, config in lines}

    def test_a_grid_tries_every_point_once_whatever_its_start_points(self):
        starts = "".join(f"[[searcher.start]]\na = {a}\n{b}" for a, b in ((0, "b = 0.1\n"), (1, "b = 0.1\n"), (1, "")))
        self.study(4, "grid", starts, GRID)
        self.ranktune("run", "s.toml", "--local", "2")
        tried = [(config["a"], config["b"]) for _, config in self.seen().values()]
        self.assertEqual(sorted(tried), [(0, 0.1), (0, 0.2), (1, 0.1), (1, 0.2)])
        self.ranktune("replay", "s", "--verify")

    def test_repetitions_have_seeds_of_their_own(self):
        self.study(6, "grid", "repeats = 3", "a = [0, 1]", loss="0.5 + 1e-5 * here.seed")
        out, _ = self.ranktune("run", "s.toml", "--local", "2")
        self.assertEqual([self.seen()[trial][0] for trial in range(6)], [7, 8, 9] * 2)
        table, _ = self.ranktune("status", "s", "--columns", "trial,mean")
        self.assertIn("0.5001 +- 1.000e-05", table)
        self.assertNotIn("~", table)
        again, _ = self.ranktune("replay", "s", "--schedule", "2")
        self.assertIn("\nseed = 9\n", again)

    def test_the_dry_run_shows_the_first_trials_as_they_will_be(self):
        self.study(6, "random", "repeats = 2\n[[searcher.start]]\na = 0.5", 'a = "uniform(0, 1)"')
        out, _ = self.ranktune("run", "s.toml", "--dry-run")
        shown = [line for line in out.splitlines() if line.startswith("# trial #")]
        self.assertEqual([line.split()[1:4] for line in shown],
                         [["trial", "#0", "a=0.5"], ["trial", "#1", "a=0.5"], ["trial", "#2", shown[2].split()[3]]])
        self.assertIn("(start point 1)", shown[0])
        self.assertIn("(repeat 1 of #0, with another seed)", shown[1])
        self.ranktune("run", "s.toml", "--local", "2")
        self.assertEqual(f"a={self.seen()[2][1]['a']}", shown[2].split()[3])

    def test_every_view_of_the_best_trial_ends_with_4_when_there_is_none(self):
        self.study(2, "random", "", 'a = "uniform(0, 1)"', loss="float('nan')")
        self.ranktune("run", "s.toml", "--local", "1", code=4)
        for verb in (["best"], ["best", "--json"], ["checkpoint", "best"], ["replay", "--schedule", "best"],
                     ["explain", "best"], ["logs", "best"]):
            out, err = self.ranktune(verb[0], "s", *verb[1:], code=4)
            self.assertRegex(out + err, r"null|no trial has reported a finite|has no best trial")

    def test_trials_that_end_before_the_ceiling_are_counted(self):
        self.study(3, "random", "", 'a = "uniform(0, 1)"', iterations="1 + here.trial")
        out, _ = self.ranktune("run", "s.toml", "--local", "1")
        words = "2 trials ended by themselves after 1 to 2 iterations of 3 (study.max_iterations)"
        self.assertIn(words, " ".join(out.split()))
        self.assertIn(words, " ".join(self.ranktune("status", "s")[0].split()))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
