#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verbs that look at studies: ls, status and its options, compare, exports for other programs: views_test.py PROGRAM SOURCE_ROOT
[TEST...]"""
import csv
import fcntl
import io
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from cli_test import PROGRAM, TIMEOUT, TINY, Case, environment, sys
from kills import Kills

TWO = TINY.replace('name = "tiny"', 'name = "two"').replace("num_trials = 6", "num_trials = 12")
COMMAND = """[study]
name = "two"
metric = "score"
mode = "max"
num_trials = 4
max_iterations = 3
[trainable]
command = 'sh train.sh {x}'
[space]
x = "uniform(0, 1)"
kind = ["a", "b"]
n = "randint(1, 5)"
layers = [[1], [2, 3]]
sd = "randn(0, 1)"
fixed = 3
"""
REPORTS = r"""
for i in 1 2 3; do
  echo "{\"report\": {\"score\": 0.$i, \"loss/val\": $((4 - i)), \"odd name\": NaN}}" >&"$RANKTUNE_FD"
  read -r answer <&"$RANKTUNE_FD"
done
"""
PYTHONS = [sys.executable, "/usr/bin/python3", os.environ.get("RANKTUNE_TENSORBOARD_PYTHON", "")]


def python_with(module):
    """An interpreter that can import the module; raises SkipTest when there is none."""
    for python in PYTHONS:
        if python and subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0:
            return python
    raise unittest.SkipTest(f"no Python here has the module {module}")


class Views(Kills, Case):
    def two_metrics(self, *arguments):
        (self.cwd / "train.sh").write_text(REPORTS)
        self.write("two.toml", COMMAND)
        self.ranktune("run", "two.toml", "--local", "2", "-q", *arguments)

    def long_study(self):
        """Starts a study that ends only when it is stopped; returns its process."""
        self.write("long.toml", TINY.replace('name = "tiny"', 'name = "long"').replace("num_trials = 6", "num_trials = 1000000"))
        head = subprocess.Popen([PROGRAM, "run", "long.toml", "--local", "1", "-q"], cwd=self.cwd, env=environment(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(head.wait)
        self.addCleanup(self.kill_all)
        self.wait_until((self.cwd / "long" / "status").exists, "the study runs")
        return head


class Explain(Views):
    def test_what_training_waited_for_is_named(self):
        waits = r'\"data_wait\": 1e9, \"data_wait/disk\": 1e8, \"data_wait/decode\": 8e8'  # all of the time, whatever that is
        (self.cwd / "train.sh").write_text(REPORTS.replace(r'\"odd name\": NaN', waits))
        self.write("two.toml", COMMAND)
        self.ranktune("run", "two.toml", "--local", "2", "-q")
        spent = json.loads(self.ranktune("explain", "two", "--json")[0])["rank_seconds"]
        whole = spent["waiting for data"]
        self.assertGreater(whole, 0)
        self.assertAlmostEqual(spent["waiting for data: disk"] / whole, 1)
        self.assertAlmostEqual(spent["waiting for data: decoding"] / whole, 8)
        self.assertEqual(spent["waiting for data: map"], 0)
        self.assertRegex(self.ranktune("explain", "two")[0], r"(?m)^ *waiting for data: decoding +\d")


class List(Views):
    def test_studies_of_a_folder(self):
        self.assertIn("no studies here", self.ranktune("ls")[0])
        self.run_tiny("-q")
        self.run_tiny("-q", "-o", "other/deep", "study.num_trials=3")
        (self.cwd / "empty").mkdir()
        head = self.long_study()
        listed = json.loads(self.ranktune("ls", "--json")[0])["studies"]
        self.assertEqual([(s["directory"], s["state"]) for s in listed], [("long", "running"), ("tiny", "finished")])
        self.assertEqual(listed[0]["exit_code"], None)
        self.assertEqual({k: listed[1][k] for k in ("name", "metric", "mode", "exit_code", "trials_done", "trials", "num_trials")},
                         {"name": "tiny", "metric": "score", "mode": "max", "exit_code": 0, "trials_done": 6, "trials": 6, "num_trials": 6})
        best = json.loads(self.ranktune("best", "tiny", "--json")[0])["best"]
        self.assertEqual(listed[1]["best"], {"trial": best["trial"], "value": best["value"]})
        listed = json.loads(self.ranktune("ls", "other", "./other", "tiny", "./tiny/", "--json")[0])["studies"]
        self.assertEqual({s["directory"] for s in listed}, {"other/deep", "tiny"})
        text, _ = self.ranktune("ls")
        self.assertRegex(text, r"(?m)^ long +running +score")
        self.assertRegex(text, rf"(?m)^ tiny +finished +score +{best['value']:.4f}  #{best['trial']} +6/6 +\d")
        self.assertIn("'lost' is not a folder", self.ranktune("ls", "lost", code=2)[1])

        self.ranktune("stop", "long")
        self.assertEqual(head.wait(TIMEOUT), 75)
        self.assertRegex(self.ranktune("ls")[0], r"(?m)^ long +stopped ")

    def test_the_journal_is_read_where_the_small_files_are_not_enough(self):
        self.run_tiny("-q")
        expected = json.loads(self.ranktune("ls", "--json")[0])["studies"][0]
        study = self.cwd / "tiny"
        (study / "status").write_text('{"study": 3}')  # of another version
        found = json.loads(self.ranktune("ls", "--json")[0])["studies"][0]
        self.assertEqual({**found, "newest": None}, {**expected, "newest": None})

    def test_a_journal_that_is_damaged_or_gone_is_seen_in_the_list(self):
        self.run_tiny("-q")
        journal = self.cwd / "tiny" / "journal"
        segment = journal / "000001.h5"
        whole = segment.read_bytes()
        segment.chmod(0o644)

        def problem():
            for folder in ((), ("tiny",)):
                listed, = json.loads(self.ranktune("ls", *folder, "--json")[0])["studies"]
                self.assertEqual(listed["state"], "unreadable")
                self.assertIn(listed["problem"][:30], " ".join(self.ranktune("ls", *folder)[0].split()))
            return listed["problem"]

        for content in (b"", b"damaged", whole[:len(whole) // 2], bytes(65536) + whole[65536:]):
            segment.write_bytes(content)
            self.assertIn("000001.h5", problem())
        segment.unlink()
        self.assertIn("whose journal is gone", problem())
        journal.rmdir()
        self.assertIn("whose journal is gone", problem())
        for verb in ("status", "best", "replay", "report"):
            self.assertIn("whose journal is gone: restore the folder 'journal'", self.ranktune(verb, "tiny", code=2)[1])
        journal.mkdir()
        segment.write_bytes(whole)
        status = self.cwd / "tiny" / "status"
        text = status.read_text()
        status.write_text(text.replace('"start": 1,', '"start": 2,'))
        self.assertNotEqual(status.read_text(), text)
        listed, = json.loads(self.ranktune("ls", "--json")[0])["studies"]
        self.assertEqual(listed["problem"], "its newest records are missing: `ranktune status` says which")
        status.write_text(text)
        self.assertNotIn("problem", self.ranktune("ls", "--json")[0])

    def test_folders_that_may_not_be_read_are_named(self):
        if os.geteuid() == 0 and subprocess.run([PROGRAM, "--version"], user=65534, group=65534, extra_groups=[], cwd="/",
                                                capture_output=True, check=False).returncode != 0:
            self.skipTest("no other user may run this program")
        self.cwd.chmod(0o755)
        self.run_tiny("-q", "-o", "closed")
        (self.cwd / "closed").chmod(0o000)
        self.addCleanup((self.cwd / "closed").chmod, 0o700)
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        done = subprocess.run([PROGRAM, "ls"], cwd=self.cwd, env=environment(HOME="/"), timeout=TIMEOUT, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=True, **user)
        self.assertEqual(done.stdout.splitlines()[-1], "closed    closed: you may not read what is in there")
        self.assertIn("no studies here", done.stdout)

    def test_a_killed_and_a_simulated_study(self):
        head = self.long_study()
        self.kill_all()
        head.wait()
        self.assertEqual(json.loads(self.ranktune("ls", "--json")[0])["studies"][0]["state"], "interrupted")
        self.write()
        self.ranktune("simulate", "tiny.toml", "--groups", "2")
        listed = json.loads(self.ranktune("ls", "--json")[0])["studies"]
        self.assertEqual([s.get("simulated") for s in listed if s["name"] == "tiny"], [True])


class Status(Views):
    def test_columns_order_and_filter(self):
        self.two_metrics()
        text, _ = self.ranktune("status", "two", "--columns", "trial,loss/val,x", "--sort", "x:desc", "--filter", "trial != 0")
        rows = re.findall(r"(?m)^[ *]+#(\d)  +1\.0000  +(\S+)$", text)
        self.assertEqual(sorted(trial for trial, _ in rows), ["1", "2", "3"], text)
        self.assertEqual([float(x) for _, x in rows], sorted((float(x) for _, x in rows), reverse=True))
        self.assertIn("no trial is selected", self.ranktune("status", "two", "--filter", "state == failed")[0])
        self.assertIn("--filter: at column 18: 'y' is no metric, hyper-parameter or column of this study (trial, ",
                      self.ranktune("status", "two", "--filter", "kind in [a] and  y < 1", code=2)[1])
        self.assertIn("did you mean 'loss/val'?", self.ranktune("status", "two", "-c", "loss/vla", code=2)[1])
        self.assertIn("accepted: NAME, NAME:asc, NAME:desc", self.ranktune("status", "two", "-s", "x:up", code=2)[1])
        self.assertIn("are for text", self.ranktune("status", "two", "-s", "x", "--json", code=2)[1])
        narrow, _ = self.ranktune("status", "two", COLUMNS="60")
        self.assertRegex(narrow, r"not shown: .*loss/val, odd name; --columns")
        wide, _ = self.ranktune("status", "two", COLUMNS="160")
        self.assertNotIn("not shown", wide)
        self.assertRegex(wide, r"(?m)^ trial .* loss/val  odd name +time$")

    def test_watch_ends_with_the_study(self):
        self.run_tiny("-q")
        text, _ = self.ranktune("status", "tiny", "--watch")
        self.assertEqual(text, self.ranktune("status", "tiny")[0])
        head = self.long_study()
        watch = subprocess.Popen([PROGRAM, "status", "long", "--watch"], cwd=self.cwd, env=environment(), text=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        lines = [watch.stdout.readline() for _ in range(3)]
        trials = [int(re.search(r"(\d+)/1000000 trials", line.replace(",", ""))[1]) for line in lines]
        self.assertEqual(trials, sorted(set(trials)), "each line says more than the one before")
        self.ranktune("stop", "long")
        self.assertEqual(head.wait(TIMEOUT), 75)
        out, err = watch.communicate(timeout=TIMEOUT)
        self.assertEqual((watch.returncode, err), (0, ""))
        self.assertIn("stopped, exit 75", out)
        self.assertIn("stopped, goes on with: ranktune run long", out)

    def test_watch_redraws_a_terminal_until_it_is_interrupted(self):
        head = self.long_study()
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        watch = subprocess.Popen([PROGRAM, "status", "long", "-w"], cwd=self.cwd, env=environment(), stdin=child, stdout=child,
                                 stderr=child)
        os.close(child)
        shown = b""
        deadline = time.monotonic() + TIMEOUT
        while len(re.findall(rb"\x1b\[\d+A", shown)) < 2:
            self.assertLess(time.monotonic(), deadline, shown)
            if select.select([parent], [], [], 1.0)[0]:
                shown += os.read(parent, 65536)
        self.assertIn(b" trial  state", shown)
        watch.send_signal(signal.SIGINT)
        while True:
            try:
                if not os.read(parent, 65536):
                    break
            except OSError:
                break
        os.close(parent)
        self.assertEqual(watch.wait(TIMEOUT), -signal.SIGINT)
        self.assertIsNone(head.poll())  # whoever looks on stops nothing


class Compare(Views):
    def test_studies_side_by_side(self):
        self.run_tiny("-q")
        self.run_tiny("-q", "-o", "fifo", "scheduler.type=fifo")
        text, _ = self.ranktune("compare", "tiny", "fifo")
        self.assertRegex(text, r"(?m)^ tiny +auto +asha +6 ")
        self.assertRegex(text, r"(?m)^ fifo +auto +fifo +6 +18 ")
        self.assertIn("ranktune report tiny fifo", text)
        self.assertNotIn("differ", text)
        root = json.loads(self.ranktune("compare", "tiny", "fifo", "--json")[0])
        self.assertEqual([s["best_trial"] for s in root["studies"]],
                         [json.loads(self.ranktune("best", name, "--json")[0])["best"]["trial"] for name in ("tiny", "fifo")])
        self.run_tiny("-q", "-o", "longer", "study.max_iterations=4")
        self.assertIn("differ    max_iterations: 3 in tiny, 4 in longer", self.ranktune("compare", "tiny", "longer")[0])
        self.run_tiny("-q", "-o", "down", "study.mode=min")
        self.assertIn("'tiny' is after the max of score, 'down' after the min of score",
                      self.ranktune("compare", "tiny", "down", code=2)[1])
        self.assertIn("compare needs two studies", self.ranktune("compare", "tiny", code=2)[1])


class Export(Views):
    def test_trials_with_all_metrics(self):
        self.two_metrics()
        rows = list(csv.DictReader(io.StringIO(self.ranktune("export", "two", "--format", "csv")[0])))
        self.assertEqual([row["loss/val"] for row in rows], ["1.0"] * 4)
        self.assertEqual([row["loss/val.at_best"] for row in rows], ["1.0"] * 4)
        self.assertEqual([row["odd name"] for row in rows], ["nan"] * 4)

    def test_pandas_reads_trials_as_csv_and_as_json(self):
        python = python_with("pandas")
        self.two_metrics()
        self.ranktune("export", "two", "--format", "csv", "-o", "two.csv")
        self.ranktune("export", "two", "--format", "json", "-o", "two.json")
        script = """
