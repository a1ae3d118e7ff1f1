#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Studies with several objectives, as a user runs them: objectives_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import csv
import json
import os
import shutil
import sys
import unittest

from cli_test import PROGRAM, SOURCES, Case, optuna_journal

try:
    import h5py
except ImportError:
    h5py = None
try:
    import optuna
except ImportError:
    optuna = None

STUDY = """[study]
name = "both"
metric = ["accuracy", "latency"]
mode = ["max", "min"]
num_trials = {trials}
max_iterations = 3
seed = 1
{study}
[trainable]
command = "sh trial.sh {{x}} {{y}}"
checkpoints = false
[space]
x = "uniform(0, 1)"
y = "uniform(0, 1)"
[searcher]
type = "{searcher}"
[scheduler]
{scheduler}
"""
# The larger x, the better and the slower; y only harms. Each iteration improves both a little.
TRIAL = """for i in 1 2 3; do
    awk -v x="$1" -v y="$2" -v i=$i 'BEGIN { printf "{\\"report\\": {\\"accuracy\\": %.6f, \\"latency\\": %.6f}}\\n", x - y * y + i / 10, x * x + y - i / 10 }' >&"$RANKTUNE_FD"
    read -r answer <&"$RANKTUNE_FD"
    case $answer in *stop*) exit 0;; esac
done
"""
STOP = 'type = "asha"\nvariant = "stop"\neta = 2'


def beats(a, b):
    return a[0] >= b[0] and a[1] <= b[1] and a != b


