#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs as trials as their users see them, from the command line: flow_test.py PROGRAM SOURCE_ROOT [TEST...]

Programs of the standard library, and numpy_ddp.py: the PyTorch tutorial's flow without PyTorch.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
SOURCES = pathlib.Path(sys.argv[2]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT = 150

STUDY = """[study]
name = "s"
metric = "{metric}"
mode = "max"
num_trials = {trials}
max_iterations = {ceiling}
seed = 1
[trainable]
command = '''{command}'''
{more}
[resources]
ranks = {ranks}
[space]
{space}
"""


def environment():
    unwanted = ("SLURM_", "OMPI_", "PMIX_", "PMI_", "RANKTUNE_", "PYTHON")
    env = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {**env, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ranktune-flow-")
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)

    def ranktune(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, *arguments], cwd=self.folder, env=environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def study(self, command, *overrides, metric="score", trials=6, ceiling=9, ranks=1, more="", workers=2, code=0,
              space='x = "uniform(0, 1)"'):
        """Runs a study; returns what it printed."""
        (self.folder / "s.toml").write_text(STUDY.format(metric=metric, trials=trials, ceiling=ceiling, command=command,
                                                         ranks=ranks, more=more, space=space))
        return self.ranktune("run", "s.toml", "--local", str(workers), *overrides, code=code)

    def python(self, script):
        (self.folder / "script.py").write_text(textwrap.dedent(script))
        return f"{sys.executable} -u script.py {{args}}"

    def export(self, name="s"):
        """{trial: row}, each with its reports as [{iteration, attempt, metrics...}]."""
        import csv
        import io

        trials = {row["id"]: {**row, "reports": []}
                  for row in json.loads(self.ranktune("export", name, "--format", "json"))["trials"]}
        table = self.ranktune("export", name, "--format", "csv", "--table", "reports")
        for row in csv.DictReader(io.StringIO(table)):
            trials[int(row["trial"])]["reports"].append(
                {key: float(value) for key, value in row.items() if key not in ("verdict",) and value})
        for trial in trials.values():
            self.assertEqual([report["iteration"] for report in trial["reports"]],
                             list(range(1, len(trial["reports"]) + 1)), "each iteration is trained once")
        return trials


class DataParallel(Case):
    """Two processes per trial that find each other as under torchrun."""

    SPACE = 'lr = "loguniform(1e-3, 1.0)"\nbatch_size = [32, 64, 128]'

    def run_digits(self, *overrides, workers=4):
        command = (f"{sys.executable} -u {HERE}/numpy_ddp.py --data={SOURCES}/jobs/digits/digits.h5 "
                   "--epochs={iterations} {args}")
        return self.study(command, *overrides, metric="val_accuracy", trials=9, ranks=2, space=self.SPACE, workers=workers)

    def test_promoted_trials_go_on_from_their_own_checkpoints(self):
        self.run_digits('scheduler.type="asha"')
        trials = self.export()
        self.assertEqual(len(trials), 9)
        again = [trial for trial in trials.values() if trial["reports"][-1]["attempt"] > 1]
        self.assertTrue(again)  # how many depends on who comes first
        for trial in trials.values():
            self.assertIn(trial["state"], ("paused", "finished", "stopped"))
            for before, after in zip(trial["reports"], trial["reports"][1:]):
                same = before["attempt"] == after["attempt"]
                self.assertEqual(after["started_at"], before["started_at"] if same else before["iteration"])
        self.assertGreater(max(trial["best"]["value"] for trial in trials.values()), 0.9)
        self.assertIn(9, {len(trial["reports"]) for trial in trials.values()})

    def test_the_stopping_form_starts_every_trial_once(self):
        self.run_digits('scheduler.type="asha"', "scheduler.variant=stop")
        trials = self.export()
        self.assertEqual({report["attempt"] for trial in trials.values() for report in trial["reports"]}, {1})
        self.assertEqual({report["started_at"] for trial in trials.values() for report in trial["reports"]}, {0})
        self.assertGreater(max(trial["best"]["value"] for trial in trials.values()), 0.9)


class Examples(Case):
    def test_the_template_runs_as_it_is_written(self):
        self.ranktune("init", "mine", "--template", "program")
        (self.folder / "ranktune.py").unlink()  # a study needs no copy of it
        self.ranktune("run", "mine.toml", "--local", "2", "study.num_trials=9")
        trials = self.export("mine")
        self.assertEqual(len(trials), 9)
        self.assertTrue(any(trial["reports"][-1]["attempt"] > 1 for trial in trials.values()))

    def test_the_shell_function_of_the_guide(self):
        page = (SOURCES / "docs/guides/programs.md").read_text()
        script = page.split("```bash\n", 1)[1].split("```", 1)[0]
        (self.folder / "train.sh").write_text(script)
        simulate = self.folder / "simulate"
        simulate.write_text('#!/bin/sh\necho "${1#--step=}.5"\n')
        simulate.chmod(0o755)
        self.study("bash -eu train.sh {args}", 'scheduler.type="asha"', "scheduler.variant=stop", metric="loss",
                   more="checkpoints = false")
        trials = self.export()
        self.assertEqual(len(trials), 6)
        self.assertTrue(any(len(trial["reports"]) == 9 for trial in trials.values()))

    def test_restarted_from_the_beginning_without_checkpoints(self):
        command = self.python("""
            import ranktune
            assert ranktune.checkpoint() is None and ranktune.context().iteration == 0
            for i in range(1, ranktune.context().iterations + 1):
                ranktune.report(score=ranktune.config().x + i)
        """)
        self.study(command, 'scheduler.type="asha"', "scheduler.restart_paused=true", more="checkpoints = false")
        rows = json.loads(self.ranktune("export", "s", "--format", "json"))["trials"]
        self.assertEqual({row["state"] for row in rows} - {"paused", "finished", "stopped"}, set())
        self.assertGreater(max(len(row["attempts"]) for row in rows), 1)


class Mistakes(Case):
    def test_a_program_that_never_reports_is_told_how(self):
        out = self.study("true", code=4)
        self.assertIn("ended without a single report", out)

    def test_a_report_without_the_metric_ends_the_study_and_names_what_it_has(self):
        command = self.python("""
            import ranktune
            ranktune.report(scores=1.0, loss=2.0)
        """)
        out = self.study(command, code=2)
        self.assertRegex(out, r"lacks the study's metric 'score'; it has\s+scores, loss\. Did you mean")

    def test_the_message_of_a_failure_has_the_last_words_of_the_program(self):
        command = self.python("""
            import ranktune
            ranktune.report(score=1.0)
            import datasets_that_nobody_has
        """)
        out = self.study(command, code=4)
        self.assertIn("No module named 'datasets_that_nobody_has'", out)

    def test_a_program_whose_rank_0_alone_reports_is_stopped_at_its_rung(self):
        command = self.python("""
            import os, ranktune, time
            if os.environ["RANK"] == "0":
                for i in range(100):
                    ranktune.report(score=i)
            else:
                time.sleep(1000)
        """)
        self.study(command, ranks=2, ceiling=3, trials=1)
        self.assertEqual(len(self.export()[0]["reports"]), 3)

    def test_a_program_that_ignores_decisions_is_stopped(self):
        command = self.python("""
            import json, os, time
            while True:
                os.write(int(os.environ["RANKTUNE_FD"]), b'{"report": {"score": 1}}\\n')
                time.sleep(0.01)
        """)
        self.study(command, 'run.abort_grace="1s"', ceiling=3, trials=2)
        self.assertEqual({len(trial["reports"]) for trial in self.export().values()}, {3})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
