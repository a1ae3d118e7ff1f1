#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Population-based training against random search at equal epochs, on jobs/digits-pbt: for each seed both studies, and the
accuracy and the loss of the best weights of each (by validation loss) on test data that neither has seen.

usage: tools/bench/pbt_digits.py RANKTUNE [SEEDS=20 [FIRST=401]]
Needs python3-h5py and python3-numpy. Ends with 1 when population-based training has the lower test loss (the metric of
both studies) in fewer than three seeds in four; a tie is no win.
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import h5py
import numpy as np

JOB = pathlib.Path(__file__).resolve().parents[2] / "jobs/digits-pbt"
WORKERS = 4


def tensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    types = {"F32": np.float32, "F64": np.float64, "U64": np.uint64}
    return {name: np.frombuffer(data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]],
                                types[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items() if t["dtype"] in types}


def test_loss(weights):
    """Cross-entropy in nats, and accuracy, of a relu network with one hidden layer."""
    with h5py.File(JOB / "digits.h5") as file:
        x, y = file["test/x"][:].astype(np.float64), file["test/y"][:]
    x = (x - weights["input.shift"]) * weights["input.factor"]
    layers = sorted(name[:-len(".weight")] for name in weights if name.startswith("layers.") and name.endswith(".weight"))
    for i, layer in enumerate(layers):
        x = x @ weights[layer + ".weight"].T.astype(np.float64) + weights[layer + ".bias"]
        if i + 1 < len(layers):
            x = np.maximum(x, 0.0)
    x -= x.max(axis=1, keepdims=True)
    losses = np.log(np.exp(x).sum(axis=1)) - x[np.arange(len(y)), y]
    return losses.mean(), (x.argmax(axis=1) == y).mean()


def best(ranktune, study, seed, folder):
    directory = folder / f"{study}-{seed}"
    subprocess.run([ranktune, "run", JOB / f"{study}.toml", f"study.seed={seed}", "-o", directory, "--local", str(WORKERS)],
                   check=True, stdout=subprocess.DEVNULL)
    weights = folder / "best.safetensors"
    subprocess.run([ranktune, "checkpoint", directory, "best", "--all", "-o", weights], check=True, stdout=subprocess.DEVNULL)
    summary = json.loads(subprocess.run([ranktune, "status", directory, "--format", "json"], check=True,
                                        capture_output=True).stdout)
    loss, accuracy = test_loss(tensors(weights))
    weights.unlink()
    return loss, accuracy, summary["best"]["value"], summary["iterations"]


def main():
    ranktune = pathlib.Path(sys.argv[1]).resolve()
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 401
    accuracies, losses = 0, 0
    print("seed   pbt: val loss  test loss  test accuracy  epochs   random: the same")
    with tempfile.TemporaryDirectory() as name:
        for seed in range(first, first + seeds):
            pbt, random = (best(ranktune, study, seed, pathlib.Path(name)) for study in ("digits-pbt", "random"))
            losses += pbt[0] < random[0]
            accuracies += pbt[1] > random[1]
            print(f"{seed:4}   " + "   ".join(f"{value:.4f}  {loss:.4f}  {accuracy:.4f}  {epochs}"
                                            for loss, accuracy, value, epochs in (pbt, random)), flush=True)
    print(f"population-based training: lower test loss in {losses} of {seeds} seeds, higher test accuracy in {accuracies}")
    return 0 if 4 * losses >= 3 * seeds else 1


if __name__ == "__main__":
    sys.exit(main())
