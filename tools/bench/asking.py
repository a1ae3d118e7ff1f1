#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ask and tell cost, with a function that costs nothing of five parameters: asking.py RANKTUNE [SEARCHER TRIALS]..."""
import os
import pathlib
import resource
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import ranktune_studies  # noqa: E402


def cpu(whose):
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def main():
    program, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:] or ["random", "20000", "tpe", "2000", "auto", "300"]
    for searcher, trials in zip(wanted[::2], map(int, wanted[1::2])):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            child = cpu(resource.RUSAGE_CHILDREN)
            with ranktune_studies.create("speed", metric="loss", mode="min", num_trials=trials, searcher=searcher, program=program,
                                         space={f"x{i}": "uniform(0, 1)" for i in range(5)}) as study:
                began, own = time.monotonic(), cpu(resource.RUSAGE_SELF)
                while trial := study.ask():
                    study.tell(trial, sum(value * value for value in trial.config.values()))
                wall, own = time.monotonic() - began, cpu(resource.RUSAGE_SELF) - own
            child = cpu(resource.RUSAGE_CHILDREN) - child
            os.chdir("/")
        print(f"{searcher:7} {trials} trials: {trials / wall:.0f} pairs a second; CPU of a pair: loop {1e3 * own / trials:.2f} ms, "
              f"ranktune {1e3 * child / trials:.2f} ms")


if __name__ == "__main__":
    main()
