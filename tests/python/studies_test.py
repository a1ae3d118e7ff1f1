#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package ranktune_studies: TOML, wheel, and, with a program, running and reading a study: studies_test.py SOURCE_ROOT
[PROGRAM [TEST...]]"""
import ast
import doctest
import importlib
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCES = pathlib.Path(sys.argv[1]).resolve()
PROGRAM = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
FOLDER = SOURCES / "tools/python"
sys.path.insert(0, str(FOLDER))
sys.dont_write_bytecode = True

import ranktune  # noqa: E402
import ranktune_studies  # noqa: E402

STUDY = {
    "study": {"name": "tiny", "metric": "score", "mode": "max", "num_trials": 6, "max_iterations": 3, "seed": 1},
    "trainable": {"builtin": "curve"},
    "space": {"lr": "loguniform(1e-3, 1.0)"},
    "scheduler": {"type": "asha"},
}


class Package(unittest.TestCase):
    def test_doctests(self):
        for name in ("ranktune", "ranktune_studies.toml", "ranktune_studies.reading", "ranktune_studies.launching", "ranktune_studies.asking"):
            result = doctest.testmod(importlib.import_module(name))
            self.assertGreater(result.attempted, 0, name)
            self.assertEqual(result.failed, 0, name)

    @unittest.skipIf(shutil.which("mypy") is None, "no mypy here (Debian: mypy)")
    def test_type_hints_are_strict(self):
        done = subprocess.run(["mypy", "--strict", "--cache-dir", os.devnull, str(FOLDER / "ranktune.py"), str(FOLDER / "ranktune_studies")],
                              cwd=FOLDER, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_is_of_the_standard_library_for_python_3_9_but_for_pandas(self):
        imported = set()
        for path in (FOLDER / "ranktune_studies").glob("*.py"):
            tree = ast.parse(path.read_text(), feature_version=(3, 9))
            for node in ast.walk(tree):
                if isinstance(node, ast.Import):
                    imported |= {name.name.split(".")[0] for name in node.names}
                elif isinstance(node, ast.ImportFrom) and node.level == 0:
                    imported.add(node.module.split(".")[0])
        known = getattr(sys, "stdlib_module_names", None)  # Python 3.10
        if known is not None:
            self.assertEqual(imported - set(known), {"pandas"})

    def test_the_module_of_programs_has_its_names(self):
        self.assertIs(ranktune.Study, ranktune_studies.Study)
        for name in ("run", "create", "open_study"):
            self.assertIs(getattr(ranktune, name), getattr(ranktune_studies, name))
        with self.assertRaisesRegex(AttributeError, "no attribute 'stduy'"):
            ranktune.stduy
        done = subprocess.run([sys.executable, "-S", "-c", "import sys; sys.path.insert(0, sys.argv[1])\nimport ranktune\nranktune.Study",
                               self.only_the_module()], capture_output=True, text=True, timeout=60)
        self.assertIn("ranktune.Study is in the package ranktune_studies, which is not installed here: pip install", done.stderr)

    def only_the_module(self):
        folder = tempfile.TemporaryDirectory(prefix="ranktune-python-")
        self.addCleanup(folder.cleanup)
        (pathlib.Path(folder.name) / "ranktune.py").write_bytes((FOLDER / "ranktune.py").read_bytes())
        return folder.name

    def test_the_version_is_that_of_the_project(self):
        project = re.search(r"version: '([^']+)'", (SOURCES / "meson.build").read_text())[1]
        self.assertIn(f'\nversion = "{project}"\n', (FOLDER / "pyproject.toml").read_text())

    def test_toml_is_read_back(self):
        try:
            import tomllib
        except ImportError:
            self.skipTest("reading TOML needs Python 3.11")
        nasty = {"a": 'q"\\\n\t\x01\x7fü', "b c": [1, -2.5, True, "x", [1, 2], {"y": 1}], "": 0, "e": {"f": {}}, "big": 10**15,
                 "small": 5e-324, "tables": [{"z": 1}, {}], "none": []}
        for document in (STUDY, {"top": 1, **nasty}, {"t": nasty}):
            self.assertEqual(tomllib.loads(ranktune_studies.dumps(document)), document)
        self.assertTrue(math.isnan(tomllib.loads(ranktune_studies.dumps({"x": math.nan}))["x"]))
        for wrong in (object(), b"x", {1: 2}):
            with self.assertRaises(TypeError):
                ranktune_studies.dumps({"t": {"x": wrong}})

    def test_the_wheel_is_complete(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", "import build_wheel, sys; print(build_wheel.build_wheel(sys.argv[1]))", folder],
                                  cwd=FOLDER, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True,
                                  timeout=60, check=True)
            with zipfile.ZipFile(pathlib.Path(folder) / done.stdout.strip()) as wheel:
                names = set(wheel.namelist())
        wanted = {f"ranktune_studies/{path.name}" for path in (FOLDER / "ranktune_studies").iterdir() if path.is_file()}
        self.assertEqual({name for name in names if ".dist-info" not in name}, wanted | {"ranktune.py", "ranktune_data.py", "ranktune_files.py", "ranktune_order.py", "ranktune_tasks.py", "ranktune_torch.py"})

    def test_pip_installs_it_without_network(self):
        with tempfile.TemporaryDirectory() as folder:
            if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode != 0:
                self.skipTest("there is no pip")
            done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", folder,
                                   str(FOLDER)], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = subprocess.run([sys.executable, "-c", "import ranktune; print(ranktune.Study.__module__, ranktune.__file__)"],
                                   env={**os.environ, "PYTHONPATH": folder}, capture_output=True, text=True, timeout=60, check=True)
            self.assertEqual(found.stdout.split(), ["ranktune_studies.reading", f"{folder}/ranktune.py"])
        self.assertFalse([path for path in FOLDER.rglob("*") if path.name.endswith(".egg-info") or path.name == "build"])


@unittest.skipIf(PROGRAM is None, "no program given")
class WithTheProgram(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ranktune-python-")
        self.addCleanup(directory.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(directory.name)
        os.environ["RANKTUNE_PROGRAM"] = PROGRAM

    def test_a_dict_is_run_and_read(self):
        study = ranktune.run(STUDY, workers=2, show=False)
        self.assertEqual((study.name, study.metric, study.mode, study.ended, study.exit_code), ("tiny", "score", "max", True, 0))
        self.assertEqual([trial.id for trial in study.trials], list(range(6)))
        best = max((trial for trial in study.trials if trial.best is not None), key=lambda trial: trial.best)
        self.assertEqual(study.best, best)
        self.assertEqual(best.iterations, 3)
        self.assertLessEqual({trial.origin["kind"] for trial in study.trials}, {"searcher", "ticket", "stopgap"})
        curve = study.curves()[best.id]
        self.assertEqual([iteration for iteration, _ in curve], [1, 2, 3])
        self.assertEqual(max(value for _, value in curve), best.best)
        self.assertEqual(study.curves("nonsense"), {})
        row = study.rows()[best.id]
        self.assertEqual((row["trial"], row["best"], row["lr"]), (best.id, best.best, best.configuration["lr"]))
        self.assertIn("6 trials, best ", repr(study))
        try:
            import pandas
        except ImportError:
            self.assertEqual(study.table(), study.rows())
        else:
            self.assertIsInstance(study.table(), pandas.DataFrame)
            self.assertEqual(study.table().loc[best.id, "best"], best.best)

        longer = ranktune.run("tiny.toml", "study.num_trials=7", workers=2, show=False)
        self.assertEqual(len(longer.trials), 7)
        self.assertEqual(len(study.refresh().trials), 7)
        elsewhere = ranktune.run(STUDY, directory="else where", workers=1, show=False)
        self.assertEqual((elsewhere.directory, len(elsewhere.trials)), ("else where", 6))

    @staticmethod
    def run_script(text):
        pathlib.Path("tune.py").write_text(text)
        environment = {**os.environ, "PYTHONPATH": str(FOLDER)}
        return subprocess.run([sys.executable, "tune.py"], env=environment, capture_output=True, text=True, timeout=120)

    def test_a_function_is_tuned_from_a_script_and_from_within_another_function(self):
        done = self.run_script(
            "import ranktune\n"
            "def train(config):\n"
            "    return (config.x - 1) ** 2\n"
            'if __name__ == "__main__":\n'
            '    study = ranktune.run(train, metric="loss", mode="min", num_trials=12, space={"x": "uniform(-3, 3)"},\n'
            '                         workers=2, show=False)\n'
            "    print(study.best.best, len(study.trials))\n")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        best, trials = done.stdout.split()
        self.assertLess(float(best), 1.0)
        self.assertEqual(trials, "12")

        def steps(trial):
            import math
            for i in range(3):
                trial.report(score=math.sin(trial.config.x) + i)

        study = ranktune.run(steps, name="inner", metric="score", mode="max", num_trials=4, max_iterations=3,
                             scheduler={"type": "asha", "variant": "stop"},
                             space={"x": "uniform(0, 1)"}, workers=2, show=False)
        self.assertEqual(len(study.trials), 4)
        self.assertEqual(study.best.iterations, 3)
        self.assertTrue(pathlib.Path("inner_function.py").read_text().split("\n", 1)[1].startswith("def steps(trial):\n    import math\n"))
        pathlib.Path("mine.toml").write_text("[study]\n")
        with self.assertRaisesRegex(ranktune.RanktuneError, "mine.toml' exists"):
            ranktune.run(steps, name="mine", metric="score", mode="max", num_trials=4, space={"x": [1, 2]})

    def test_a_script_that_runs_a_study_when_it_is_imported_is_told(self):
        done = self.run_script(
            "import ranktune\n"
            "def train(config):\n"
            "    return config.x\n"
            'ranktune.run(train, metric="loss", mode="min", num_trials=2, space={"x": "uniform(0, 1)"}, workers=1)\n')
        self.assertIn('put it below `if __name__ == "__main__":`', " ".join((done.stdout + done.stderr).split()))

    def test_mistakes_are_told(self):
        with self.assertRaisesRegex(TypeError, "which are for a function"):
            ranktune.run(STUDY, metric="loss")
        with self.assertRaisesRegex(ranktune.RanktuneError, "(?s)2 mistakes in tiny.toml.*space.lr"):
            ranktune.run({**STUDY, "space": {"lr": "loguniform(0, 1)"}, "scheduler": {"type": "ahsa"}}, show=False)
        with self.assertRaisesRegex(ranktune.RanktuneError, "holds no study"):
            ranktune.Study(".")
        with self.assertRaisesRegex(ranktune.RanktuneError, "cannot run '/nowhere': No such file"):
            ranktune.Study(".", program="/nowhere")
        with self.assertRaisesRegex(ranktune.RanktuneError, "the study has no name"):
            ranktune.write_study({"space": {}})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
