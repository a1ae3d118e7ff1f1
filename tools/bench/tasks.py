#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time and wall time of one short task: `ranktune map` beside xargs and GNU parallel, two at a time.

    tasks.py RANKTUNE [TASKS [ROUNDS]]

Each runs /bin/true once for each number, TASKS times (default 2,000) and a quarter of that, in turn, ROUNDS times (3); the figure of a
round is the difference divided by the difference in tasks, so that start and end of the tool do not count. Prints medians as Markdown."""
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def numbers(count):
    return "".join(f"{number}\n" for number in range(count))


def tools(ranktune):
    xargs = shutil.which("xargs")
    parallel = shutil.which("parallel")
    yield "ranktune map", lambda count: ([ranktune, "map", "--array", f"0-{count - 1}", "--local", "2", "--progress", "none", "--", "/bin/true"], None)
    yield "xargs -P2", lambda count: ([xargs, "-P2", "-n1", "/bin/true"], numbers(count))
    if parallel:
        yield "GNU parallel -j2", lambda count: ([parallel, "--will-cite", "-j2", "/bin/true"], numbers(count))


def measure(command, given):
    """Seconds of CPU, of the tool and its tasks, and of wall time."""
    with tempfile.TemporaryDirectory() as folder:
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(command, input=given, text=True, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main():
    ranktune = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    figures = {}
    for _ in range(rounds):
        for name, command in tools(ranktune):
            many, few = measure(*command(count)), measure(*command(count // 4))
            figures.setdefault(name, []).append([(m - f) / (count - count // 4) * 1000 for m, f in zip(many, few)])
    print("| tool | CPU a task, ms | wall, ms |\n| --- | --- | --- |")
    for name, rows in figures.items():
        cpu, wall = (statistics.median(column) for column in zip(*rows))
        print(f"| {name} | {cpu:.2f} | {wall:.2f} |")


if __name__ == "__main__":
    main()