import json, pandas
table = pandas.read_csv("two.csv")
whole = json.load(open("two.json"))
nested = pandas.json_normalize(whole["trials"])
series = pandas.read_json("two.json", typ="series")
print(json.dumps({"rows": len(table), "loss": table["loss/val"].tolist(), "odd": table["odd name"].isna().tolist(), "x": table["x"].tolist(),
                  "kinds": [table["x"].dtype.kind, table["n"].dtype.kind], "nested_x": nested["configuration.x"].tolist(),
                  "values": nested["best.value"].tolist(), "series": len(series["trials"])}))
"""
        done = subprocess.run([python, "-c", script], cwd=self.cwd, capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        read = json.loads(done.stdout)
        x = [trial["configuration"]["x"] for trial in self.exported("two")["trials"]]
        rounded = read.pop("x")
        self.assertEqual(read, {"rows": 4, "loss": [1.0] * 4, "odd": [True] * 4, "kinds": ["f", "i"], "nested_x": x,
                                "values": [0.3] * 4, "series": 4})
        self.assertEqual(len(rounded), 4)
        for got, exact in zip(rounded, x):
            self.assertAlmostEqual(got, exact, 12)

    def test_optuna_opens_the_journal(self):
        python = python_with("optuna")
        self.two_metrics()
        self.ranktune("export", "two", "--format", "optuna", "-o", "two.log")
        script = """
