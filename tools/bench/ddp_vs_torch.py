#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training speed of ranktune's mlp beside PyTorch's DistributedDataParallel (gloo).

The same models, global batches and precision (float32), SGD with momentum, one thread per process, processes pinned to
one core each, on 1 and 2 processes; and the rate of the bare matrix products of each library. Installs the newest torch
from PyPI into a virtual environment on first use.

usage: tools/bench/ddp_vs_torch.py BUILD_DIR [--venv DIR] [--seconds S] [--repetitions N] [--rounds N] [--only small|large]
       (ninja -C BUILD_DIR tools/bench/bench_ddp_mlp first, in a release build)
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import venv

MODELS = {
    "small": ([64, 256, 256, 10], 256, 1.5),
    "large": ([784, 2048, 2048, 10], 512, 1.1),
}


# ---- the PyTorch side: runs inside the virtual environment --------------------------------------------------------


def torch_rank(rank, size, port, layers, batch, seconds, repetitions, tuned, queue):
    import time

    import torch
    import torch.distributed as dist

    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % os.cpu_count()]})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    torch.manual_seed(1)
    modules = []
    for i, (inputs, outputs) in enumerate(zip(layers, layers[1:])):
        modules += [torch.nn.Linear(inputs, outputs)] + ([torch.nn.ReLU()] if i + 2 < len(layers) else [])
    model = torch.nn.Sequential(*modules)
    if size > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=tuned, static_graph=tuned)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, **({"fused": True} if tuned else {}))
    loss_of = torch.nn.CrossEntropyLoss()
    count = 16 * batch
    x = torch.randn(count, layers[0])
    y = torch.randint(0, layers[-1], (count,))
    share = batch // size

    def epoch():
        order = torch.randperm(count)
        for begin in range(0, count, batch):
            mine = order[begin + rank * share : begin + (rank + 1) * share]
            optimizer.zero_grad(set_to_none=not tuned)
            loss_of(model(x[mine]), y[mine]).backward()
            optimizer.step()

    def measure(epochs):
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(epochs):
            epoch()
        dist.barrier()
        return epochs * count / (time.perf_counter() - begin)

    def products():
        """Floating-point operations per second of only the matrix products of a step."""
        rows = share
        operations, begin = 0.0, time.perf_counter()
        pieces = [(torch.randn(rows, i), torch.randn(o, i), torch.randn(rows, o)) for i, o in zip(layers, layers[1:])]
        while time.perf_counter() - begin < 0.5:
            for i, (a, w, d) in enumerate(pieces):
                torch.mm(a, w.t())
                torch.mm(d.t(), a)
                if i > 0:
                    torch.mm(d, w)
                operations += 2.0 * rows * w.numel() * (3 if i > 0 else 2)
        return operations / (time.perf_counter() - begin)

    measure(1)
    rate = torch.tensor(measure(2))
    dist.broadcast(rate, 0)
    epochs = max(1, int(seconds * float(rate) / count))
    rates = sorted(measure(epochs) for _ in range(repetitions))
    total = torch.tensor(products())
    dist.all_reduce(total)
    if rank == 0:
        queue.put({"ranks": size, "samples_per_s": rates[len(rates) // 2], "slowest": rates[0], "fastest": rates[-1],
                   "gemm_gflops": float(total) * 1e-9, "torch": torch.__version__})
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # teardown of a static-graph DDP sometimes aborts, after all measurements


def torch_main(arguments):
    import socket

    import torch.multiprocessing as mp

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = mp.get_context("spawn")
    queue = context.SimpleQueue()
    layers, batch, _ = MODELS[arguments.model]
    mp.spawn(torch_rank, nprocs=arguments.ranks,
             args=(arguments.ranks, port, layers, batch, arguments.seconds, arguments.repetitions, arguments.tuned, queue))
    print(json.dumps(queue.get()))


# ---- both sides ----------------------------------------------------------------------------------------------------


def prepare(directory):
    python = directory / "bin" / "python"
    if not python.exists():
        print(f"installing the newest torch into {directory}", file=sys.stderr)
        venv.create(directory, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "torch", "numpy"], check=True)
    return python


