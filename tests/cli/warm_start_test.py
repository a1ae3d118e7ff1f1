#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Studies that learn from earlier ones, with journals that Optuna itself writes: warm_start_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import unittest

from cli_test import Case, optuna_journal, sys

try:
    import optuna
except ImportError:
    optuna = None

STUDY = """[study]
name = "{name}"
metric = "{metric}"
mode = "min"
num_trials = {trials}
max_iterations = 1
seed = 3
{study}
[trainable]
command = "sh trial.sh {{x}} {{kind}}"
checkpoints = false
[space]
x = "uniform(0, 1)"
kind = ["a", "b"]
[searcher]
type = "{searcher}"
{warm}
"""
# Trials wait for their suggestions.
PATIENT = "deterministic = true\nmax_concurrent = 2"
# Best at x = 0.9 and kind b.
TRIAL = """loss=$(awk -v x="$1" -v kind="$2" 'BEGIN { print (x - 0.9) ^ 2 + (kind == "a") }')
echo "{\\"report\\": {\\"loss\\": $loss}}" >&"$RANKTUNE_FD"
read -r answer <&"$RANKTUNE_FD"
"""


class WarmStart(Case):
    def study(self, name="new", trials=8, searcher="tpe", warm="", metric="loss", study=""):
        self.write("trial.sh", TRIAL)
        self.write(name + ".toml", STUDY.format(name=name, trials=trials, searcher=searcher, warm=warm, metric=metric, study=study))

    def run_study(self, name="new", *more, **options):
        return self.ranktune("run", name + ".toml", "--local", "2", *more, **options)

    def good(self, name="new"):
        """How many trials are near the best."""
        trials = self.exported(name)["trials"]
        return sum(abs(trial["configuration"]["x"] - 0.9) < 0.2 and trial["configuration"]["kind"] == "b" for trial in trials)

    @unittest.skipUnless(optuna, "needs Optuna")
    def test_a_journal_that_optuna_wrote(self):
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        storage = optuna_journal(optuna, self.cwd / "optuna.log")

        def objective(trial):
            x = trial.suggest_float("x", 0.0, 1.2)
            kind = trial.suggest_categorical("kind", ["a", "b"])
            if trial.number == 7:
                raise ValueError("no")
            if trial.number == 9:
                return float("nan")
            trial.report(float("inf"), 0)
            return (x - 0.9) ** 2 + (kind == "a")

        theirs = optuna.create_study(storage=storage, study_name="theirs", sampler=optuna.samplers.RandomSampler(seed=1))
        theirs.enqueue_trial({"x": 0.5, "kind": "b"})
        theirs.optimize(objective, n_trials=60, catch=(ValueError,))
        theirs.add_trial(optuna.trial.create_trial(params={"x": 0.25, "kind": "a"}, value=1.4,
                                                   distributions=theirs.trials[0].distributions))
        inside = [trial for trial in theirs.trials if trial.params["x"] < 1.0]
        self.study(warm='warm_start = ["optuna.log"]', study=PATIENT)
        out = " ".join(self.run_study()[0].split())
        self.assertIn(f"earlier {len(inside)} trials of ", out)
        self.assertIn(f"left out: {61 - len(inside)} trials (x outside uniform(0.0, 1.0))", out)
        self.assertGreaterEqual(self.good(), 4)
        # Neither replay nor a later start needs the file.
        (self.cwd / "optuna.log").unlink()
        self.ranktune("replay", "new", "--verify")
        self.run_study("new", "study.num_trials=12")
        self.ranktune("replay", "new", "--verify")
        self.assertEqual(len(self.exported("new")["trials"]), 12)
        # A new study does.
        error = " ".join(self.run_study("new", "--fresh", code=2)[1].split())
        self.assertIn("optuna.log: there is no such file; it is needed until the study has begun", error)

    def test_a_study_directory_and_its_table(self):
        self.study(name="old", trials=40, searcher="random")
        self.run_study("old")
        (self.cwd / "old.csv").write_text(self.ranktune("export", "old", "--format", "csv")[0])
        for source in ("old", "old.csv"):
            for searcher in ("auto", "evolution"):
                self.study(name="new", searcher=searcher, warm=f'warm_start = ["{source}"]', study=PATIENT)
                out = " ".join(self.run_study("new", "--fresh")[0].split())
                self.assertIn("earlier 40 trials of ", out)
                self.assertGreaterEqual(self.good(), 2, searcher)
                self.ranktune("replay", "new", "--verify")
        # The study that --fresh moves away can be the one to learn from.
        self.study(name="old", trials=4, searcher="tpe", warm='warm_start = ["old"]')
        self.assertIn("earlier 40 trials of ", " ".join(self.run_study("old", "--fresh")[0].split()))

    def test_deterministic_studies_and_simulations_learn_too(self):
        self.study(name="old", trials=20, searcher="random")
        self.run_study("old")
        configurations = []
        for ranks in ("1", "3"):
            self.study(warm='warm_start = ["old"]', study=PATIENT)
            self.ranktune("run", "new.toml", "--local", ranks, "--fresh")
            configurations.append([trial["configuration"] for trial in self.exported("new")["trials"]])
        self.assertEqual(*configurations)
        self.ranktune("simulate", "new.toml", "--groups", "4", "-o", "virtual")
        self.ranktune("replay", "virtual", "--verify")

    def test_mistakes_come_before_the_start(self):
        self.study(name="old", trials=4, searcher="random")
        self.run_study("old")
        self.study(warm='warm_start = ["old"]', metric="score")
        error = " ".join(self.ranktune("validate", "new.toml", code=2)[1].split())
        self.assertIn("old: its trials never reported 'score'; they reported loss.", error)
        self.study(warm='warm_start = [{ path = "old", metric = "loss" }]', metric="score")
        out = " ".join(self.ranktune("validate", "new.toml")[0].split())
        self.assertIn("earlier 4 trials of ", out)
        self.study(warm='warm_start = ["old"]')
        text = (self.cwd / "new.toml").read_text().replace('mode = "min"', 'mode = "max"')
        self.write("new.toml", text)
        error = " ".join(self.run_study(code=2)[1].split())
        self.assertIn("old: its study minimises 'loss', this one does the opposite; the values cannot mean the same", error)
        self.assertFalse((self.cwd / "new").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