import json, sys, warnings
warnings.simplefilter("ignore")
import optuna
from optuna.storages import JournalStorage
try:
    from optuna.storages.journal import JournalFileBackend
except ImportError:  # before Optuna 4
    from optuna.storages import JournalFileStorage as JournalFileBackend
study = optuna.load_study(study_name=None, storage=JournalStorage(JournalFileBackend(sys.argv[1])))
print(json.dumps({"name": study.study_name, "direction": study.direction.name, "best": study.best_trial.number,
                  "trials": [{"state": t.state.name, "value": t.value, "params": t.params, "steps": t.intermediate_values,
                              "kinds": {n: type(d).__name__ for n, d in t.distributions.items()},
                              "inside": all(d._contains(d.to_internal_repr(t.params[n])) for n, d in t.distributions.items()),
                              "attributes": t.user_attrs, "seconds": t.duration.total_seconds()} for t in study.trials]}))
"""
        done = subprocess.run([python, "-c", script, "two.log"], cwd=self.cwd, capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        read = json.loads(done.stdout)
        trials = self.exported("two")["trials"]
        self.assertEqual((read["name"], read["direction"], len(read["trials"])), ("two", "MAXIMIZE", 4))
        self.assertEqual(read["trials"][read["best"]]["value"], 0.3)
        for trial, ours in zip(read["trials"], trials):
            configuration = dict(ours["configuration"])
            self.assertEqual((trial["state"], trial["value"]), ("COMPLETE", 0.3))
            self.assertEqual(trial["steps"], {"1": 0.1, "2": 0.2, "3": 0.3})
            self.assertEqual(trial["attributes"]["fixed"], configuration.pop("fixed"))
            configuration["layers"] = json.dumps(configuration["layers"], separators=(",", ":"))
            self.assertEqual(trial["params"], configuration)
            self.assertTrue(trial["inside"])
            self.assertEqual(trial["kinds"], {"x": "FloatDistribution", "kind": "CategoricalDistribution", "n": "IntDistribution",
                                              "layers": "CategoricalDistribution", "sd": "FloatDistribution"})
            self.assertGreaterEqual(trial["seconds"], 0.0)

        self.run_tiny("-q", "failure.tolerate=1.0")
        self.ranktune("export", "tiny", "--format", "optuna", "-o", "tiny.log")
        done = subprocess.run([python, "-c", script, "tiny.log"], cwd=self.cwd, capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        states = [trial["state"] for trial in json.loads(done.stdout)["trials"]]
        self.assertEqual(states, ["COMPLETE" if t["state"] == "finished" else "PRUNED" for t in self.exported("tiny")["trials"]])
        self.assertEqual(json.loads(done.stdout)["best"], self.exported("tiny")["study"]["best_trial"])

    def test_tensorboard_reads_the_folder(self):
        self.two_metrics()
        out, _ = self.ranktune("export", "two", "--format", "tensorboard")
        self.assertIn("tensorboard --logdir two-tensorboard", out)
        files = sorted(str(path.relative_to(self.cwd / "two-tensorboard").parent) for path in self.cwd.glob("two-tensorboard/**/events*"))
        self.assertEqual(files, [".", "trial-0000", "trial-0001", "trial-0002", "trial-0003"])
        self.assertIn("'two-tensorboard' exists", self.ranktune("export", "two", "--format", "tensorboard", code=2)[1])
        python = python_with("tensorboard")
        script = """
