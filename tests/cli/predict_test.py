#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What trained models say of many samples, in one HDF5 file: predict_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import contextlib
import json
import os
import shutil
import signal
import struct
import subprocess
import tarfile
import unittest

import h5py
import numpy as np

from cli_test import PROGRAM, SOURCES, Case, environment, sys
from kills import Kills

STUDY = """[study]
name = "digits"
metric = "val_accuracy"
mode = "max"
num_trials = 3
max_iterations = 2
seed = 1
[trainable]
builtin = "mlp"
data = "digits.h5"
hidden = [16]
[space]
lr = "loguniform(0.05, 0.2)"
[checkpoint]
every_trial = true
"""


def tensors_of(path):
    """The tensors of a .safetensors file."""
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    data = raw[8 + size:]
    return {name: np.frombuffer(data[slice(*entry["data_offsets"])], np.float32).reshape(entry["shape"])
            for name, entry in header.items() if entry["dtype"] == "F32"}


class Predictions(Kills, Case):
    """One study for all tests, `digits`: they copy its directory."""

    @classmethod
    def setUpClass(cls):
        cls.trained = Case()
        cls.trained.setUp()
        shutil.copy(SOURCES / "jobs/digits/digits.h5", cls.trained.cwd)
        cls.write_study()
        cls.trained.ranktune("run", "digits.toml", "--local", "2")

    @classmethod
    def write_study(cls):
        cls.trained.write("digits.toml", STUDY)

    @classmethod
    def tearDownClass(cls):
        cls.trained.doCleanups()

    def setUp(self):
        super().setUp()
        shutil.copytree(self.trained.cwd, self.cwd, dirs_exist_ok=True)

    def predict(self, trial, *arguments, output="y.h5", **options):
        return self.ranktune("predict", "digits", str(trial), "-o", output, "--local", "2", *arguments, **options)

    def read(self, name="y.h5"):
        with h5py.File(self.cwd / name) as file:
            return {key: file[key][:] for key in file}, dict(file.attrs)

    def many(self, samples):
        """A file of random images."""
        np.save(self.cwd / "many.npy", np.random.default_rng(1).integers(0, 17, (samples, 64), np.uint8))

    def best(self, study):
        exported = self.exported(study)
        return exported["trials"][exported["study"]["best_trial"]]

    def begin(self, *arguments):
        return subprocess.Popen([PROGRAM, "predict", "digits", "best", "--local", "2", *arguments], cwd=self.cwd, env=environment(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def predicted(self):
        """Ranges of 1,024 samples that have begun: probabilities are not all zero."""
        if not (self.cwd / "y.h5").exists():
            return 0
        with h5py.File(self.cwd / "y.h5") as file:
            return int(file["y"][::1024].any(axis=1).sum())

    def begin_and_stop(self, ranges, *line):
        """A start that has predicted so many ranges of y.h5, all of whose processes are held by SIGSTOP."""
        process = self.begin(*line, "-o", "y.h5")
        self.wait_until(lambda: process.poll() is not None or self.predicted() >= ranges, f"{ranges} ranges")
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            if self.is_mine(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
        self.assertIsNone(process.poll(), "it ended before it was stopped")
        return process

    def check_ensembles(self, alone, said, attributes):
        """`alone`: data of each trial's output; `said`: of mean, vote and all, with these attributes."""
        order = [int(trial) for trial in attributes["trial"].split()]
        self.assertEqual(sorted(order), [0, 1, 2])
        members = np.stack([alone[trial]["y"] for trial in order])
        classes = np.stack([alone[trial]["class"] for trial in order])
        mean = members.astype(np.float64).sum(axis=0) / 3
        np.testing.assert_array_equal(said["mean"]["y"], mean.astype(np.float32))
        np.testing.assert_array_equal(said["mean"]["class"], mean.argmax(axis=1))
        votes = np.stack([(classes == each).sum(axis=0) for each in range(10)], axis=1)
        np.testing.assert_array_equal(said["vote"]["class"], votes.argmax(axis=1))
        np.testing.assert_array_equal(said["vote"]["y"], (votes / 3).astype(np.float32))
        np.testing.assert_array_equal(said["all"]["y"], members.transpose(1, 0, 2))
        np.testing.assert_array_equal(said["all"]["class"], classes.T)


class Predicting(Predictions):
    def test_a_classifier_against_numpy_and_its_own_validation(self):
        out, _ = self.predict("best", "--input", "digits.h5:val/x")
        self.assertRegex(" ".join(out.split()), r"output 359 of 359 samples in [\d.]+ s, \d+ a second: \S*y\.h5")
        data, attributes = self.read()
        with h5py.File(self.cwd / "digits.h5") as file:
            x, y = file["val/x"][:].astype(np.float32), file["val/y"][:]
        best = self.best("digits")
        self.ranktune("checkpoint", "digits", "best", "--all", "-o", "w.safetensors")
        w = tensors_of(self.cwd / "w.safetensors")
        z = (x - w["input.shift"]) * w["input.factor"]
        z = np.maximum(z @ w["layers.0.weight"].T + w["layers.0.bias"], 0) @ w["layers.1.weight"].T + w["layers.1.bias"]
        p = np.exp(z - z.max(axis=1, keepdims=True))
        np.testing.assert_allclose(data["y"], p / p.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-6)
        self.assertEqual(data["y"].dtype, np.float32)
        np.testing.assert_array_equal(data["class"], data["y"].argmax(axis=1))
        self.assertAlmostEqual(float((data["class"] == y).mean()), best["best"]["value"], places=12)
        self.assertEqual((attributes["study"], attributes["trial"]), ("digits", str(best["id"])))
        self.assertRegex(attributes["checkpoint_digest"], "^[0-9a-f]{16}$")
        self.assertRegex(attributes["input_content"], r"^\d+ bytes, XXH64 [0-9a-f]{16}$")

    def test_ensembles_against_numpy(self):
        alone = {}
        for trial in range(3):
            self.predict(trial, "--input", "digits.h5:val/x", output=f"{trial}.h5")
            alone[trial] = self.read(f"{trial}.h5")[0]
        said = {}
        for how in ("mean", "vote", "all"):
            self.predict("best", "--top", "3", "--combine", how, "--input", "digits.h5:val/x", output=f"{how}.h5")
            said[how], attributes = self.read(f"{how}.h5")
        self.check_ensembles(alone, said, attributes)
        # One model after the other in memory.
        self.predict("best", "--top", "3", "--input", "digits.h5:val/x", "--set", "trainable.memory_gb=1e-6")
        self.assertEqual((self.cwd / "y.h5").read_bytes(), (self.cwd / "mean.h5").read_bytes())

    def test_targets_in_units_of_the_file(self):
        shutil.copy(SOURCES / "jobs/diabetes/diabetes.h5", self.cwd)
        self.write("diabetes.toml", STUDY.replace("digits", "diabetes").replace("val_accuracy", "val_rmse").replace('"max"', '"min"'))
        self.ranktune("run", "diabetes.toml", "--local", "2")
        self.ranktune("predict", "diabetes", "best", "--input", "diabetes.h5:val/x", "-o", "y.h5", "--local", "1")
        data, _ = self.read()
        self.assertEqual(list(data), ["y"])
        with h5py.File(self.cwd / "diabetes.h5") as file:
            y = file["val/y"][:].reshape(data["y"].shape)
        self.assertAlmostEqual(float(np.sqrt(((data["y"] - y) ** 2).mean())), self.best("diabetes")["best"]["value"], places=3)

    def test_after_kill_9_the_same_line_goes_on_and_the_file_is_the_same(self):
        samples, per_range = 200_000, 1000
        self.many(samples)
        line = ["--input", "many.npy", "--range", str(per_range), "--batch", "64"]
        self.predict("best", *line, output="undisturbed.h5")
        for ranges in (20, 90):
            process = self.begin_and_stop(ranges, *line)
            self.kill_all()
            process.wait()
            self.predicted()  # readable after the kill
        self.predict("best", *line)
        self.assertEqual((self.cwd / "y.h5").read_bytes(), (self.cwd / "undisturbed.h5").read_bytes())
        attempts = [len(trial["attempts"]) for trial in self.exported("y.h5.predict")["trials"]]
        self.assertEqual(len(attempts), -(-samples // per_range))
        # Again went what two ranks were at when they were killed, twice.
        self.assertLessEqual(sum(attempts) - len(attempts), 4)

    def test_the_same_line_after_the_end_changes_nothing(self):
        self.predict("best", "--input", "digits.h5:val/x")
        def written():
            found = (self.cwd / "y.h5").stat()
            return found.st_ino, found.st_size, found.st_mtime_ns
        made = written()
        out, _ = self.predict("best", "--input", "digits.h5:val/x")
        self.assertIn("359 of 359 samples", " ".join(out.split()))
        self.assertEqual(written(), made)

    def test_the_data_of_the_training_may_be_gone(self):
        self.predict("best", "--input", "digits.h5:val/x", output="beside.h5")
        (self.cwd / "digits.h5").rename(self.cwd / "elsewhere.h5")
        self.predict("best", "--input", "elsewhere.h5:val/x")
        np.testing.assert_array_equal(self.read()[0]["y"], self.read("beside.h5")[0]["y"])

    def test_an_output_behind_a_link_to_nothing_yet(self):
        (self.cwd / "scratch").mkdir()
        (self.cwd / "y.h5").symlink_to("scratch/of_y.h5")
        for _ in range(2):
            self.predict("best", "--input", "digits.h5:val/x")
            self.assertTrue((self.cwd / "y.h5").is_symlink())
            self.assertEqual(len(self.read("scratch/of_y.h5")[0]["y"]), 359)

    def test_ranges_beyond_a_limit_are_named_until_the_limit_is_raised(self):
        self.many(3000)
        line = ["--input", "many.npy", "--range", "1024"]
        for again in (False, True):
            with self.subTest(again=again):
                out, err = self.predict("best", *line, "study.num_trials=2", code=3)
                said = " ".join((out + err).split())
                self.assertIn("1 range of samples not begun", said)
                self.assertIn("study.num_trials=3", said)
                self.assertNotIn("failure.tolerate", said)
        self.assertIn("ranktune status y.h5.predict says how it goes on", self.predict("best", *line, "study.num_trials=2", "--verify", code=1)[0])
        self.predict("best", *line, "study.num_trials=3")
        self.assertIn("3 ranges compared, 0 differ, 0 missing", self.predict("best", *line, "--verify")[0])

    def test_damage_is_found_by_the_digests_of_ranges_and_predicted_again(self):
        self.many(3000)
        line = ["--input", "many.npy", "--range", "1024"]
        self.predict("best", *line)
        self.assertIn("3 ranges compared, 0 differ, 0 missing", self.predict("best", *line, "--verify")[0])
        self.assertIn("another prediction", " ".join(self.predict(0 if self.best("digits")["id"] else 1, *line, "--verify", code=2)[1].split()))
        whole = (self.cwd / "y.h5").read_bytes()
        with h5py.File(self.cwd / "y.h5", "r+") as file:
            file["class"][1500] = 11
        out, _ = self.predict("best", *line, "--verify", code=1)
        self.assertIn("samples 1024 to 2047 are not what was predicted", out)
        self.assertIn("3 ranges compared, 1 differ, 0 missing: the same line with --restart-errored", out)
        self.assertIn("give --restart-errored", " ".join(self.predict("best", *line, code=2)[1].split()))
        out, err = self.predict("best", *line, "--restart-errored")
        self.assertIn("1 lost one is tried again", " ".join(out.split()))
        self.assertEqual((self.cwd / "y.h5").read_bytes(), whole)
        self.assertIn("3 ranges compared, 0 differ, 0 missing", self.predict("best", *line, "--verify")[0])
        out, err = self.predict("best", *line, "--restart-errored")
        self.assertIn("--restart-errored has no effect", " ".join(err.split()))

    def test_another_prediction_needs_another_output(self):
        self.predict(0, "--input", "digits.h5:val/x")
        before = (self.cwd / "y.h5").read_bytes()
        made = (self.cwd / "y.h5.predict.toml").read_bytes()
        self.assertRegex(self.predict(1, "--input", "digits.h5:val/x", code=2)[1], "(?s)says something else in.* line .*`trial = 0`, which.* would be `trial = 1`")
        self.assertIn("--fresh", self.predict(0, "--input", "digits.h5:train/x", code=2)[1])
        with h5py.File(self.cwd / "digits.h5", "r+") as file:
            file["val/x"][0, 0] += 1
        self.assertIn("input_content", self.predict(0, "--input", "digits.h5:val/x", code=2)[1])
        self.assertEqual((self.cwd / "y.h5").read_bytes(), before)
        self.assertIn("excludes", self.predict(1, "--input", "digits.h5:val/x", "--fresh", "--write", code=2)[1])
        # What is refused, or not started, changes nothing.
        alone = ["mpirun", "-n", "1", PROGRAM, "predict", "digits", "1", "--input", "digits.h5:val/x", "-o", "y.h5", "--fresh"]
        lonely = subprocess.run(alone, cwd=self.cwd, env=environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"),
                                stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(lonely.returncode, 2, lonely.stderr)
        self.assertIn("needs at least 2 ranks", lonely.stderr)
        self.predict(1, "--input", "digits.h5:val/x", "--fresh", "resources.ranks=3", code=2)
        self.predict(1, "--input", "digits.h5:val/x", "--dry-run", output="none.h5")
        self.assertEqual((self.cwd / "y.h5").read_bytes(), before)
        self.assertEqual((self.cwd / "y.h5.predict.toml").read_bytes(), made)
        self.assertFalse((self.cwd / "none.h5.predict.toml").exists())
        out, _ = self.predict(1, "--input", "digits.h5:val/x", "--fresh")
        self.assertIn("is now in 'y.h5~1'", " ".join(out.split()))
        self.assertEqual((self.cwd / "y.h5~1").read_bytes(), before)
        self.assertEqual(self.read()[1]["trial"], "1")
        (self.cwd / "other.h5").write_text("mine")
        self.assertIn("exists and is no output of this prediction", " ".join(self.predict(1, "--input", "digits.h5:val/x", output="other.h5", code=2)[1].split()))
        self.assertEqual((self.cwd / "other.h5").read_text(), "mine")

    def test_a_fresh_run_of_the_study_file_writes_every_row_anew(self):
        self.many(3000)
        line = ["--input", "many.npy", "--range", "1024"]
        self.predict("best", *line)
        before = (self.cwd / "y.h5").read_bytes()
        shutil.rmtree(self.cwd / "y.h5.predict")
        again = ["run", "y.h5.predict.toml", "--local", "2"]
        self.assertIn("exists and is no output of this prediction", " ".join(self.ranktune(*again, code=2)[1].split()))
        self.assertEqual((self.cwd / "y.h5").read_bytes(), before)
        self.assertIn("is now in 'y.h5~1'", " ".join(self.ranktune(*again, "--fresh")[0].split()))
        self.assertEqual((self.cwd / "y.h5~1").read_bytes(), before)
        self.assertEqual((self.cwd / "y.h5").read_bytes(), before)

    def test_nothing_is_added_to_an_output_that_was_lost(self):
        self.many(200_000)
        line = ["--input", "many.npy", "--range", "1024", "--batch", "64"]
        self.predict("best", *line, output="undisturbed.h5")
        process = self.begin_and_stop(20, *line)
        # A second start, which would begin again, is refused while the first one has the study.
        before = (self.cwd / "y.h5").stat().st_ino
        self.predict("best", *line, "--fresh", code=2)
        self.assertEqual((self.cwd / "y.h5").stat().st_ino, before)
        self.kill_all()
        process.wait()
        out, _ = self.predict("best", *line, "--verify", code=1)
        self.assertRegex(out, r"samples \d+ to 199999 are not predicted yet")
        self.assertRegex(out, r"\d+ ranges compared, 0 differ, \d+ missing")
        (self.cwd / "y.h5").rename(self.cwd / "kept.h5")
        for again in (lambda: self.predict("best", *line, code=2), lambda: self.ranktune("run", "y.h5.predict", "--local", "2", code=2)):
            self.assertRegex(" ".join("".join(again()).split()), r"y\.h5' is gone, and '\S*y\.h5\.predict' says that \d+ ranges")
        self.assertFalse((self.cwd / "y.h5").exists())
        with h5py.File(shutil.copy(self.cwd / "kept.h5", self.cwd / "y.h5"), "r+") as file:
            file["y"][:] = 0
        self.assertIn("lacks the predictions for samples", " ".join("".join(self.ranktune("run", "y.h5.predict", "--local", "2", code=2)).split()))
        (self.cwd / "kept.h5").rename(self.cwd / "y.h5")
        self.ranktune("run", "y.h5.predict", "--local", "2")
        self.assertEqual((self.cwd / "y.h5").read_bytes(), (self.cwd / "undisturbed.h5").read_bytes())

    def test_one_data_set_among_others_that_are_no_samples(self):
        self.predict("best", "--input", "digits.h5:val/x", output="alone.h5")
        with h5py.File(self.cwd / "digits.h5") as file, h5py.File(self.cwd / "beside.h5", "w") as beside:
            beside["x"] = file["val/x"][:]
            beside["version"] = 3
            beside["names"] = ["a", "b"]
            beside["other"] = np.zeros(5)
        self.predict("best", "--input", "beside.h5:x")
        np.testing.assert_array_equal(self.read()[0]["y"], self.read("alone.h5")[0]["y"])

    def test_no_range_is_the_best_one(self):
        out, _ = self.predict("best", "--input", "digits.h5:val/x")
        self.assertIn("1 done", out)
        self.assertNotIn("best #", " ".join(out.split()))
        self.assertIn("none is the best", " ".join(self.ranktune("best", "y.h5.predict")[0].split()))

    def test_what_cannot_be_predicted_is_said(self):
        def message(*arguments, trial="best", code=2, **options):
            return " ".join("".join(self.predict(trial, *arguments, code=code, **options)).split())
        self.assertIn("there is no file", message("--input", "none.h5"))
        self.assertIn("is a folder", message("--input", "digits"))
        self.assertIn("the output is an HDF5 file", message("--input", "digits.h5:val/x", output="y.npy"))
        self.assertIn("FILE:DATASET names a data set", message("--input", "digits.h5"))
        self.assertIn("has no field 'z'", message("--input", "digits.h5:val/z"))
        self.assertIn("no trial", message("--input", "digits.h5:val/x", trial=9))
        self.assertIn("--top takes the best trials", message("--input", "digits.h5:val/x", "--top", "2", trial=1))
        self.assertIn("best 4: 3 of the study have a result", message("--input", "digits.h5:val/x", "--top", "4"))
        self.assertFalse((self.cwd / "y.h5.predict").exists())
        for arguments in ((), ("--fresh",)):
            self.assertIn("-o digits.h5 is a file that is read", message("--input", "digits.h5:val/x", *arguments, output="digits.h5"))
        self.assertFalse((self.cwd / "digits.h5~1").exists())
        with tarfile.open(self.cwd / "x.tar", "w") as tar:
            tar.add(self.cwd / "digits.toml", "0.toml")
        self.assertIn("its samples are files of any size", message("--input", "x.tar"))
        np.save(self.cwd / "narrow.npy", np.zeros((10, 3), np.float32))
        self.assertIn("has 3 numbers, and the network was trained on 64", message("--input", "narrow.npy", code=4))
        self.assertFalse((self.cwd / "y.h5").exists())
        self.write("curve.toml", STUDY[:STUDY.index("[trainable]")].replace("val_accuracy", "score").replace("digits", "curve")
                   + '[trainable]\nbuiltin = "curve"\n[space]\nlr = "uniform(0.1, 1)"\n')
        self.ranktune("run", "curve.toml", "--local", "1")
        out, _ = self.ranktune("predict", "curve", "best", "--input", "narrow.npy", "-o", "curve.h5", "--local", "1", code=4)
        self.assertIn("trained by 'curve': it cannot predict", " ".join(out.split()))
        no_other = STUDY.replace("every_trial = true", "").replace("digits\"\nmetric", "few\"\nmetric")
        self.write("few.toml", no_other)
        self.ranktune("run", "few.toml", "--local", "2")
        others = {0, 1, 2} - {self.best("few")["id"]}
        _, err = self.ranktune("predict", "few", str(others.pop()), "--input", "digits.h5:val/x", "-o", "few.h5", code=2)
        self.assertIn("checkpoint.every_trial = true", err)

    def test_a_study_whose_data_are_decoded_predicts(self):
        self.write("rows.csv", "x,y\n1,2\n3,4\n")
        self.write("staged.toml", STUDY.replace("name = \"digits", "name = \"staged")
                   + f'[data]\nrows = {{ path = "rows.csv", decode = true }}\nstage = true\ndirectory = "{self.cwd}"\n[resources]\ngpus = 0\n')
        self.ranktune("run", "staged.toml", "--local", "2")
        self.ranktune("predict", "staged", "best", "--input", "digits.h5:val/x", "-o", "s.h5", "--local", "2")
        self.assertEqual(self.read("s.h5")[0]["y"].shape, (359, 10))
        [made] = self.cwd.glob("s.h5.predict.toml")
        self.assertIn("\ngpus = 0\n", made.read_text())

    def test_a_full_disk_shows_before_anything_is_predicted(self):
        disk = self.cwd / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "ranktune-test", disk]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
            self.skipTest("mounting a small disk needs root")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=True)
        self.many(300_000)  # their predictions take 13 MB
        line = ["--input", "many.npy", "--range", "1024"]
        out, err = self.predict("best", *line, output="disk/y.h5", code=75)
        self.assertIn("No space left on device", " ".join((out + err).split()))
        self.assertNotIn("finished", [trial["state"] for trial in self.exported("disk/y.h5.predict")["trials"]])
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        self.predict("best", *line, output="disk/y.h5")
        self.predict("best", *line, output="undisturbed.h5")
        self.assertEqual((disk / "y.h5").read_bytes(), (self.cwd / "undisturbed.h5").read_bytes())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
