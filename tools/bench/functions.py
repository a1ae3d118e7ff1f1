#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the start of a trial costs: 200 trials of 3 iterations of 10 ms on 2 workers, as a Python function and as a program that
does the same: functions.py RANKTUNE [RUNS] (wall time and CPU of all processes; medians)."""
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

TRIALS, ITERATIONS, STEP, WORKERS = 200, 3, 0.01, 2
STUDY = """[study]
name = "start"
metric = "score"
mode = "max"
num_trials = {trials}
max_iterations = 3
[trainable]
{trainable}
[searcher]
type = "random"
[space]
x = "uniform(0, 1)"
"""
TRAIN = """import time, ranktune
def train(config):
    for i in range(3):
        time.sleep(0.01)
        ranktune.report(score=config.x + i)
if __name__ == "__main__":
    train(ranktune.config())
"""
WAYS = {"function": 'python = "train.py:train"', "program": 'command = "python3 train.py"'}


def run(program, trainable, trials):
    """Wall time and CPU."""
    pathlib.Path("start.toml").write_text(STUDY.format(trials=trials, trainable=trainable))
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([program, "run", "start.toml", "--local", str(WORKERS), "-q", "--fresh"], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    program, runs = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("train.py").write_text(TRAIN)
        ideal = TRIALS * ITERATIONS * STEP / WORKERS
        for way in ("function", "program"):
            few = [run(program, WAYS[way], WORKERS) for _ in range(runs)]
            all_ = [run(program, WAYS[way], TRIALS) for _ in range(runs)]
            wall, cpu = (statistics.median(column) for column in zip(*all_))
            start = statistics.median(row[0] for row in few)
            per_trial = (cpu - statistics.median(row[1] for row in few)) / (TRIALS - WORKERS)
            print(f"{way:9} wall {wall:.2f} s, of which {start:.2f} s with {WORKERS} trials alone (iterations: {ideal:.1f} s); "
                  f"{per_trial * 1e3:.1f} ms of CPU a trial, head and workers included")


if __name__ == "__main__":
    main()