class Objectives(Case):
    def study(self, trials=16, searcher="nsga2", scheduler=STOP, study=""):
        self.write("trial.sh", TRIAL)
        self.write("both.toml", STUDY.format(trials=trials, searcher=searcher, scheduler=scheduler, study=study))

    def run_both(self, *more, **options):
        self.study(**options)
        return self.ranktune("run", "both.toml", "--local", "2", "--fresh", *more)[0]

    def front_by_hand(self):
        """From what the trials reported last."""
        last = {}
        for report in self.exported("both")["reports"]:
            last[report["trial"]] = (report["metrics"]["accuracy"], report["metrics"]["latency"])
        return {trial for trial, own in last.items() if not any(beats(other, own) for other in last.values())}, last

    def test_the_front_everywhere(self):
        for searcher in ("random", "nsga2"):
            end = " ".join(self.run_both(searcher=searcher).split())
            front, last = self.front_by_hand()
            best = [max(front, key=lambda t: (last[t][0], -t)), min(front, key=lambda t: (last[t][1], t))]
            self.assertIn(f"front {len(front)} of 16 trials: accuracy {last[best[0]][0]:.4f} (#{best[0]})", end)
            self.assertIn(f"latency {last[best[1]][1]:.4f} (#{best[1]})", end)
            self.assertRegex(self.ranktune("ls", "both")[0], rf"(?m)^ both +finished +accuracy and latency +front of {len(front)} +16/16 ")
            shown = json.loads(self.ranktune("best", "both", "--format", "json")[0])["front"]
            self.assertEqual({each["trial"] for each in shown}, front)
            for each in shown:
                self.assertEqual((each["values"]["accuracy"], each["values"]["latency"]), last[each["trial"]])
            self.assertEqual(shown, sorted(shown, key=lambda each: -each["values"]["accuracy"]))
            text = self.ranktune("best", "both")[0]
            self.assertIn(f"{len(front)} trials of 16: no trial is better in one objective", " ".join(text.split()).replace("1 trial of", "1 trials of"))
            for trial in front:
                self.assertRegex(text, rf"(?m)^ +#{trial} ")
            status = self.ranktune("status", "both")[0]
            self.assertIn(f"front {len(front)} trial", status)
            self.assertRegex(status, r"accuracy +latency")
            exported = self.exported("both")
            self.assertEqual(set(exported["study"]["front"]), front)
            self.assertEqual([each["metric"] for each in exported["study"]["objectives"]], ["accuracy", "latency"])
            rows = list(csv.DictReader(self.ranktune("export", "both", "--format", "csv")[0].splitlines()))
            self.assertEqual({int(row["trial"]) for row in rows if row["pareto_rank"] == "0"}, front)
            some = next(iter(front))
            explained = " ".join(self.ranktune("explain", "both", str(some))[0].split())
            self.assertIn("on the Pareto front", explained)
            self.assertRegex(explained, r"place \d+ of \d+ in accuracy; \d+ went on, by all objectives: it went on")
            self.ranktune("replay", "both", "--verify")
            self.ranktune("report", "both", "-o", "report.html")
            page = (self.cwd / "report.html").read_text()
            self.assertIn('"objectives":[{"metric":"accuracy","mode":"max"},{"metric":"latency","mode":"min"}]', page)
            self.assertIn("<h2>Pareto front</h2>", page)

    def test_the_same_study_in_two_runs_is_that_of_one(self):
        order = "deterministic = true\nmax_concurrent = 3"
        self.run_both(study=order)
        whole = self.exported("both")
        self.ranktune("run", "both.toml", "--local", "1", "--fresh", "--set", "study.num_trials=9")
        self.ranktune("run", "both", "--local", "3", "--set", "study.num_trials=16")
        parts = self.exported("both")
        self.assertEqual(parts["study"]["front"], whole["study"]["front"])
        for one, other in zip(whole["trials"], parts["trials"]):
            self.assertEqual((one["configuration"], one["best"], one["state"]),
                             (other["configuration"], other["best"], other["state"]))
        self.ranktune("replay", "both", "--verify")

    @unittest.skipUnless(h5py, "needs h5py")
    def test_tables(self):
        self.run_both()
        front, last = self.front_by_hand()
        with h5py.File(self.cwd / "both/metrics.h5") as file:
            self.assertEqual(file.attrs["objectives"], "accuracy (max), latency (min)")
            trials = file["trials"]
            self.assertEqual({i for i, rank in enumerate(trials["pareto_rank"]) if rank == 0}, front)
            for trial in front:
                self.assertEqual((trials["best"][trial], trials["best.latency"][trial]), last[trial])

    @unittest.skipUnless(optuna, "needs Optuna")
    def test_optuna_reads_all_objectives(self):
        self.run_both(scheduler='type = "fifo"')
        (self.cwd / "optuna.log").write_text(self.ranktune("export", "both", "--format", "optuna")[0])
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        storage = optuna_journal(optuna, self.cwd / "optuna.log")
        study = optuna.load_study(study_name="both", storage=storage)
        self.assertEqual([direction.name for direction in study.directions], ["MAXIMIZE", "MINIMIZE"])
        self.assertEqual({trial.number for trial in study.best_trials}, self.front_by_hand()[0])

    @unittest.skipUnless(optuna, "needs Optuna")
    def test_optuna_makes_the_suggestions(self):
        shutil.copy(SOURCES / "jobs" / "external-optuna" / "optuna_search.py", self.cwd)
        command = f"{sys.executable} optuna_search.py | tee ready"
        self.study(searcher=f'external"\ncommand = "{command}', scheduler='type = "fifo"')
        self.write("trial.sh", "until [ -s ready ] || grep -qs no-suggestion both/logs/start-1.log; do sleep 0.05; done\n" + TRIAL)
        out, _ = self.ranktune("run", "both.toml", "--local", "2")
        self.assertIn("16 trials, 16 ok", out)
        self.assertNotIn("no-suggestion", (self.cwd / "both" / "logs" / "start-1.log").read_text())
        kinds = [trial["origin"]["kind"] for trial in self.exported("both")["trials"]]
        self.assertGreaterEqual(kinds.count("ticket"), 1, kinds)

    def test_python_reads_the_front(self):
        self.run_both()
        sys.path.insert(0, str(SOURCES / "tools/python"))
        import ranktune_studies
        study = ranktune_studies.Study(self.cwd / "both", program=PROGRAM)
        self.assertEqual(study.objectives, [("accuracy", "max"), ("latency", "min")])
        front, last = self.front_by_hand()
        self.assertEqual({trial.id for trial in study.front}, front)
        for trial in study.front:
            self.assertEqual(trial.values, last[trial.id])

    def test_trials_of_the_front_keep_their_weights(self):
        self.write("both.toml", """[study]
name = "both"
metric = ["val_accuracy", "train_loss"]
mode = ["max", "min"]
num_trials = 6
max_iterations = 2
seed = 1
[trainable]
builtin = "mlp"
data = "digits.h5"
hidden = [8]
[space]
lr = "loguniform(1e-3, 0.5)"
[checkpoint]
interval = 1
""")
        os.symlink(SOURCES / "jobs/digits/digits.h5", self.cwd / "digits.h5")
        self.ranktune("run", "both.toml", "--local", "2")
        front = json.loads(self.ranktune("best", "both", "--format", "json")[0])["front"]
        for each in front:
            self.assertTrue((self.cwd / "both" / each["checkpoint"]).exists(), each)
            self.ranktune("checkpoint", "both", str(each["trial"]))
        others = {trial["id"]: trial["checkpoints"] for trial in self.exported("both")["trials"]}
        for each in front:
            others.pop(each["trial"])
        self.assertFalse(any(others.values()))

    def test_what_knows_one_metric_says_so(self):
        self.study(scheduler='type = "median"')
        error = self.ranktune("run", "both.toml", "--local", "2", code=2)[1]
        self.assertIn('scheduler.type: "median" compares trials by one metric, and study.metric names 2; use "fifo", "asha"',
                      " ".join(error.split()))
        self.study()
        self.write("model.toml", "")
        error = self.ranktune("simulate", "both.toml", "--model", "model.toml", "--groups", "2", code=2)[1]
        self.assertIn("a simulation has curves of one metric, and study.metric names 2", " ".join(error.split()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
