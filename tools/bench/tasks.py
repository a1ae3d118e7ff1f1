#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time and wall time of one short task: `ranktune map` beside xargs, GNU parallel and HyperQueue, two at a time.

    tasks.py [--kept] RANKTUNE [TASKS [ROUNDS [VENV]]]

Each runs /bin/true once for each number, TASKS times (default 2,000) and a quarter of that, in turn, ROUNDS times (3); the figure of a
round is the difference divided by the difference in tasks, so that start and end of the tool do not count. Prints medians as Markdown.

--kept: rows of a Python program that squares a number, which `ranktune map --kept` starts once per worker, instead of /bin/true; beside
one that is started for each row.

VENV: a virtual environment with hyperqueue, whose server and worker run in the process that submits; nothing is kept of what tasks print."""
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


PROGRAMS = {
    "kept.py": "import ranktune\nfor row in ranktune.tasks():\n    ranktune.result(y=row.x * row.x)\n",
    "once.py": "import json, ranktune\nrow = ranktune.config()\nprint(json.dumps({'y': row.x * row.x}))\n",
}


HYPERQUEUE = """import sys
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
with LocalCluster(worker_config=WorkerConfig(cores=2)) as cluster:
    job = Job()
    for _ in range(int(sys.argv[1])):
        job.program(["/bin/true"], stdout=None, stderr=None)
    client = cluster.client()
    client.wait_for_jobs([client.submit(job)])
"""


def numbers(count):
    return "".join(f"{number}\n" for number in range(count))


def mapped(ranktune, rows, command, *options):
    return [ranktune, "map", *rows, *options, "--local", "2", "--progress", "none", "--", *command], None


def tools(ranktune, venv):
    """Name, and for a number of tasks the command with its standard input."""
    xargs = shutil.which("xargs")
    parallel = shutil.which("parallel")
    yield "ranktune map", lambda count: mapped(ranktune, ["--array", f"0-{count - 1}"], ["/bin/true"])
    yield "xargs -P2", lambda count: ([xargs, "-P2", "-n1", "/bin/true"], numbers(count))
    if parallel:
        yield "GNU parallel -j2", lambda count: ([parallel, "--will-cite", "-j2", "/bin/true"], numbers(count))
    if venv:
        yield "HyperQueue", lambda count: ([venv + "/bin/python", "-c", HYPERQUEUE, str(count)], None)


def python_tools(ranktune, _venv):
    """The same, of rows in Python."""
    def rows(count):
        return ["--grid", f"x=range({count})"]

    yield "ranktune map --kept", lambda count: mapped(ranktune, rows(count), [sys.executable, "kept.py"], "--kept")
    yield "ranktune map", lambda count: mapped(ranktune, rows(count), [sys.executable, "once.py"])


def measure(command, given):
    """Seconds of CPU, of the tool and its tasks, and of wall time."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in PROGRAMS.items():
            pathlib.Path(folder, name).write_text(text)
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(command, input=given, text=True, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main():
    words = [word for word in sys.argv[1:] if word != "--kept"]
    compared = python_tools if "--kept" in sys.argv else tools
    ranktune = os.path.abspath(words[0])
    count = int(words[1]) if len(words) > 1 else 2000
    rounds = int(words[2]) if len(words) > 2 else 3
    venv = os.path.abspath(words[3]) if len(words) > 3 else ""
    figures = {}
    for _ in range(rounds):
        for name, command in compared(ranktune, venv):
            many, few = measure(*command(count)), measure(*command(count // 4))
            figures.setdefault(name, []).append([(m - f) / (count - count // 4) * 1000 for m, f in zip(many, few)])
    print("| tool | CPU a task, ms | wall, ms |\n| --- | --- | --- |")
    for name, rows in figures.items():
        cpu, wall = (statistics.median(column) for column in zip(*rows))
        print(f"| {name} | {cpu:.2f} | {wall:.2f} |")


if __name__ == "__main__":
    main()
