#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ranktune simulate`: its study directory in every view, its tables, its errors: simulate_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import json
import subprocess
import sys
import unittest

from cli_test import PROGRAM, SOURCES, TINY, Case, environment

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
            for words in (["explain", "virtual"], ["explain", "virtual", "0"]):
                self.assertIn(mark, self.ranktune(*words)[0], words)
            self.assertIn("virtual is " + mark, self.ranktune("compare", "virtual", "virtual")[0])
            compared = json.loads(self.ranktune("compare", "virtual", "virtual", "--format", "json")[0])
            self.assertEqual([study["simulated"] for study in compared["studies"]], [True, True])
            row = self.ranktune("ls")[0].splitlines()[1]
            self.assertTrue(row.rstrip().endswith(" simulated"), row)  # virtual time is no age
            listed = json.loads(self.ranktune("ls", "--format", "json")[0])["studies"][0]
            self.assertEqual((listed["simulated"], listed["newest"]), (True, None))
            for verb in ("status", "best"):
                self.assertEqual(json.loads(self.ranktune(verb, "virtual", "--format", "json")[0])["simulated"], "2 groups of 1 rank")
            self.ranktune("report", "virtual")
            self.assertIn("simulated: 2 groups of 1 rank", (self.cwd / "tiny-report.html").read_text())
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

    def test_curves_come_from_an_earlier_study(self):
        self.write()
        self.ranktune("simulate", "tiny.toml", "--groups", "2", "-o", "earlier")
        out, _ = self.ranktune("simulate", "tiny.toml", "--groups", "4", "--model", "earlier", "-o", "later")
        self.assertIn("4 groups of 1 rank, with the curves of the study in earlier", out)
        self.assertRegex(out, r"6 curves of the study in earlier; \d+\.\d % of the reports beyond their\s+data; the nearest configuration 0\.00 away")
        self.assertEqual(json.loads(self.ranktune("status", "later", "--format", "json")[0])["simulated"],
                         "4 groups of 1 rank, with the curves of the study in earlier")
        self.write("model.toml", '[curves]\nstudy = "earlier"\n[time]\nstart = 100\n')
        out, _ = self.ranktune("simulate", "tiny.toml", "--groups", "4", "--model", "model.toml", "--seeds", "3")
        self.assertRegex(out.splitlines()[0], r"utilisation +beyond data +distance$")
        self.assertIn("with the curves of the study in earlier; median", out)
        self.assertIn("holds no study", self.ranktune("simulate", "tiny.toml", "--groups", "4", "--model", ".", code=2)[1])

    def test_curves_come_from_a_table(self):
        self.write()
        (self.cwd / "data").mkdir()
        rows = [f"{c},{i},{1 - 1 / (i + c)},{i * (c + 1)},{10 ** -c}" for c in range(3) for i in (1, 2, 3)]
        self.write("data/curves.csv", "\n".join(["curve,iteration,score,seconds,lr", *rows, ""]))
        self.write("data/model.toml", '[curves]\nfile = "curves.csv"\n[time]\nstart = 0\ncheckpoint = 0\n')
        out, _ = self.ranktune("simulate", "tiny.toml", "scheduler.type=fifo", "--groups", "6", "--model", "data/model.toml")
        self.assertIn("3 curves of data/curves.csv; 0.0 % of the reports", out)
        values = {round(trial["best"]["value"], 6) for trial in self.exported("tiny-simulated")["trials"]}
        self.assertLessEqual(values, {round(1 - 1 / (3 + c), 6) for c in range(3)})
        self.write("data/curves.csv", "curve,iteration,score,lr\na,1,1,abc\n")
        message = self.ranktune("simulate", "tiny.toml", "--groups", "6", "--model", "data/model.toml", "--fresh", code=2)[1]
        self.assertIn("data/curves.csv: lr needs a number, not 'abc'", message)
        self.write("data/curves.csv", "curve,iteration,loss\n1,1,1\n")
        message = self.ranktune("simulate", "tiny.toml", "--groups", "6", "--model", "data/model.toml", "--fresh", code=2)[1]
        self.assertIn("data/curves.csv:1: there is no column 'score' (the study's metric)", message)

    def test_faults_and_walltime_make_several_jobs(self):
        self.write()
        self.write("faults.toml", '[trials]\nrate = 0.1\n[ranks]\nmean_time_to_failure = "10m"\n[job]\nwalltime = "5m"\nwait = "1h"\n')
        words = ["simulate", "tiny.toml", "failure.tolerate=1.0", "--groups", "2", "--faults", "faults.toml"]
        out, _ = self.ranktune(*words, "-o", "faulty")
        self.assertIn("tiny simulated: 2 groups of 1 rank, with failures", out)
        self.assertRegex(out, r"jobs +\d+ jobs, \d+h\d+m waiting for them; \d+ ranks? lost; \d+\.\d % of the training\s+repeated")
        self.assertIn("verified: ", self.ranktune("replay", "faulty", "--verify")[0])
        self.assertEqual((self.cwd / "faulty/faults.toml").read_text(), (self.cwd / "faults.toml").read_text())
        self.assertRegex(self.ranktune(*words, "--seeds", "2")[0].splitlines()[0], r"utilisation +jobs +repeated$")
        self.write("faults.toml", "[trial]\nrate = 0.1\n")
        self.assertIn("  1:2  trial: unknown table; did you mean [trials]?", self.ranktune(*words, code=2)[1])

    def test_the_comparison_in_the_guide_runs(self):
        done = subprocess.run([sys.executable, SOURCES / "tools/campaign/choose.py", PROGRAM, "--seeds", "2", "--groups", "4", "--only",
                               "grid, all to the end;asha, promote;pbt"], capture_output=True, text=True, timeout=300, env=environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line.split(" | ") for line in done.stdout.splitlines()[2:]]
        self.assertEqual([line[1] for line in lines], ["grid, all to the end", "asha, promote", "pbt"])
        self.assertTrue(all(line[3].endswith("/2") and line[5][0].isdigit() for line in lines), lines)

    def test_a_study_without_any_report_has_no_result(self):
        self.write()
        self.write("faults.toml", "[trials]\nrate = 0.999\n")
        out, _ = self.ranktune("simulate", "tiny.toml", "--groups", "2", "--faults", "faults.toml", code=4)
        self.assertIn("0 reports", out)

    def test_hours_end_the_study(self):
        self.write()
        self.write("model.toml", "[time]\niteration = 3600\n")
        self.ranktune("simulate", "tiny.toml", "--groups", "1", "--hours", "4", "--model", "model.toml")
        study = self.exported("tiny-simulated")
        self.assertLess(len(study["trials"]), 6)
        self.assertTrue(study["study"]["ended"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
