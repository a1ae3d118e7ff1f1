#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training speed of ranktune's LibTorch trainables beside PyTorch's DistributedDataParallel (gloo).

The same models (jobs/torch-resnet, jobs/torch-transformer), data, global batches and optimizers, float32, two processes (--ranks) with
one thread each, pinned to one core each. One epoch is training and validation. The two are run in turns, and the ratio of
each pair counts: ours / theirs, in samples per second; above 1 ranktune is faster. The default Python is that of the
distribution, whose PyTorch is the LibTorch that ranktune was built with.

usage: tools/bench/torch_vs_ddp.py BUILD_DIR [--python PYTHON] [--seconds S] [--pairs N] [--only resnet|transformer]
       (ninja -C BUILD_DIR tools/bench/bench_epochs tests/libtorch/resnet.so tests/libtorch/transformer.so first)
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = {
    "resnet": {"data": "jobs/digits/digits.h5", "width": 16, "lr": 0.05, "momentum": 0.9, "weight_decay": 1e-4, "batch_size": 64},
    "transformer": {"data": "LICENSE", "width": 64, "layers": 2, "lr": 0.003, "weight_decay": 0.01, "dropout": 0.1, "batch_size": 32},
}
WINDOW, HEADS = 32, 4


# ---- PyTorch: one rank ------------------------------------------------------------------------------------------------


def resnet_of(width):
    from torch import nn, relu

    def convolution(i, out, kernel, stride):
        return nn.Conv2d(i, out, kernel, stride, kernel // 2, bias=False)

    class Block(nn.Module):
        def __init__(self, i, out, stride):
            super().__init__()
            self.path = nn.Sequential(convolution(i, out, 3, stride), nn.BatchNorm2d(out), nn.ReLU(),
                                      convolution(out, out, 3, 1), nn.BatchNorm2d(out))
            self.shortcut = nn.Sequential(convolution(i, out, 1, stride), nn.BatchNorm2d(out)) if stride != 1 or i != out else None

        def forward(self, x):
            return relu(self.path(x) + (x if self.shortcut is None else self.shortcut(x)))

    layers = [convolution(1, width, 3, 1), nn.BatchNorm2d(width), nn.ReLU()]
    channels = width
    for stage in range(4):
        for block in range(2):
            out = width << stage
            layers.append(Block(channels, out, 2 if stage > 0 and block == 0 else 1))
            channels = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def resnet(o):
    import h5py
    import torch
    from torch import nn

    with h5py.File(ROOT / o["data"]) as file:
        read = lambda name: (torch.tensor(file[name]["x"][:], dtype=torch.float32).view(-1, 1, 8, 8) / 16,
                             torch.tensor(file[name]["y"][:]).long())
        train, val = read("train"), read("val")
    optimizer = lambda parameters: torch.optim.SGD(parameters, lr=o["lr"], momentum=o["momentum"], weight_decay=o["weight_decay"])
    loss = lambda outputs, y: nn.functional.cross_entropy(outputs, y)
    return resnet_of(o["width"]), optimizer, loss, train, val, True, None


def gpt_of(width, layers, dropout):
    import math

    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.query_key_value, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))
            self.drop = nn.Dropout(dropout)

        def forward(self, x, later):
            rows, window, width = x.shape
            each = width // HEADS
            parts = self.query_key_value(self.norm1(x)).view(rows, window, 3, HEADS, each)
            q, k, v = (parts.select(2, i).transpose(1, 2) for i in range(3))
            scores = q.matmul(k.transpose(2, 3)) / math.sqrt(each)
            weights = self.drop(scores.masked_fill(later, -math.inf).softmax(-1))
            x = x + self.output(weights.matmul(v).transpose(1, 2).reshape(rows, window, width))
            return x + self.network(self.norm2(x))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.letters, self.places = nn.Embedding(256, width), nn.Embedding(WINDOW, width)
            self.layers = nn.ModuleList(Layer() for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256)
            self.later = torch.ones(WINDOW, WINDOW, dtype=torch.bool).triu(1)  # no buffer: gloo does not copy booleans

        def forward(self, text):
            x = self.letters(text) + self.places.weight
            for layer in self.layers:
                x = layer(x, self.later)
            return self.head(self.norm(x))

    return Gpt()