import json, sys
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.plugins.hparams import metadata
from tensorboard.util import tensor_util
runs = {}
multiplexer = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(sys.argv[1]).Reload()
for run in sorted(multiplexer.Runs()):
    accumulator = multiplexer.GetAccumulator(run)
    facts = {"scalars": {}, "hparams": {}}
    tags = {} if run == "." else accumulator.PluginTagToContent("scalars")
    for tag in tags:
        facts["scalars"][tag] = [[e.step, round(float(tensor_util.make_ndarray(e.tensor_proto)), 6)] for e in accumulator.Tensors(tag)]
    for tag, content in accumulator.PluginTagToContent("hparams").items():
        if tag == metadata.EXPERIMENT_TAG:
            experiment = metadata.parse_experiment_plugin_data(content)
            facts["experiment"] = [[i.name, i.type] for i in experiment.hparam_infos], [m.name.tag for m in experiment.metric_infos]
        elif tag == metadata.SESSION_START_INFO_TAG:
            info = metadata.parse_session_start_info_plugin_data(content)
            facts["hparams"] = {n: getattr(v, v.WhichOneof("kind")) for n, v in info.hparams.items()}
        elif tag == metadata.SESSION_END_INFO_TAG:
            facts["status"] = metadata.parse_session_end_info_plugin_data(content).status
    runs[run] = facts
print(json.dumps(runs))
"""
        done = subprocess.run([python, "-c", script, "two-tensorboard"], cwd=self.cwd, capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        runs = json.loads(done.stdout)
        self.assertEqual(sorted(runs), files)
        parameters, metrics = runs["."]["experiment"]
        self.assertEqual(parameters, [["x", 3], ["kind", 1], ["n", 3], ["layers", 1], ["sd", 3], ["fixed", 3]])
        self.assertEqual(metrics, ["score", "loss/val", "odd name"])
        for number, trial in enumerate(self.exported("two")["trials"]):
            run = runs[f"trial-{number:04d}"]
            self.assertEqual(run["scalars"]["score"], [[1, 0.1], [2, 0.2], [3, 0.3]])
            self.assertEqual(run["scalars"]["loss/val"], [[1, 3.0], [2, 2.0], [3, 1.0]])
            configuration = trial["configuration"]
            configuration["layers"] = json.dumps(configuration["layers"], separators=(",", ":"))
            self.assertEqual(run["hparams"], configuration)
            self.assertEqual(run["status"], 1)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
