#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What looking at a study costs: CPU and memory of the views, and what the head notices of them.

usage: seeing.py RANKTUNE [views | head]...      default: both
views   status of a running study of 10,000 trials; report of studies with a million reports. CPU (user and system), wall time, memory.
head    CPU of the head of a running study, as a share of a core, in turns: nobody looks; ten readers follow it with `serve`; a thousand
        answered requests lie in control/. Medians of the turns, and the range.
"""
import http.client
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

STUDY = """[study]
name = "bench"
metric = "score"
mode = "max"
num_trials = {trials}
max_iterations = {iterations}
seed = 4
[trainable]
builtin = "curve"
seconds = {seconds}
[searcher]
type = "random"
[space]
lr = "loguniform(1e-4, 1.0)"
a = "uniform(-1, 1)"
b = "uniform(-1, 1)"
c = [0.0, 0.5, 1.0]
[scheduler]
type = "{scheduler}"
"""
TURN_S = 10.0
TURNS = 5


def measured(*words, cwd):
    """CPU seconds, wall seconds, and the largest memory in MB of a command."""
    began = time.monotonic()
    process = subprocess.Popen(words, cwd=cwd, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{words}: exit {process.returncode}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - began, usage.ru_maxrss / 1024


def told(name, ranktune, *words, cwd, times=5):
    runs = [measured(ranktune, *words, cwd=cwd) for _ in range(times)]
    cpu, wall, memory = ([run[k] for run in runs] for k in range(3))
    print(f"{name}: CPU {min(cpu):.3f} to {max(cpu):.3f} s, wall {min(wall):.2f} to {max(wall):.2f} s, {max(memory):.0f} MB", flush=True)


class Running:
    """A study that runs until it is left."""

    def __init__(self, ranktune, folder, trials, seconds):
        self.ranktune, self.folder, self.wanted = ranktune, folder, trials
        (folder / "bench.toml").write_text(STUDY.format(trials=10_000_000, iterations=81, seconds=seconds, scheduler="asha"))

    def __enter__(self):
        self.process = subprocess.Popen([self.ranktune, "run", "bench.toml", "--local", "2", "-q"], cwd=self.folder, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        while self.trials() < self.wanted:
            time.sleep(0.2)
        return self

    def __exit__(self, *_):
        subprocess.run([self.ranktune, "stop", "bench"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        self.process.wait()

    def trials(self):
        done = subprocess.run([self.ranktune, "status", "bench", "--json"], cwd=self.folder, capture_output=True, text=True)
        return sum(map(int, re.findall(r'"(?:waiting|running|ending|paused|finished|stopped|failed)": (\d+)', done.stdout))) if done.returncode == 0 else 0

    def head(self):
        """The process of rank 0."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if b"OMPI_COMM_WORLD_RANK=0\0" in (process / "environ").read_bytes() and os.readlink(process / "cwd") == str(self.folder.resolve()):
                    return process
            except OSError:
                pass
        raise SystemExit("the head is not found: this needs Open MPI")


def cpu_share(process, seconds):
    """Of one core, all threads together."""
    def spent():
        total = 0
        for task in (process / "task").iterdir():
            try:
                total += int((task / "schedstat").read_text().split()[0])
            except OSError:  # the thread has just ended
                pass
        return total / 1e9
    before, began = spent(), time.monotonic()
    time.sleep(seconds)
    return (spent() - before) / (time.monotonic() - began)


class Readers:
    """Ten pages that follow the study, each loading the data again at every event, as the page does."""

    def __init__(self, ranktune, folder):
        self.ranktune, self.folder, self.over, self.loads = ranktune, folder, False, 0

    def __enter__(self):
        self.process = subprocess.Popen([self.ranktune, "serve", "bench"], cwd=self.folder, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        found = re.search(r":(\d+)(/\w+/)", self.process.stdout.readline())
        self.port, self.prefix = int(found[1]), found[2]
        self.threads = [threading.Thread(target=self.follow, daemon=True) for _ in range(10)]
        for thread in self.threads:
            thread.start()
        time.sleep(1)
        return self

    def follow(self):
        events = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        events.request("GET", self.prefix + "events/0")
        stream = events.getresponse()
        while not self.over:
            try:
                if stream.readline().startswith(b"data:"):
                    data = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                    data.request("GET", self.prefix + "data/0")
                    data.getresponse().read()
                    data.close()
                    self.loads += 1
            except OSError:
                return

    def __exit__(self, *_):
        self.over = True
        self.process.terminate()
        self.process.wait()


def views(ranktune):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with Running(ranktune, folder, 10_000, 0.0) as study:
            # (It goes on, and has more trials from run to run.)
            told("status of a running study of 10,000 trials and more", ranktune, "status", "bench", cwd=folder)
            print(f"    now it has {study.trials():,}")
    for words, trials, iterations, scheduler in (("10,000 trials x 100", 10_000, 100, "fifo"), ("250,000 trials of ASHA", 250_000, 81, "asha")):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "bench.toml").write_text(STUDY.format(trials=trials, iterations=iterations, seconds=0.0, scheduler=scheduler))
            subprocess.run([ranktune, "simulate", "bench.toml", "--groups", "256", "-o", "bench"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            told(f"report of a million reports, {words}", ranktune, "report", "bench", "-o", "page.html", cwd=folder)


def head(ranktune):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with Running(ranktune, folder, 500, 0.02) as study:
            process, shares = study.head(), {"nobody looks": [], "ten readers": [], "1,000 answers": []}
            control = folder / "bench/control"
            for _ in range(TURNS):
                shares["nobody looks"].append(cpu_share(process, TURN_S))
                with Readers(ranktune, folder) as readers:
                    shares["ten readers"].append(cpu_share(process, TURN_S))
                control.mkdir(exist_ok=True)
                for k in range(1000):
                    (control / f"bench-{k}.answer").write_text("accepted: nothing\n")
                shares["1,000 answers"].append(cpu_share(process, TURN_S))
                for k in range(1000):
                    (control / f"bench-{k}.answer").unlink()
            print(f"the pages were loaded {readers.loads} times in the last turn")
            for words, each in shares.items():
                print(f"head, {words}: {100 * statistics.median(each):.2f} % of a core ({100 * min(each):.2f} to {100 * max(each):.2f})")


def main():
    ranktune = str(pathlib.Path(sys.argv[1]).resolve())
    parts = {"views": views, "head": head}
    for part in sys.argv[2:] or parts:
        parts[part](ranktune)


if __name__ == "__main__":
    main()
