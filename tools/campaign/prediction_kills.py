#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Outputs of `ranktune predict` that real processes under mpirun or srun write, killed with -9 at random moments (the head, a worker, or
everything), and resumed by the same command on 1 to 4 workers until they are complete. The output must be readable by h5py after each kill,
and at the end equal byte for byte to that of a run without a kill. One model or three predict; in half of the outputs in programs, of which
none may stay behind.

    prediction_kills.py PROGRAM KILLS [SEED] [--srun TESTBED | --mpirun WORDS] [--sweep]

Options and output as of kill_runs.py, which does the rest. Needs h5py, and NumPy.
"""
import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from kill_runs import PATIENCE, Study, Wrong, main

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "jobs/digits/digits.h5"
TRAINED = f"""[study]
name = "trained"
metric = "val_accuracy"
mode = "max"
num_trials = 3
max_iterations = 1
seed = 1
[trainable]
builtin = "mlp"
data = "{DIGITS}"
hidden = [64]
[space]
lr = "loguniform(0.05, 0.2)"
[checkpoint]
every_trial = true
"""
# The same network in NumPy.
MEMBER = """
import sys, h5py, numpy as np, ranktune
with h5py.File(ranktune.checkpoint()) as file:
    w = {name: file["tensors"][name][:] for name in file["tensors"]}
for batch in ranktune.predict():
    z = (batch["x"] - w["input.shift"]) * w["input.factor"]
    batch.write(np.maximum(z @ w["layers.0.weight"].T + w["layers.0.bias"], 0) @ w["layers.1.weight"].T + w["layers.1.bias"])
"""
SAMPLES = 300_000


class Output(Study):
    VICTIMS = ["head", "worker", "worker", "all"]
    trained = None

    def draw(self, number):
        self.directory = os.path.join(self.base, "y.h5.predict")
        self.output = os.path.join(self.base, "y.h5")
        self.kind = self.rng.choice(["mlp", "program"])
        self.members = self.rng.choice([1, 3])
        self.deterministic = False
        if Output.trained is None:
            self.train()
        return TRAINED  # (what Study writes; nothing reads it)

    def train(self):
        """Once for all outputs: models, samples, and the program."""
        Output.trained = tempfile.mkdtemp(prefix="ranktune-trained-")
        atexit.register(shutil.rmtree, Output.trained)
        folder = pathlib.Path(Output.trained)
        (folder / "trained.toml").write_text(TRAINED)
        (folder / "member.py").write_text(MEMBER)
        np.save(folder / "x.npy", np.random.default_rng(1).integers(0, 17, (SAMPLES, 64), np.uint8))
        done = subprocess.run([self.program, "run", "trained.toml", "--local", "1", "-q"], cwd=folder, capture_output=True, text=True,
                              timeout=PATIENCE, env=self.launch.environment)
        if done.returncode != 0:
            raise Wrong(f"no models: {done.stdout}{done.stderr}")

    def name(self):
        return f"{self.members} of {self.kind}"

    def workers(self):
        return self.rng.randint(1, 4)

    def command(self, output):
        command = [self.program, "predict", f"{Output.trained}/trained", "best", "--top", str(self.members), "-i", f"{Output.trained}/x.npy",
                   "-o", output, "--range", "2048", "--batch", "128"]
        if self.kind == "program":
            command += ["--command", f"{sys.executable} {Output.trained}/member.py"]
        return command

    def start(self, directory=None):
        ranks = str(self.workers() + 1)
        launcher = ["srun", "--mpi=pmix", "-n", ranks, "--time=10", "--wait=60", "-Q", "-J", os.path.basename(self.base)] if self.launch.srun \
            else [*self.launch.mpirun.split(), "-n", ranks]
        return subprocess.Popen(launcher + self.command(directory or self.output) + ["-q"], cwd=self.base, env=self.launch.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def look_after_a_kill(self):
        super().look_after_a_kill()
        if not os.path.exists(self.output):
            return
        try:
            with h5py.File(self.output) as file:
                file["y"][:]
        except (OSError, RuntimeError, KeyError) as error:
            self.observer.problems.append(f"h5py cannot read the output after a kill: {error}")

    def check(self):
        self.compared = True
        whole = os.path.join(self.base, "whole.h5")
        code, output = self.ended(self.start(whole))
        if code != 0:
            raise Wrong(f"the undisturbed run ended with exit code {code}: {output}")
        if pathlib.Path(self.output).read_bytes() != pathlib.Path(whole).read_bytes():
            raise Wrong("the output is not that of an undisturbed run")
        self.verb(*self.command(self.output)[1:], "--verify")


if __name__ == "__main__":
    sys.exit(main(__doc__, Output))
