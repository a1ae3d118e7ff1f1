#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shuffled batches of 784 floats (3 KB a sample), ranktune.dataset() beside other loaders: loaders.py [VENV [ROUNDS]]

VENV: a virtual environment with torch, webdataset, mosaicml-streaming and grain, of which those are measured that are there; without
it only ranktune.dataset(), by this Python. Each tool reads the same 16,384 samples (51 MB, in its own format, on a disk that has them in
memory) in one process without workers, in batches of 256. Prints medians of ROUNDS (3) as Markdown:

  CPU           of all threads, in us a sample, over EPOCHS epochs
  go on         ms from the files to the first batch from the middle of an epoch on, as after a restart; imports do not count
  the samples   whether that batch, and the rest of the epoch, are those that a run without a restart has
"""
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
ROWS, WIDTH, BATCH, EPOCHS = 16384, 784, 256, 4


def first_of(batch):
    """The number of each sample, which its first value is."""
    rows = batch["x"] if isinstance(batch, dict) else batch[0] if isinstance(batch, (tuple, list)) else batch
    return [int(value) for value in rows.reshape(len(rows), -1)[:, 0].tolist()]


class Ranktune:
    name = "ranktune.dataset()"

    def __init__(self, folder):
        sys.path.insert(0, str(HERE.parents[1] / "python"))
        import ranktune
        import ranktune_function
        self.dataset, self.begin_attempt, self.folder = ranktune.dataset, ranktune_function.begin_attempt, folder

    def make(self, begin):
        """`begin`: samples of the epoch that are done already. An iteration is half an epoch here."""
        os.environ.update(RANKTUNE_SEED="1", RANKTUNE_TRIAL="0", RANKTUNE_ITERATION=str(begin * 2 // ROWS))
        self.begin_attempt()
        return self.dataset(f"{self.folder}/rows.npy", batch=BATCH, per_iteration=ROWS // 2 if begin else ROWS)

    def batches(self, begin=0):
        yield from self.make(begin)


class RanktuneTorch(Ranktune):
    name = "ranktune.dataset().torch()"

    def batches(self, begin=0):
        from torch.utils.data import DataLoader
        yield from DataLoader(self.make(begin).torch(), batch_size=None)


class PyTorch:
    """Has no state: what is done is read again and thrown away."""
    name = "PyTorch DataLoader"

    def __init__(self, folder):
        import numpy
        import torch
        rows = torch.from_numpy(numpy.load(f"{folder}/rows.npy", mmap_mode="c"))

        class Rows(torch.utils.data.Dataset):
            def __len__(self):
                return ROWS

            def __getitem__(self, number):
                return rows[number]
        self.torch, self.data = torch, Rows()

    def batches(self, begin=0):
        order = self.torch.Generator()
        order.manual_seed(1)
        for number, batch in enumerate(self.torch.utils.data.DataLoader(self.data, batch_size=BATCH, shuffle=True, generator=order)):
            if number * BATCH >= begin:
                yield batch


class WebDataset:
    """Has no state, either; shuffles in a buffer of 5,000."""
    name = "WebDataset"

    def __init__(self, folder):
        import numpy
        import webdataset
        self.webdataset, self.path = webdataset, f"{folder}/rows.tar"
        if not os.path.exists(self.path):
            rows = numpy.load(f"{folder}/rows.npy")
            with webdataset.TarWriter(self.path) as out:
                for number in range(ROWS):
                    out.write({"__key__": f"{number:06}", "x.bin": rows[number].tobytes()})

    def batches(self, begin=0):
        import random

        import numpy
        data = self.webdataset.WebDataset(self.path, shardshuffle=False).shuffle(5000, rng=random.Random(1))
        data = data.to_tuple("x.bin").map_tuple(lambda raw: numpy.frombuffer(raw, "float32")).batched(BATCH)
        for number, batch in enumerate(data):
            if number * BATCH >= begin:
                yield batch


class Streaming:
    name = "MosaicML Streaming"

    def __init__(self, folder):
        import numpy
        import streaming
        self.streaming, self.path = streaming, f"{folder}/mds"
        if not os.path.exists(self.path):
            rows = numpy.load(f"{folder}/rows.npy")
            with streaming.MDSWriter(out=self.path, columns={"x": f"ndarray:float32:{WIDTH}"}) as out:
                for number in range(ROWS):
                    out.write({"x": rows[number]})

    def batches(self, begin=0):
        self.streaming.base.util.clean_stale_shared_memory()
        data = self.streaming.StreamingDataset(local=self.path, batch_size=BATCH, shuffle=True, shuffle_seed=1, num_canonical_nodes=1)
        loader = self.streaming.StreamingDataLoader(data, batch_size=BATCH)
        if begin:
            loader.load_state_dict({"epoch": 0, "sample_in_epoch": begin, "num_canonical_nodes": 1, "shuffle_seed": 1, "initial_physical_nodes": 1})
        yield from loader


class Grain:
    name = "Grain"

    def __init__(self, folder):
        import grain
        import numpy
        self.grain, self.rows = grain, numpy.load(f"{folder}/rows.npy", mmap_mode="r")

    def batches(self, begin=0):
        data = iter(self.grain.MapDataset.source(self.rows).seed(1).shuffle().batch(BATCH).to_iter_dataset())
        if begin:
            data.set_state({**data.get_state(), "next_index": begin // BATCH})
        yield from data


TOOLS = [Ranktune, RanktuneTorch, PyTorch, WebDataset, Streaming, Grain]


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(name, folder):
    """Prints the figures of one tool, in a process of its own."""
    tool = next(each for each in TOOLS if each.__name__ == name)(folder)
    whole = [number for batch in tool.batches() for number in first_of(batch)]  # the first epoch also warms up
    assert sorted(whole) == list(range(ROWS)), f"{tool.name} has {len(set(whole))} of {ROWS} samples"
    began = cpu()
    for _ in range(EPOCHS):
        for _batch in tool.batches():
            pass
    spent = (cpu() - began) / EPOCHS / ROWS
    began = time.perf_counter()
    rest = tool.batches(ROWS // 2)
    numbers = first_of(next(rest))
    go_on = time.perf_counter() - began
    numbers += [number for batch in rest for number in first_of(batch)]
    print(json.dumps([spent * 1e6, go_on * 1e3, numbers == whole[ROWS // 2:]]))


def main():
    if sys.argv[1:2] == ["--measure"]:
        return measure(*sys.argv[2:])
    python = str(pathlib.Path(sys.argv[1]) / "bin/python") if len(sys.argv) > 1 else sys.executable
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # NumPy's other threads spin for 30 ms after the import
    with tempfile.TemporaryDirectory() as folder:
        make = ("import numpy; rows = numpy.random.default_rng(1).random(({0}, {1}), 'float32'); rows[:, 0] = range({0}); "
                "numpy.save('rows.npy', rows)").format(ROWS, WIDTH)
        subprocess.run([python, "-c", make], cwd=folder, check=True)
        print("| loader | CPU, us a sample | go on, ms | the samples |\n| --- | --- | --- | --- |")
        found = {}
        for _ in range(rounds):
            for tool in TOOLS:
                done = subprocess.run([python, HERE, "--measure", tool.__name__, folder], capture_output=True, text=True, env=alone)
                if done.returncode == 0:
                    found.setdefault(tool, []).append(json.loads(done.stdout.splitlines()[-1]))
                elif "ModuleNotFoundError" not in done.stderr:
                    sys.exit(f"{tool.name}: {done.stderr}")
        for tool, figures in found.items():
            spent, go_on, same = zip(*figures)
            print(f"| {tool.name} | {statistics.median(spent):.2f} | {statistics.median(go_on):.1f} | {'the same' if all(same) else 'others'} |")


if __name__ == "__main__":
    main()
