# SPDX-License-Identifier: Apache-2.0
"""The smallest program that is a whole trial: arguments, reports, checkpoints. Put your own in its place.

By hand: python3 train.py --lr=0.01 (ranktune.py lies beside it, or on the PYTHONPATH)
"""
import argparse
import json
import os

import ranktune

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=27)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--momentum", type=float, default=0.0)
args = parser.parse_args()

# The "model": two numbers that gradient descent moves along a bent valley (Rosenbrock's function).
state = {"x": -1.0, "y": 1.0, "dx": 0.0, "dy": 0.0, "epoch": 0}
if ranktune.checkpoint():  # this trial was paused and goes on
    with open(ranktune.checkpoint()) as file:
        state = json.load(file)


def save(folder):
    path = os.path.join(folder, "state.json")
    if ranktune.context().rank == 0:
        with open(path, "w") as file:
            json.dump(state, file)
    return path


while state["epoch"] < args.epochs:
    for _ in range(20):
        x, y = state["x"], state["y"]
        state["dx"] = args.momentum * state["dx"] - args.lr * (-2 * (1 - x) - 40 * x * (y - x * x))
        state["dy"] = args.momentum * state["dy"] - args.lr * 20 * (y - x * x)
        state["x"], state["y"] = x + state["dx"], y + state["dy"]
    state["epoch"] += 1
    ahead, beside = 1 - state["x"], state["y"] - state["x"] * state["x"]
    loss = ahead * ahead + 10 * beside * beside
    ranktune.report(loss=loss, checkpoint=save)
