#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that predict in programs: predict_programs_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import json
import os
import re
import unittest

import h5py
import numpy as np

import predict_test
from cli_test import SOURCES, sys

PYTHON = sys.executable
# Softmax regression.
TRAIN = """
import sys, h5py, numpy as np, ranktune
with h5py.File("digits.h5") as file:
    (x, y), (val_x, val_y) = ((file[part]["x"][:].astype(np.float32), file[part]["y"][:]) for part in ("train", "val"))
w, b = np.zeros((64, 10), np.float32), np.zeros(10, np.float32)

def save(folder):
    np.savez(folder + "/weights.npz", w=w, b=b)
    return folder + "/weights.npz"

for epoch in range(2):
    z = x @ w + b
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y.astype(int)] -= 1
    w -= float(sys.argv[1]) * (x.T @ p) / len(y)
    b -= float(sys.argv[1]) * p.mean(axis=0)
    ranktune.report(val_accuracy=float(((val_x @ w + b).argmax(1) == val_y).mean()), checkpoint=save)
"""
# What each process notes before the example of the guide begins.
STARTED = """
import json, os, ranktune
with open("started", "a") as started:
    print(json.dumps([os.getpid(), ranktune.context().trial, ranktune.checkpoint(), ranktune.config()]), file=started)
"""


def examples():
    """The Python of the guide: a function with its model, and a program."""
    return re.findall(r"```python\n(.*?)```", (SOURCES / "docs/guides/predict.md").read_text(), re.DOTALL)


def example():
    return examples()[1]


def probabilities(x, weights):
    z = x @ weights["w"] + weights["b"]
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


