#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of search.py, with a stand-in for bench_search whose regrets are known."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import search

# SEARCHER FUNCTION SEEDS WORKERS EVALUATIONS: regret level x (1 + seed / 10) / mark; refuses cmaes on mixed6.
BENCH = '''#!{python}
import sys
LEVEL = {{"tpe": 10.0, "gp": 4.0, "cmaes": 8.0, "auto": {auto}}}
if sys.argv[1] == "--values":
    sys.exit(0)
name, function, seeds, workers, evaluations = sys.argv[1:6]
if name == "cmaes" and function == "mixed6":
    sys.exit("terminate called\\n  what():  \\"cmaes\\" needs a number for 'category' in every trial, not ['a']")
if name == "broken":
    sys.exit("no such searcher")
for seed in range(int(seeds)):
    marks = [mark for mark in (25, 50, 100, 200) if mark <= int(evaluations)]
    print(name, function, workers, seed, *(LEVEL[name] * (1 + seed / 10) / mark for mark in marks), 0.5)
'''
# A Python that stands for one with a peer: twice the regret of gp.
PEER = '''#!{python}
import sys
if sys.argv[2] == "--version":
    print(*(f"{{name}} 1.0" for name in sys.argv[3:]))
    sys.exit(0)
peer, function, seeds, workers, evaluations = sys.argv[2:7]
for seed in range(int(seeds)):
    print(peer, function, workers, seed, *(8.0 * (1 + seed / 10) / mark for mark in (25, 50, 100, 200) if mark <= int(evaluations)), 1.0)
'''


class Search(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def program(self, name, text, **values):
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(python=sys.executable, **values))
        path.chmod(0o755)
        return path

    def search(self, *arguments, auto=4.2):
        bench = self.program("bench", BENCH, auto=auto)
        out, errors = io.StringIO(), io.StringIO()
        with mock.patch.object(sys, "argv", ["search.py", str(bench), "--seeds", "5", *map(str, arguments)]), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            search.main()
        return out.getvalue(), errors.getvalue()

    def test_every_searcher_is_compared_with_peers_of_several_pythons(self):
        one = self.program("one", PEER)
        self.program("venv/bin/python", PEER)
        text, _ = self.search("--searchers", "gp,tpe", "--functions", "branin,hartmann6",
                              "--peers", f"optuna-tpe@{one},smac@{self.place / 'venv'}", "--evaluations", 50)
        self.assertIn(f"{one}: optuna 1.0", text)
        self.assertIn(f"{self.place / 'venv'}/bin/python: smac 1.0", text)
        of_gp, of_tpe = text.split("Regret of ")[1:]
        self.assertIn(f"| branin | 1 | optuna-tpe@{one} | 0.5 [", of_gp)
        self.assertIn(f"| median of 2 | 1 | smac@{self.place / 'venv'} | 0.5 | 0.5 |", of_gp)
        self.assertIn(f"| median of 2 | 1 | optuna-tpe@{one} | 1.2 | 1.2 |", of_tpe)
        self.assertIn("better; P 1.00* |", of_gp)
        self.assertIn("worse", of_tpe.replace(' "worse" ', ""))

    def test_the_probability_to_be_better(self):
        self.assertEqual(search.superiority([1, 2, 3], [2, 3, 4])[0], 7 / 9)
        self.assertEqual(search.superiority([5] * 8, [5] * 8), (0.5, 1.0))
        # 0.05 is reached at U = 13 of 64 (Mann and Whitney 1947).
        self.assertLess(search.superiority([1, 2, 3, 4, 5, 6, 11, 12], [7, 8, 9, 10, 13, 14, 15, 16])[1], 0.05)
        self.assertGreater(search.superiority([1, 3, 5, 7, 9, 11, 13, 15], [2, 4, 6, 8, 10, 12, 14, 16])[1], 0.05)

    def test_quartiles_at_every_mark(self):
        text, _ = self.search("--searchers", "gp", "--functions", "branin", "--peers", "")
        self.assertIn("| branin | 1 | gp | 0.192 [0.176, 0.208] | 0.096 [0.088, 0.104] | 0.048 [0.044, 0.052] | "
                      "0.024 [0.022, 0.026] | 0.5 |", text)

    def test_a_searcher_that_refuses_a_space_is_left_out_there(self):
        text, errors = self.search("--searchers", "cmaes,gp", "--functions", "mixed6,branin", "--peers", "")
        self.assertIn("| mixed6 | 1 | cmaes | refused | refused | refused | refused | |", text)
        self.assertIn("| branin | 1 | cmaes | 0.384", text)
        self.assertIn("| mixed6 | 1 | gp | 0.192", text)
        self.assertIn("cmaes is left out with mixed6: \"cmaes\" needs a number for 'category'", errors)

    def test_other_failures_end_the_run(self):
        with self.assertRaisesRegex(SystemExit, "no such searcher"):
            self.search("--searchers", "broken", "--functions", "branin", "--peers", "")

    def test_auto_is_compared_with_the_best_of_its_rivals(self):
        arguments = ["--searchers", "auto,tpe,gp,cmaes", "--functions", "branin,mixed6", "--peers", ""]
        text, _ = self.search(*arguments, auto=4.2)
        self.assertIn("| branin | 1 | 1.05 (gp) | 1.05 (gp) | 1.05 (gp) | 1.05 (gp) |", text)
        with self.assertRaisesRegex(SystemExit, "auto is worse than 1.1 times"):
            self.search(*arguments, auto=4.5)

    def test_values_of_a_model_are_asked_for(self):
        model = self.program("model", "#!{python}\nimport sys\nfor line in sys.stdin: print(2 * float(line[2:]), flush=True)\n")
        asking = self.program("asking", "#!{python}\nprint('? x=3', flush=True)\nprint('got', float(input()))\n")
        self.assertEqual(search.asked_of([model], [asking]), ["got 6.0\n"])
        refusing = self.program("refusing", "#!{python}\nimport sys\nsys.exit('\"cmaes\" needs a number for a list'.replace('a list', \"'k'\"))\n")
        with self.assertRaisesRegex(search.Refused, "needs a number for 'k'"):
            search.asked_of([model], [refusing])

    def test_raw_values_of_each_seed(self):
        raw = self.place / "raw.json"
        self.search("--searchers", "gp,cmaes", "--functions", "mixed6", "--peers", "", "--evaluations", 50, "--raw", raw)
        written = json.loads(raw.read_text())
        self.assertEqual([each["searcher"] for each in written["results"]], ["gp"])
        self.assertEqual(written["results"][0]["regrets"]["50"], [4.0 * (1 + seed / 10) / 50 for seed in range(5)])


if __name__ == "__main__":
    unittest.main()
