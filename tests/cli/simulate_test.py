#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ranktune simulate`: its study directory in every view, its tables, its errors: simulate_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import json
import sys
import unittest

from cli_test import TINY, Case

# A program may change its hyper-parameters while it trains.
POPULATION = TINY.replace('builtin = "curve"', 'command = "true {args}"').replace('type = "asha"', 'type = "pbt"\ninterval = 1\n[scheduler.explore]\nlr = [0.8, 1.2]')


class Simulate(Case):
    def test_every_view_reads_the_directory_and_says_that_it_is_simulated(self):
        for text in (TINY, POPULATION):
            self.write(text=text)
            out, _ = self.ranktune("simulate", "tiny.toml", "--groups", "2", "-o", "virtual", "--fresh")
            self.assertIn("tiny simulated: 2 groups of 1 rank, 6 trials", out)
            self.assertIn("ranktune status virtual", out)
            mark = "simulated: 2 groups of 1 rank; no trial was trained"
            for verb in (["status"], ["best"], ["logs", "best"], ["replay"], ["replay", "--verify"]):
                words = [verb[0], "virtual", *verb[1:]]
                self.assertIn(mark, self.ranktune(*words)[0], words)
            self.assertIn("verified: ", self.ranktune("replay", "virtual", "--verify")[0])
            for verb in ("status", "best"):
                self.assertEqual(json.loads(self.ranktune(verb, "virtual", "--format", "json")[0])["simulated"], "2 groups of 1 rank")
            exported = self.exported("virtual")
            self.assertEqual(exported["study"]["simulated"], "2 groups of 1 rank")
            self.assertEqual(len(exported["trials"]), 6)
            table, note = self.ranktune("export", "virtual", "--format", "csv")
            self.assertEqual(len(table.splitlines()), 7)
            self.assertIn(mark, note)

    def test_run_and_checkpoint_refuse_a_simulated_study(self):
        self.write()
        self.ranktune("simulate", "tiny.toml", "--groups", "2")
        for words in (["run", "tiny-simulated"], ["run", "tiny.toml", "-o", "tiny-simulated"]):
            self.assertIn("'tiny-simulated' holds a simulated study", self.ranktune(*words, code=2)[1])
        self.assertIn("which has no weights", self.ranktune("checkpoint", "tiny-simulated", "best", code=2)[1])
        self.assertIn("holds a study already: --fresh moves it aside", self.ranktune("simulate", "tiny.toml", "--groups", "2", code=2)[1])
        self.ranktune("simulate", "tiny.toml", "--groups", "2", "--fresh")
        self.assertTrue((self.cwd / "tiny-simulated~1").is_dir())

    def test_the_same_call_gives_the_same_bytes(self):
        self.write()
        for name in ("a", "b"):
            self.ranktune("simulate", "tiny.toml", "--groups", "3", "-o", name)
        files = [sorted(path.relative_to(self.cwd / name) for path in (self.cwd / name).rglob("*") if path.is_file()) for name in "ab"]
        self.assertEqual(files[0], files[1])
        for path in files[0]:
            self.assertEqual((self.cwd / "a" / path).read_bytes(), (self.cwd / "b" / path).read_bytes(), path)

    def test_a_sweep_is_a_table_over_seeds(self):
        self.write()
        words = ["simulate", "tiny.toml", "--groups", "2", "--sweep", "scheduler.type=asha,fifo", "--sweep", "study.num_trials=4,8", "--seeds", "3"]
        out, _ = self.ranktune(*words)
        lines = out.splitlines()
        self.assertRegex(lines[0], r"^scheduler.type  study.num_trials  best score +to 1 % +reached  core-hours +utilisation$")
        self.assertEqual([line.split()[:2] for line in lines[1:5]], [["asha", "4"], ["asha", "8"], ["fifo", "4"], ["fifo", "8"]])
        self.assertEqual(lines[5], "simulated: 2 groups of 1 rank; median (first to third quartile) over 3 seeds")
        self.assertEqual(out, self.ranktune(*words)[0])
        self.assertEqual([path.name for path in self.cwd.iterdir()], ["tiny.toml"])
        tables = 'scheduler={type="asha",eta=2},{type="median"}'
        out, _ = self.ranktune("simulate", "tiny.toml", "--groups", "2", "--sweep", tables)
        self.assertEqual([line.split()[0] for line in out.splitlines()[1:3]], ['{type="asha",eta=2}', '{type="median"}'])

    def test_mistakes(self):
        self.write()
        self.write("model.toml", "[curves]\nnoize = 1\n")
        groups = ["simulate", "tiny.toml", "--groups", "2"]
        self.assertIn("  2:1  curves.noize: unknown key; did you mean 'noise'?", self.ranktune(*groups, "--model", "model.toml", code=2)[1])
        self.assertIn("cannot read the model file 'no.toml'", self.ranktune(*groups, "--model", "no.toml", code=2)[1])
        self.assertIn("needs KEY=VALUE,VALUE...", self.ranktune(*groups, "--sweep", "scheduler.eta", code=2)[1])
        self.assertIn("scheduler.type", self.ranktune(*groups, "--sweep", "scheduler.type=asha,ahsa", code=2)[1])
        self.assertIn("--groups is required", self.ranktune("simulate", "tiny.toml", code=2)[1])
        self.ranktune(*groups, "--sweep", "scheduler.eta=2,3", "-o", "here", code=2)
        self.assertIn("at least", self.ranktune("simulate", "tiny.toml", "--groups", "0", code=2)[1])

    def test_hours_end_the_study(self):
        self.write()
        self.write("model.toml", "[time]\niteration = 3600\n")
        self.ranktune("simulate", "tiny.toml", "--groups", "1", "--hours", "4", "--model", "model.toml")
        study = self.exported("tiny-simulated")
        self.assertLess(len(study["trials"]), 6)
        self.assertTrue(study["study"]["ended"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
