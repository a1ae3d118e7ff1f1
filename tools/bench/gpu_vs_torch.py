#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training speed on one GPU: ranktune's `mlp` and LibTorch models beside PyTorch, eager and compiled.

The same networks, data (random numbers, in the GPU's memory), batches, optimizers and precision. An epoch is training and
validation; the figure is milliseconds of an epoch per step. PyTorch's loop is a careful one: nothing in it waits for the GPU
but the end of an epoch. `plain` is the same LibTorch model in a loop without ranktune. Prints a table, and the share of the
card's rate of matrix products where operations can be counted (transformer, mlp).

usage: tools/bench/gpu_vs_torch.py [--programs DIR] [--models DIR] [--python PYTHON] [--seconds S] [--only NAME,...] [--ways WAY,...]
  DIR has bench_epochs (and bench_plain_resnet, bench_plain_transformer), and resnet.so and transformer.so: a build with CUDA,
  and the LibTorch of PYTHON's torch (docs/guides/libtorch.md, Build).
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import torch_vs_ddp  # beside this file

SGD = {"lr": 0.01, "momentum": 0.9, "weight_decay": 1e-4}
CASES = {
    "mlp 64-256-256-10": {"model": "mlp", "features": 64, "hidden": 256, "batch_size": 256, "samples": 25600, **SGD},
    "mlp 784-2048-2048-10": {"model": "mlp", "features": 784, "hidden": 2048, "batch_size": 512, "samples": 51200, **SGD},
    "ResNet-18 32x32": {"model": "resnet", "features": 1024, "width": 64, "batch_size": 256, "samples": 5120, **SGD},
    "transformer 8x1024": {"model": "transformer", "width": 1024, "layers": 8, "lr": 3e-4, "weight_decay": 0.01, "dropout": 0.1, "batch_size": 256,
                           "letters": 72000},
}
PRECISIONS = {"mlp": ("fp32", "tf32", "bf16"), "resnet": ("tf32", "bf16"), "transformer": ("tf32", "bf16")}
WINDOW = torch_vs_ddp.WINDOW


def write_data(case, folder):
    import h5py
    import numpy

    random = numpy.random.default_rng(1)
    if case["model"] == "transformer":
        path = folder / "text"
        path.write_bytes(bytes(random.integers(97, 123, case["letters"], dtype=numpy.uint8)))
        return path
    path = folder / "data.h5"
    with h5py.File(path, "w") as file:
        for split, count in (("train", case["samples"]), ("val", 512)):
            file[f"{split}/x"] = random.standard_normal((count, case["features"]), dtype=numpy.float32)
            file[f"{split}/y"] = random.integers(0, 10, count, dtype=numpy.int32)
    return path


def steps_of(case):
    if case["model"] == "transformer":
        split = case["letters"] * 9 // 10
        return math.ceil(((split - WINDOW - 1) // (WINDOW // 4) + 1) / case["batch_size"])
    return case["samples"] // case["batch_size"]


def operations_of(case):
    """Floating-point operations of products of matrices in one step, forward and backward."""
    if case["model"] == "mlp":
        sizes = [case["features"], case["hidden"], case["hidden"], 10]
        pairs = [a * b for a, b in zip(sizes, sizes[1:])]
        return 2 * case["batch_size"] * (3 * sum(pairs) - pairs[0])  # nobody needs the gradient of the input
    if case["model"] == "transformer":
        width, tokens = case["width"], case["batch_size"] * WINDOW
        return 3 * 2 * tokens * (case["layers"] * (12 * width * width + 2 * WINDOW * width) + width * 256)
    return 0


# ---- PyTorch ----------------------------------------------------------------------------------------------------------


def network(case):
    import torch
    from torch import nn

    if case["model"] == "mlp":
        h = case["hidden"]
        return nn.Sequential(nn.Linear(case["features"], h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 10))
    if case["model"] == "resnet":
        return torch_vs_ddp.resnet_of(case["width"])
    return torch_vs_ddp.gpt_of(case["width"], case["layers"], case["dropout"])


def data_of(case, path):
    import h5py
    import torch

    if case["model"] == "transformer":
        return torch_vs_ddp.text_windows(path.read_bytes())
    shape = (-1, 1, 32, 32) if case["model"] == "resnet" else (-1, case["features"])
    with h5py.File(path) as file:
        return [(torch.tensor(file[split]["x"][:]).view(shape), torch.tensor(file[split]["y"][:]).long()) for split in ("train", "val")]


def peer(case, path, precision, way, seconds):
    """Milliseconds of an epoch per step of PyTorch."""
    import contextlib

    import torch
    from torch import nn

    on = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(1)
    tf32 = precision == "tf32"
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32
    model = network(case).to(on)
    if case["model"] == "transformer":
        model.later = model.later.to(on)
    train, val = [(x.to(on), y.to(on)) for x, y in data_of(case, path)]
    if case["model"] == "transformer":
        optimizer = torch.optim.AdamW(model.parameters(), lr=case["lr"], weight_decay=case["weight_decay"])
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=case["lr"], momentum=case["momentum"], weight_decay=case["weight_decay"])
    run = model if way == "eager" else torch.compile(model, mode={"compiled": "default", "graphs": "reduce-overhead"}[way])
    narrow = (lambda: torch.autocast(on.type, torch.bfloat16)) if precision == "bf16" else contextlib.nullcontext
    count, batch = len(train[0]), case["batch_size"]

    def loss_of(x, y):
        outputs = run(x)
        return nn.functional.cross_entropy(outputs.flatten(0, -2).float(), y.flatten()), outputs

    def epoch():
        model.train()
        order = torch.randperm(count, device=on)
        total = torch.zeros((), device=on)
        for begin in range(0, count, batch):
            rows = order[begin:begin + batch]
            if len(rows) < batch and case["model"] == "resnet":
                break
            x, y = train[0].index_select(0, rows), train[1].index_select(0, rows)
            optimizer.zero_grad()
            with narrow():
                loss, _ = loss_of(x, y)
            loss.backward()
            if case["model"] == "transformer":
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.detach()
        model.eval()
        with torch.no_grad(), narrow():
            for begin in range(0, len(val[0]), batch):
                loss, outputs = loss_of(val[0][begin:begin + batch], val[1][begin:begin + batch])
                total += loss + outputs.argmax(-1).eq(val[1][begin:begin + batch]).float().mean()
        return total.item()

    epoch(), epoch()
    begin, epochs = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        epoch()
        epochs += 1
    return 1e3 * (time.perf_counter() - begin) / epochs / steps_of(case)


# ---- ranktune ---------------------------------------------------------------------------------------------------------


def ours(case, path, precision, programs, models, seconds, plain):
    options = {key: case[key] for key in ("lr", "momentum", "weight_decay", "dropout", "width", "layers", "batch_size") if key in case}
    options.update(data=path, precision=precision)
    if case["model"] == "mlp":
        options.update(builtin="mlp", hidden=case["hidden"], layers=2, device="gpu", cuda_graphs="true" if plain else "false")
    else:
        options.update(builtin="torch", library=models / f"{case['model']}.so")
    program = programs / (f"bench_plain_{case['model']}" if plain and case["model"] != "mlp" else "bench_epochs")
    done = subprocess.run([str(program), str(seconds), "gpu=0", *(f"{key}={value}" for key, value in options.items())], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return math.nan
    return 1e3 * json.loads(done.stdout.strip().splitlines()[-1])["epoch_s"] / steps_of(case)


WAYS = ("eager", "compiled", "graphs")


def peers(arguments, name, path, ways):
    """One process for all precisions of a case: it takes seconds to load."""
    done = subprocess.run([arguments.python, __file__, "--peer", json.dumps([name, str(path)]), "--seconds", str(arguments.seconds), "--ways", ",".join(ways)],
                          stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else {}


def peer_main(name, path, seconds, ways):
    import torch

    found = {}
    for precision in PRECISIONS[CASES[name]["model"]]:
        for way in ways:
            if way != "eager" and CASES[name]["model"] != "mlp" and (precision != "bf16" or way != "compiled"):
                continue  # compiling takes most of a minute
            torch.compiler.reset()
            begin = time.perf_counter()
            found[precision + " " + way] = peer(CASES[name], path, precision, way, seconds)
            print(f"{name}, {precision}, {way}: {found[precision + ' ' + way]:.3f} ms ({time.perf_counter() - begin:.0f} s)", file=sys.stderr, flush=True)
    print(json.dumps(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--only", help="cases whose names contain one of these")
    parser.add_argument("--ways", default="ranktune," + ",".join(WAYS), help="of ranktune (with `plain`), eager, compiled, graphs")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        name, path = json.loads(arguments.peer)
        return peer_main(name, pathlib.Path(path), arguments.seconds, arguments.ways.split(","))
    ways = [way for way in WAYS if way in arguments.ways.split(",")]
    if "ranktune" in arguments.ways and not arguments.programs:
        parser.error("--programs is missing")
    chosen = [name for name in CASES if not arguments.only or any(part in name for part in arguments.only.split(","))]
    print("milliseconds a step; `plain`: the same LibTorch model without ranktune, or mlp with cuda_graphs", flush=True)
    print(f"{'':24}{'':6}{'ranktune':>10}{'plain':>10}{'eager':>10}{'compiled':>10}{'graphs':>10}{'TFLOP/s':>10}", flush=True)
    for name in chosen:
        case = CASES[name]
        with tempfile.TemporaryDirectory() as folder:
            path = write_data(case, pathlib.Path(folder))
            theirs = peers(arguments, name, path, ways) if ways else {}
            for precision in PRECISIONS[case["model"]]:
                times = [math.nan] * 5
                for plain in (False, True) * 2 if "ranktune" in arguments.ways else ():  # twice, in turns: the faster one
                    found = ours(case, path, precision, arguments.programs.resolve(), (arguments.models or arguments.programs).resolve(),
                                 arguments.seconds, plain)
                    times[plain] = found if math.isnan(times[plain]) else min(times[plain], found)
                times[2:] = [theirs.get(f"{precision} {way}", math.nan) for way in WAYS]
                rate = operations_of(case) / times[0] / 1e9 if operations_of(case) else math.nan
                print(f"{name:24}{precision:6}" + "".join(f"{t:10.3f}" for t in times) + f"{rate:10.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