class Programs(predict_test.Predictions):
    @classmethod
    def write_study(cls):
        cls.trained.write("train.py", TRAIN)
        cls.trained.write("predict.py", STARTED + example())
        text = predict_test.STUDY.replace('builtin = "mlp"\ndata = "digits.h5"\nhidden = [16]', f'command = "{PYTHON} train.py {{lr}}"')
        cls.trained.write("digits.toml", text + f'[predict]\ncommand = "{PYTHON} predict.py"\n')

    def setUp(self):
        super().setUp()
        (self.cwd / "started").unlink(missing_ok=True)
        self.command = ["--command", f"{PYTHON} predict.py"]
        (self.cwd / "bin").mkdir()
        (self.cwd / "bin/python3").symlink_to(PYTHON)
        self.path = {"PATH": f"{self.cwd}/bin:{os.environ['PATH']}"}  # this Python has NumPy

    def program(self, changed=("", "")):
        """The example, with a text replaced."""
        self.assertIn(changed[0], example())
        self.write("predict.py", STARTED + example().replace(*changed))

    def started(self):
        """Process, trial, checkpoint and configuration of each process so far."""
        return [json.loads(line) for line in (self.cwd / "started").read_text().splitlines()]

    def failures(self):
        """Messages of failed ranges of y.h5."""
        trials = self.exported("y.h5.predict")["trials"]
        return {trial["configuration"]["range"]: trial["message"] for trial in trials if trial["state"] == "failed"}

    def test_the_example_of_the_guide(self):
        self.many(9000)
        self.predict("best", *self.command, "--input", "many.npy", "--range", "1024", "--batch", "100")
        data, attributes = self.read()
        started = self.started()
        self.assertLessEqual(len(started), 2, "a process of each rank predicts all its ranges")
        _, trial, checkpoint, config = started[0]
        best = self.best("digits")
        self.assertEqual((trial, attributes["trial"], config), (best["id"], str(best["id"]), best["configuration"]))
        x = np.load(self.cwd / "many.npy")
        p = probabilities(x, np.load(checkpoint))
        np.testing.assert_allclose(data["y"], p, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(data["class"], data["y"].argmax(axis=1))
        self.assertIn("9 ranges compared, 0 differ, 0 missing", self.predict("best", *self.command, "--input", "many.npy", "--range", "1024", "--batch", "100", "--verify")[0])
        for process, *_ in started:
            self.assertFalse(os.path.exists(f"/proc/{process}"), "told to stop at the end")

    def test_the_command_of_the_study_works_where_its_programs_do(self):
        (self.cwd / "predict.py").unlink()
        self.predict("best", "--input", "digits.h5:val/x")
        data, _ = self.read()
        with h5py.File(self.cwd / "digits.h5") as file:
            self.assertAlmostEqual(float((data["class"] == file["val/y"][:]).mean()), self.best("digits")["best"]["value"], places=12)

    def test_ensembles_against_numpy(self):
        line = ["--input", "digits.h5:val/x", *self.command]
        alone = {}
        for trial in range(3):
            self.predict(trial, *line, output=f"{trial}.h5")
            alone[trial] = self.read(f"{trial}.h5")[0]
        said = {}
        for how in ("mean", "vote", "all"):
            self.predict("best", "--top", "3", "--combine", how, *line, output=f"{how}.h5")
            said[how], attributes = self.read(f"{how}.h5")
        self.check_ensembles(alone, said, attributes)

    def test_models_that_need_too_much_memory_predict_one_after_the_other(self):
        self.many(4096)
        line = ["--top", "3", "--input", "many.npy", "--range", "1024", "--batch", "100", *self.command]
        self.predict("best", *line, output="together.h5")
        self.assertLessEqual(len(self.started()), 6, "a process for each model and rank")
        (self.cwd / "started").unlink()
        self.predict("best", *line, "--set", "trainable.memory_gb=1e-6")
        self.assertEqual(len(self.started()), 12, "a process for each model and range")
        self.assertEqual((self.cwd / "y.h5").read_bytes(), (self.cwd / "together.h5").read_bytes())

    def test_a_function_predicts_with_a_model_that_is_loaded_once(self):
        """That of the guide, a class, and no classes: one process and one call of `load` per model and rank."""
        self.many(9000)
        line = ["--input", "many.npy", "--range", "1024", "--batch", "100"]
        self.predict("best", *self.command, *line, output="program.h5")
        program = (self.cwd / "program.h5").read_bytes()
        (self.cwd / "started").unlink()
        function = examples()[0]
        body = "    def __call__(self, batch):\n" + re.search(r"def predict\(model, batch\):[^\n]*\n(.*)", function, re.DOTALL).group(1).replace("    ", "        ")
        class_ = "import numpy as np\nclass Model:\n    def __init__(self, config, checkpoint):\n        assert set(config) == {'lr'}\n        model = self.model = np.load(checkpoint)\n"
        for name, text in (("predict", function), ("Model", class_ + body.replace("model[", "self.model["))):
            with self.subTest(name):
                self.write("function.py", STARTED + text)
                self.predict("best", "--python", f"function.py:{name}", *line, "--fresh", **self.path)
                self.assertEqual((self.cwd / "y.h5").read_bytes(), program)
                self.assertLessEqual(len(self.started()), 2)
                (self.cwd / "started").unlink()
        # In the study file, with an ensemble, and y alone.
        text = (self.cwd / "digits.toml").read_text()
        self.write("function.py", STARTED + re.sub(r"return {.*", "return p", function.replace("(checkpoint, config)", "(path)").replace("np.load(checkpoint)", "np.load(path)")))
        self.write("other.toml", text[:text.index("[predict]")].replace('"digits"', '"other"') + f'[predict]\npython = "function.py:predict"\ninterpreter = "{PYTHON}"\n')
        self.ranktune("run", "other.toml", "--local", "2")
        self.ranktune("predict", "other", "best", "--top", "2", "--combine", "all", *line, "-o", "all.h5", "--local", "2")
        self.assertLessEqual(len(self.started()), 4, "a process for each model and rank")
        self.assertEqual(self.read("all.h5")[0]["y"].shape, (9000, 2, 10))
        self.assertNotIn("class", self.read("all.h5")[0])

    def test_what_is_wrong_with_a_function_is_said(self):
        self.many(2000)
        line = ["--input", "many.npy", "--python", "function.py:predict"]
        load, predict = "def load(checkpoint, config):\n    return 1\n", "def predict(model, batch):\n    return "
        for text, said in ((predict + "0", "has no function load(checkpoint, config) that makes the model for predict(model, batch)"),
                           (load + predict + "None", "function.py:predict returned None for the samples from 0 on, not y or {'y': ..., 'classes': ...}"),
                           (load + predict + "{'y': batch['x'], 'class': batch['x']}", "returned a dict of y, class for the samples"),
                           (load + predict + "batch['x'][1:].astype('f4')", "y has the shape [255, 64], and the batch 256 rows"),
                           (load.replace("return 1", "raise OSError('no weights')") + predict + "0", "OSError: no weights (function.py:2)"),
                           (load + predict + "batch['z']", "the samples have no 'z'; they have x")):
            with self.subTest(text):
                self.write("function.py", text)
                self.predict("best", *line, "--fresh", code=4, **self.path)
                self.assertIn(said, self.failures()[0])

    def test_mlp_says_the_same_in_a_program(self):
        self.write("mlp.toml", predict_test.STUDY.replace('"digits"', '"mlp"'))
        self.ranktune("run", "mlp.toml", "--local", "2")
        self.write("mlp.py", """
import sys, h5py, numpy as np, ranktune
with h5py.File(sys.argv[1]) as file:
    w = {name: file["tensors"][name][:] for name in file["tensors"]}
for batch in ranktune.predict():
    z = (batch["x"] - w["input.shift"]) * w["input.factor"]
    z = np.maximum(z @ w["layers.0.weight"].T + w["layers.0.bias"], 0) @ w["layers.1.weight"].T + w["layers.1.bias"]
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    batch.write(p, classes=p.argmax(axis=1))
""")
        for output, more in (("cpp.h5", []), ("python.h5", ["--command", f"{PYTHON} mlp.py {{checkpoint}}"])):
            self.ranktune("predict", "mlp", "best", "--input", "digits.h5:val/x", "-o", output, "--local", "1", *more)
        cpp, python = self.read("cpp.h5"), self.read("python.h5")
        np.testing.assert_allclose(python[0]["y"], cpp[0]["y"], rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(python[0]["class"], cpp[0]["class"])
        self.assertEqual({**python[1], "combine": ""}, {**cpp[1], "combine": ""})

    def test_what_fails_fails_its_range_and_others_go_on(self):
        """Range 2 (samples 2048 to 3071) goes wrong in each way."""
        self.many(5000)
        line = ["--input", "many.npy", "--range", "1024", "--batch", "256", *self.command, "failure.iteration_timeout=10s"]
        self.predict("best", *line, output="undisturbed.h5")
        write = "batch.write(p, classes=p.argmax(axis=1))"
        for number, (wrong, said) in enumerate((
                ('raise ValueError("no such digit")', "ValueError: no such digit (predict.py:"),
                ("print('out of luck', flush=True); os._exit(3)", "exit code 3"),
                ("os._exit(0)", "ended, with exit code 0, before all was predicted"),
                ("p[7, 3] = np.nan; " + write, "the prediction for sample 2311 is NaN"),
                ("batch.write(p[1:])", "y has the shape [255, 10], and the batch 256 rows"),
                ("batch.write(p)", "predictions are float32 [10], others are float32 [10], with a class"),
                ("batch.write(p[:, :9], classes=p.argmax(axis=1) % 9)", "predictions are float32 [9], with a class, others are float32 [10], with a class"),
                ("import time; time.sleep(1000)", "the task took longer than 10s (failure.iteration_timeout)"),
                ("ranktune.report(loss=1)", "gives them with batch.write()"),
                ("batch._link.tell({'predicted': 99, 'dtype': 'float32', 'shape': [1]}); batch._written = True", "has predicted batch 99, and batch "),
                ("batch._link.tell({'predicted': batch._message['batch'], 'dtype': 'float32', 'shape': [255, 10]}); batch._written = True",
                 "got 256 samples and puts `y` with 255 rows"),
                ("batch._link.tell({'predicted': batch._message['batch'], 'dtype': 'float32', 'shape': [256, 10**12]}); batch._written = True",
                 "and the memory of the batch has fewer"))):
            with self.subTest(wrong):
                # The second batch of the range: the first one is written.
                self.program((write, f"if batch.first == 2304:\n        {wrong}\n    else:\n        {write}"))
                self.predict("best", *line, "--fresh", code=3)
                failures = self.failures()
                self.assertEqual(list(failures), [2])
                self.assertIn(said, failures[2])
                if number % 6 == 0:
                    self.program()
                    self.predict("best", *line, "--restart-errored")
                    self.assertEqual((self.cwd / "y.h5").read_bytes(), (self.cwd / "undisturbed.h5").read_bytes())

    def test_samples_that_nobody_predicted_are_named(self):
        self.many(5000)
        loop = "for batch in ranktune.predict():"
        self.program((loop, f"import time\n{loop}\n    while not os.path.exists('go'): time.sleep(0.05)"))
        line = [*self.command, "--input", "many.npy", "--range", "1024"]
        process = self.begin(*line, "-o", "y.h5")
        self.addCleanup(self.kill_all)
        begun = self.cwd / "started"
        self.wait_until(lambda: process.poll() is not None or (begun.exists() and begun.read_text().count("\n") == 2), "two processes")
        self.assertIn("accepted", self.ranktune("cancel", "y.h5.predict", "1")[0])
        (self.cwd / "go").write_text("")
        self.assertEqual(process.wait(), 3)
        out, _ = self.predict("best", *line, code=3)
        said = " ".join(out.split())
        self.assertIn("not predicted, zero in the output: samples 1024 to 2047", said)
        self.assertIn("--restart-errored", said)
        self.assertEqual([trial["reason"] for trial in self.exported("y.h5.predict")["trials"] if trial["state"] == "failed"], ["cancelled by a user"])
        self.assertIn("samples 1024 to 2047 are not predicted yet", self.predict("best", *line, "--verify", code=1)[0])
        self.predict("best", *line, "--restart-errored")
        self.assertIn("5 ranges compared, 0 differ, 0 missing", self.predict("best", *line, "--verify")[0])

    def test_after_kill_9_the_same_line_goes_on_and_the_file_is_the_same(self):
        self.many(200_000)
        line = ["--input", "many.npy", "--range", "1024", "--batch", "64", "--top", "2", *self.command]
        self.predict("best", *line, output="undisturbed.h5")
        for ranges in (20, 90):
            process = self.begin_and_stop(ranges, *line)
            self.kill_all()
            process.wait()
        self.predict("best", *line)
        self.assertEqual((self.cwd / "y.h5").read_bytes(), (self.cwd / "undisturbed.h5").read_bytes())

    def test_what_cannot_be_asked_is_said(self):
        def message(*arguments, study="digits"):
            return " ".join(self.ranktune("predict", study, "best", "--input", "digits.h5:val/x", "-o", "y.h5", *arguments, code=2)[1].split())
        self.assertIn("--command: unknown placeholder {lrr}; did you mean 'lr'?; known: checkpoint, args,", message("--command", "python3 predict.py {lrr}"))
        self.assertIn("--command: '|' means something to a shell", message("--command", "python3 predict.py | cat"))
        self.assertIn("none.py", message("--command", f"{PYTHON} none.py {{checkpoint}}"))
        self.assertIn("--python: needs a file and one of its functions, as in \"train.py:train\", not \"predict\"", message("--python", "predict"))
        self.assertIn("--python: there is no file '", message("--python", "none.py:predict"))
        self.assertIn("predict.py' has no function 'prodict'", message("--python", "predict.py:prodict"))
        self.assertIn("--command excludes --python", message("--python", "predict.py:predict", "--command", "p"))
        text = (self.cwd / "digits.toml").read_text()
        self.write("plain.toml", text[:text.index("[predict]")].replace('"digits"', '"plain"'))
        self.ranktune("run", "plain.toml", "--local", "2")
        self.assertIn("are programs: give one that predicts, --command", message(study="plain"))
        self.write("digits.toml", text.replace("predict.py", "predict.py {data.train}"))
        self.assertIn("predict.command: unknown placeholder {data.train}", " ".join(self.ranktune("validate", "digits.toml", code=2)[1].split()))
        self.predict("best", "--input", "digits.h5:val/x", *self.command)
        self.assertIn("that is another prediction", message("--command", f"{PYTHON} predict.py {{trial}}"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
