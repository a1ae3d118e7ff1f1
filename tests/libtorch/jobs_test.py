#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The jobs with LibTorch as a user runs them: jobs_test.py PROGRAM SOURCE_ROOT LIBRARIES [TEST...]"""
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

LIBRARIES = pathlib.Path(sys.argv.pop(3)).resolve()
sys.path.insert(0, str(pathlib.Path(sys.argv[2]) / "tests/cli"))

from cli_test import PROGRAM, SOURCES, Case, environment  # noqa: E402
from kills import Kills  # noqa: E402

# Few and small: it is about what is the same, not about what is learnt.
BRIEF = {"resnet": ["trainable.width=4"], "transformer": []}
EVERY = ["study.num_trials=2", "study.max_iterations=3", "scheduler.type=fifo", "checkpoint.interval=1",
         "failure.tolerate=1.0"]


class Jobs(Kills, Case):
    def job(self, name):
        """A copy of the job with the library that the build made, and the data where the study file expects them."""
        for folder in (f"jobs/torch-{name}", "jobs/digits"):
            shutil.copytree(SOURCES / folder, self.cwd / folder, dirs_exist_ok=True)
        shutil.copy(SOURCES / "LICENSE", self.cwd)
        shutil.copy(LIBRARIES / f"{name}.so", self.cwd / f"jobs/torch-{name}")
        return f"jobs/torch-{name}/{name}.toml"

    def command(self, name, directory, ranks, *changes):
        return ["run", self.job(name), "--local", str(ranks), "-o", directory, f"resources.ranks={ranks}", *EVERY,
                *BRIEF[name], *changes]

    def curves(self, directory):
        """{(trial, iteration): metrics}"""
        whole = self.exported(directory)
        return {(report["trial"], report["iteration"]): report["metrics"] for report in whole["reports"]}

    def reports(self, directory):
        done = subprocess.run([PROGRAM, "status", directory, "-f", "json"], cwd=self.cwd, env=environment(), capture_output=True, text=True)
        return json.loads(done.stdout)["reports"] if done.returncode == 0 else 0

    def check_killed_and_resumed(self, name, ranks):
        self.ranktune(*self.command(name, "through", ranks))
        expected = self.curves("through")
        self.assertEqual(len(expected), 6)
        process = subprocess.Popen([PROGRAM, *self.command(name, "killed", ranks)], cwd=self.cwd, env=environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            self.wait_until(lambda: self.reports("killed") >= 2 or process.poll() is not None, "two reports")
        finally:
            self.kill_all()
            process.wait()
        before = self.reports("killed")
        self.assertGreaterEqual(before, 2)
        self.ranktune(*self.command(name, "killed", ranks))
        self.assertEqual(self.curves("killed"), expected)
        return expected

    def test_a_killed_resnet_goes_on_exactly_on_one_and_two_ranks(self):
        one = self.check_killed_and_resumed("resnet", 1)
        shutil.rmtree(self.cwd / "through")
        shutil.rmtree(self.cwd / "killed")
        two = self.check_killed_and_resumed("resnet", 2)
        self.assertEqual(one.keys(), two.keys())
        for metrics in one.values():
            self.assertEqual(set(metrics), {"train_loss", "val_loss", "val_accuracy"})

    def test_a_killed_transformer_goes_on_exactly_on_one_and_two_ranks(self):
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                learnt = self.check_killed_and_resumed("transformer", ranks)
                self.assertLess(min(metrics["val_loss"] for metrics in learnt.values()), 5.5)  # ln 256 = 5.55
                shutil.rmtree(self.cwd / "through")
                shutil.rmtree(self.cwd / "killed")

    def test_samples_are_streamed_from_files(self):
        count, pixels = 128, 16 * 16
        header = json.dumps({"x": {"dtype": "U8", "shape": [count, pixels], "data_offsets": [0, count * pixels]},
                             "y": {"dtype": "U8", "shape": [count], "data_offsets": [count * pixels, count * (pixels + 1)]}}).encode()
        images = bytes(i * 7 % 256 for i in range(count * pixels)) + bytes(i % 10 for i in range(count))
        (self.cwd / "images.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + images)
        (self.cwd / "text.bin").write_bytes(bytes(i * i % 97 for i in range(33 * 100)))
        for name, entry in (("resnet", 'train = "../../images.safetensors"'),
                            ("transformer", 'train = { path = "../../text.bin", dtype = "uint8", tokens = 33 }')):
            with self.subTest(name):
                study = self.cwd / self.job(name)
                text = study.read_text().replace("[trainable]\n", f'[data]\n{entry}\n[trainable]\nstream = "train"\n')
                study.write_text(text)
                self.ranktune("run", str(study), "--local", "1", "-o", name, "resources.ranks=1", *EVERY, *BRIEF[name])
                curves = self.curves(name)
                self.assertEqual(len(curves), 6)
                for metrics in curves.values():
                    self.assertIn("data_wait", metrics)

    def test_asha_pauses_and_promotes_and_the_weights_can_be_exported(self):
        self.ranktune("run", self.job("resnet"), "--local", "2", "-o", "asha", "study.num_trials=6", "study.max_iterations=3",
                      "trainable.width=4", "resources.ranks=1", "failure.tolerate=1.0", "study.deterministic=true", "study.max_concurrent=2",
                      "searcher.type=random", "study.seed=6")  # one pauses before it is promoted
        attempts = [attempt for trial in self.exported("asha")["trials"] for attempt in trial["attempts"]]
        self.assertTrue(any(attempt["from_iteration"] > 0 for attempt in attempts), attempts)
        self.ranktune("checkpoint", "asha", "best", "-o", "best.safetensors")
        header = (self.cwd / "best.safetensors").read_bytes()[8:4000].decode(errors="replace")
        self.assertIn('"layers.0.weight"', header)

    def test_a_resnet_predicts_what_it_was_validated_with(self):
        try:
            import h5py
        except ImportError:
            self.skipTest("needs h5py")
        self.ranktune(*self.command("resnet", "trained", 1))
        self.ranktune("predict", "trained", "best", "--input", "jobs/digits/digits.h5:val/x", "-o", "y.h5", "--local", "2")
        best = self.exported("trained")
        best = best["trials"][best["study"]["best_trial"]]["best"]["value"]
        with h5py.File(self.cwd / "y.h5") as file, h5py.File(self.cwd / "jobs/digits/digits.h5") as digits:
            y, classes = file["y"][:], file["class"][:]
            self.assertAlmostEqual(float((classes == digits["val/y"][:]).mean()), best, places=6)
        self.assertTrue((y.argmax(axis=1) == classes).all() and abs(y.sum(axis=1) - 1).max() < 1e-5)

    def test_population_based_training_changes_the_learning_rate(self):
        file = self.job("resnet")
        text = (self.cwd / file).read_text().replace('type = "asha"', 'type = "pbt"\ninterval = 1\nsynchronous = true\n[scheduler.explore]\nlr = "perturb"\n')
        (self.cwd / file).write_text(text)
        self.ranktune("run", file, "--local", "2", "-o", "pbt", "study.num_trials=4", "study.max_iterations=4", "trainable.width=4",
                      "resources.ranks=1", "failure.tolerate=1.0", "checkpoint.interval=1")
        attempts = [attempt for trial in self.exported("pbt")["trials"] for attempt in trial["attempts"]]
        self.assertTrue(any("from_trial" in attempt for attempt in attempts), attempts)

    def test_libraries_that_are_no_models_are_refused_by_name(self):
        file = self.job("resnet")
        (self.cwd / "jobs/torch-resnet/resnet.so").write_text("no library")
        text, _ = self.ranktune("run", file, "--local", "2", "study.num_trials=1", "-o", "bad", code=4)
        self.assertIn("torch.library cannot be opened", text)
        (self.cwd / "jobs/torch-resnet/resnet.so").unlink()
        _, message = self.ranktune("validate", file, code=2)
        self.assertIn("trainable.library", message)

    def test_views_open_no_torch(self):
        """The program itself is linked to none; the library is opened by ranks that train."""
        needed = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True).stdout
        self.assertNotIn("torch", needed)
        self.assertIn("LibTorch", self.ranktune("doctor")[0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