def text_windows(text):
    """Training and validation: windows of the text, and the same one letter further."""
    import torch

    split = len(text) * 9 // 10

    def windows(part, step):
        every = torch.tensor(list(part)).unfold(0, WINDOW + 1, step)
        return every[:, :-1].contiguous(), every[:, 1:].contiguous()

    return windows(text[:split], WINDOW // 4), windows(text[split:], WINDOW)


def transformer(o):
    import torch
    from torch import nn

    train, val = text_windows((ROOT / o["data"]).read_bytes())
    optimizer = lambda parameters: torch.optim.AdamW(parameters, lr=o["lr"], weight_decay=o["weight_decay"])
    loss = lambda outputs, y: nn.functional.cross_entropy(outputs.flatten(0, 1), y.flatten())
    return gpt_of(o["width"], o["layers"], o["dropout"]), optimizer, loss, train, val, False, 1.0


def torch_rank(rank, size, port, name, seconds, queue):
    import torch
    import torch.distributed as dist

    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % os.cpu_count()]})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    torch.manual_seed(1)
    options = MODELS[name]
    model, make_optimizer, loss_of, train, val, drop_last, clip = {"resnet": resnet, "transformer": transformer}[name](options)
    parallel = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = make_optimizer(parallel.parameters())
    count, batch = len(train[0]), options["batch_size"]
    share = batch // size

    def epoch():
        model.train()
        order = torch.randperm(count, generator=torch.Generator().manual_seed(1))
        total = 0.0
        for begin in range(0, count, batch):
            rows = order[begin:begin + batch]
            if drop_last and len(rows) < batch:
                break
            mine = rows[rank * (len(rows) // size):(rank + 1) * (len(rows) // size)]
            optimizer.zero_grad(set_to_none=False)
            loss = loss_of(parallel(train[0].index_select(0, mine)), train[1].index_select(0, mine))
            loss.backward()
            if clip:
                torch.nn.utils.clip_grad_norm_(parallel.parameters(), clip)
            optimizer.step()
            total += loss.item() * len(mine)
        model.eval()
        own = len(val[0]) // size
        sums = torch.zeros(2, dtype=torch.float64)
        with torch.no_grad():
            for begin in range(rank * own, (rank + 1) * own, share):
                x, y = val[0][begin:begin + share], val[1][begin:begin + share]
                outputs = model(x)
                sums[0] += loss_of(outputs, y).item() * len(x)
                sums[1] += outputs.argmax(-1).eq(y).float().mean().item() * len(x) if name == "resnet" else 0.0
        dist.all_reduce(sums)
        mean = torch.tensor([total], dtype=torch.float64)
        dist.all_reduce(mean)
        return mean.item() / count

    epoch()
    dist.barrier()
    begin, cpu_begin, epochs, passed = time.perf_counter(), time.process_time(), 0, 0.0
    while passed < seconds:
        loss = epoch()
        epochs += 1
        now = torch.tensor([time.perf_counter() - begin])
        dist.all_reduce(now, op=dist.ReduceOp.MAX)
        passed = now.item()
    cpu = torch.tensor([time.process_time() - cpu_begin])
    dist.all_reduce(cpu)
    if rank == 0:
        queue.put({"epoch_s": passed / epochs, "cpu_s": cpu.item() / epochs, "epochs": epochs, "train_loss": loss, "torch": torch.__version__})
    dist.barrier()


def torch_main(name, ranks, seconds):
    import socket

    import torch.multiprocessing as mp

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(torch_rank, nprocs=ranks, args=(ranks, port, name, seconds, queue))
    print(json.dumps(queue.get()))


# ---- both, in turns ---------------------------------------------------------------------------------------------------


def last_json(command):
    environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")
    output = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(output.stdout.strip().splitlines()[-1])


def ours(build, name, ranks, seconds):
    options = dict(MODELS[name], library=build / f"tests/libtorch/{name}.so", data=ROOT / MODELS[name]["data"])
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return last_json(["mpirun", *root, "-n", ranks, "--bind-to", "core", build / "tools/bench/bench_epochs", seconds, "builtin=torch",
                      *(f"{key}={value}" for key, value in options.items())])


def compare(name, build, arguments):
    ratios, cpu_ratios = [], []
    for pair in range(arguments.pairs):
        order = [lambda: ours(build, name, arguments.ranks, arguments.seconds),
                 lambda: last_json([arguments.python, __file__, "--torch", name, "--ranks", arguments.ranks, "--seconds", arguments.seconds])]
        results = [order[i]() for i in ((0, 1) if pair % 2 == 0 else (1, 0))]
        mine, theirs = results if pair % 2 == 0 else reversed(results)
        ratios.append(theirs["epoch_s"] / mine["epoch_s"])
        cpu_ratios.append(theirs["cpu_s"] / mine["cpu_s"])
        print(f"  {name} pair {pair + 1}: ranktune {mine['epoch_s']:.3f} s, PyTorch {theirs['torch']} DDP {theirs['epoch_s']:.3f} s an epoch, "
              f"ratio {ratios[-1]:.2f}, of CPU time {cpu_ratios[-1]:.2f} (losses {mine['train_loss']:.3f}, {theirs['train_loss']:.3f}; load {os.getloadavg()[0]:.1f})", flush=True)
    print(f"{name}: ranktune trains {statistics.median(ratios):.2f} times the samples of PyTorch DDP ({min(ratios):.2f} to "
          f"{max(ratios):.2f} in {len(ratios)} pairs; aim: 1.0), {statistics.median(cpu_ratios):.2f} times as many per second of CPU time", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, help="build directory of ranktune")
    parser.add_argument("--python", default="/usr/bin/python3", help="with PyTorch and h5py")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", choices=sorted(MODELS))
    parser.add_argument("--torch", choices=sorted(MODELS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.torch:
        return torch_main(arguments.torch, arguments.ranks, arguments.seconds)
    if not arguments.build:
        parser.error("the build directory is missing")
    build = arguments.build.resolve()
    for file in ("tools/bench/bench_epochs", "tests/libtorch/resnet.so", "tests/libtorch/transformer.so"):
        if not (build / file).exists():
            parser.error(f"{build / file} is missing: ninja -C {build} {file}")
    for name in [arguments.only] if arguments.only else MODELS:
        compare(name, build, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
