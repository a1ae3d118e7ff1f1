#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies of data on the nodes: what is read from the original, how fast, and what eight trials that map the copy take in memory.

    staging.py RANKTUNE [MIB]

The "nodes" are ranks of this machine with names and folders of their own in /dev/shm, which must have room for three copies; the file (1024 MiB) lies
in the temporary directory. Reads of the original are counted by strace. Prints Markdown."""
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

STUDY = """[study]
name = "s"
metric = "done"
mode = "max"
num_trials = {trials}
max_iterations = 1
[trainable]
command = '''{command}'''
[space]
x = "uniform(0, 1)"
[searcher]
type = "random"
[scheduler]
type = "fifo"
[data]
data = "{data}"
stage = {stage}
"""

TRIAL = """
import glob, mmap, os, re, sys, time
import ranktune
with open(ranktune.data("data"), "rb") as file:
    view = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    sum(view[::4096])
    open(f"touched-{ranktune.context().trial}", "w").close()
    while len(glob.glob("touched-*")) < 8:
        time.sleep(0.01)
    text = open("/proc/self/smaps").read()
    entry = text[text.index(ranktune.data("data")):]
    open(f"pss-{ranktune.context().trial}", "w").write(re.search(r"Pss: +(\\d+) kB", entry).group(1))
    while len(glob.glob("pss-*")) < 8:
        time.sleep(0.01)
ranktune.report(done=1.0)
"""


def launch(ranktune, nodes, folder):
    """An mpirun whose parts are nodes: [(name, ranks)], each with its $TMPDIR."""
    words = ["mpirun", "--oversubscribe", "--bind-to", "none"] + (["--allow-run-as-root"] if os.getuid() == 0 else [])
    for number, (name, ranks) in enumerate(nodes):
        place = f"{folder}/{name}"
        os.makedirs(place, exist_ok=True)
        words += [":"] * (number > 0) + ["-n", str(ranks), "-x", f"SLURMD_NODENAME={name}", "-x", f"TMPDIR={place}", ranktune, "run", "s.toml", "--progress", "none"]
    return words


def cpu_of(command, where):
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, cwd=where, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - began


class Bench:
    def __init__(self, ranktune, mib):
        self.ranktune, self.mib = ranktune, mib
        self.home = tempfile.TemporaryDirectory()
        self.shm = tempfile.TemporaryDirectory(dir="/dev/shm")
        self.data = f"{self.home.name}/data.bin"
        with open(self.data, "wb") as file:
            for _ in range(mib):
                file.write(os.urandom(1 << 20))

    def study(self, nodes, stage=True, command="/bin/true", trials=1, more="", around=()):
        where = pathlib.Path(tempfile.mkdtemp(dir=self.home.name))
        text = STUDY.format(trials=trials, command=command, data=self.data, stage=str(stage).lower())
        (where / "s.toml").write_text(text.replace("[space]", more + "[space]"))
        (where / "trial.py").write_text(TRIAL)
        return where, [*around, *launch(self.ranktune, nodes, self.shm.name)]

    def reads(self):
        trace = f"{self.home.name}/trace"
        where, command = self.study([("a", 2), ("b", 1), ("c", 1)], more='result = "success"\n',
                                    around=["strace", "-f", "-qq", "-e", "trace=read,pread64,sendfile", "-P", self.data, "-o", trace])
        subprocess.run(command, cwd=where, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        taken = [int(count) for count in re.findall(r"\) += (\d+)$", pathlib.Path(trace).read_text(), re.M)]
        pieces = sum(count for count in taken if count != 1 << 20)  # the look reads blocks of that size
        told = re.findall(r"copied to \S+ in ([\d.]+) s", "".join(log.read_text() for log in where.rglob("*.log")))
        return pieces / (self.mib << 20), sum(taken) / (self.mib << 20), len(told)

    def speed(self):
        rows = []
        for _ in range(3):
            copy = f"{self.shm.name}/cp"
            cp = cpu_of(["cp", self.data, copy], "/")
            os.remove(copy)
            where, command = self.study([("a", 2)], more='result = "success"\n')
            with_copy = cpu_of(command, where)
            seconds = float(re.search(r"copied to \S+ in ([\d.]+) s", "".join(log.read_text() for log in where.rglob("*.log"))).group(1))
            without = cpu_of(*reversed(self.study([("a", 2)], stage=False, more='result = "success"\n')))
            rows.append((cp[0], cp[1], with_copy[0] - without[0], seconds))
        return [sorted(column)[1] for column in zip(*rows)]

    def memory(self):
        where, command = self.study([("a", 9)], command=f"{sys.executable} trial.py", trials=8)
        subprocess.run(command, cwd=where, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return sum(int(path.read_text()) for path in where.glob("pss-*")) / 1024 / self.mib


def main():
    bench = Bench(os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1024)
    pieces, reads, copies = bench.reads()
    gib = bench.mib / 1024
    cp_cpu, cp_wall, own_cpu, own_wall = bench.speed()
    print("| | figure |\n| --- | --- |")
    print(f"| {copies} nodes, read from the original to copy, times the file | {pieces:.3f} |")
    print(f"| the same with the look at its content at the start | {reads:.3f} |")
    print(f"| CPU s per GiB, one node; `cp` | {own_cpu / gib:.2f}; {cp_cpu / gib:.2f} |")
    print(f"| GiB/s, one node; `cp` | {gib / own_wall:.2f}; {gib / cp_wall:.2f} |")
    print(f"| memory of 8 trials that map the copy (PSS), times the file | {bench.memory():.3f} |")


if __name__ == "__main__":
    main()