def last_json(command, **kwargs):
    output = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True, **kwargs)
    return json.loads(output.stdout.strip().splitlines()[-1])


def ours(program, ranks, layers, batch, arguments):
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return last_json(["mpirun", *root, "-n", ranks, "--bind-to", "core", program, "--layers",
                      ",".join(map(str, layers)), "--batch", batch, "--seconds", arguments.seconds,
                      "--repetitions", arguments.repetitions])


def theirs(python, model, ranks, tuned, arguments):
    environment = dict(os.environ, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")
    return last_json([python, __file__, "--torch", model, ranks, int(tuned), "--seconds", arguments.seconds,
                      "--repetitions", arguments.repetitions])


def median_of(results):
    """The result with the median rate."""
    return sorted(results, key=lambda result: result["samples_per_s"])[len(results) // 2]


def compare(name, program, python, arguments):
    layers, batch, bar = MODELS[name]
    print(f"\n{'-'.join(map(str, layers))}, global batch {batch}, float32, SGD with momentum")
    print(f"  {'':34} {'1 process':>12} {'2 processes':>12} {'2 / 1':>6} {'bare GEMMs':>20}")
    programs = {"PyTorch DDP, gloo": lambda n: theirs(python, name, n, False, arguments),
                "  bucket views, static, fused SGD": lambda n: theirs(python, name, n, True, arguments),
                "ranktune mlp": lambda n: ours(program, n, layers, batch, arguments)}
    # Round by round, so that a slow phase of the machine affects all variants.
    rounds = [{(label, n): measure(n) for n in (1, 2) for label, measure in programs.items()}
              for _ in range(arguments.rounds)]
    rows = {label: [median_of([one_round[label, n] for one_round in rounds]) for n in (1, 2)] for label in programs}
    for label, (one, two) in rows.items():
        scaling = two["samples_per_s"] / one["samples_per_s"]
        print(f"  {label:34} {one['samples_per_s']:>10,.0f}/s {two['samples_per_s']:>10,.0f}/s {scaling:>6.2f} "
              f"{one['gemm_gflops']:>7.0f} / {two['gemm_gflops']:.0f} GFLOP/s", flush=True)
    peer = max((rows[label] for label in rows if label != "ranktune mlp"), key=lambda row: row[1]["samples_per_s"])
    mine = rows["ranktune mlp"]
    ratio = mine[1]["samples_per_s"] / peer[1]["samples_per_s"]
    products = mine[1]["gemm_gflops"] / peer[1]["gemm_gflops"]
    print(f"  on 2 processes ranktune trains {ratio:.2f} times the samples of the faster PyTorch (aim: {bar}); its bare "
          f"GEMMs run at {products:.2f} of PyTorch's speed")
    print(f"  communication: {mine[1]['in_flight_us_per_step']:.0f} us in flight per step, "
          f"{mine[1]['waited_us_per_step']:.0f} us waited for, {100 * mine[1]['hidden']:.0f} % hidden; torch "
          f"{peer[1]['torch']}, {mine[1]['blas']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", help="build directory of ranktune (release)")
    parser.add_argument("--venv", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "ranktune-bench-venv")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each repetition")
    parser.add_argument("--repetitions", type=int, default=1, help="within a program; the median counts")
    parser.add_argument("--rounds", type=int, default=3, help="of all programs, one after the other; the median counts")
    parser.add_argument("--only", choices=sorted(MODELS))
    parser.add_argument("--torch", nargs=3, metavar=("MODEL", "RANKS", "TUNED"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.torch:
        arguments.model, arguments.ranks, arguments.tuned = (
            arguments.torch[0], int(arguments.torch[1]), arguments.torch[2] == "1")
        return torch_main(arguments)
    if not arguments.build:
        parser.error("the build directory is missing")
    program = pathlib.Path(arguments.build) / "tools/bench/bench_ddp_mlp"
    if not program.exists():
        parser.error(f"{program} is missing: ninja -C {arguments.build} tools/bench/bench_ddp_mlp")
    python = prepare(arguments.venv)
    for name in [arguments.only] if arguments.only else ["small", "large"]:
        compare(name, program, python, arguments)


if __name__ == "__main__":
    main()
