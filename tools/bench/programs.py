#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The overhead of a program as a trial: studies of trials with one report each, on worker ranks of one
process, compared with as many plain loops of posix_spawn, report, answer and wait over the same program.

The cost of a trial is (wall time of the study - that of a study of a few trials) x workers / trials: how long a worker is busy
with it. Beside it the CPU time of all processes, which says more on a machine with other work. Once with a program that does nothing else, once with Python importing ranktune.

usage: tools/bench/programs.py BUILD_DIR [--trials N] [--python-trials N] [--workers N] [--repetitions N]
       (ninja -C BUILD_DIR src/cli/ranktune tools/bench/bench_one_report tools/bench/bench_spawn_loop first, in a release build)
"""
import argparse
import os
import pathlib
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

STUDY = """[study]
name = "programs"
metric = "score"
mode = "max"
num_trials = {trials}
max_iterations = 1
[trainable]
command = {command}
[searcher]
type = "random"
[space]
x = "uniform(0, 1)"
"""
FEW = 3
ALLOWED_MS = 15.0


def cpu_of_children():
    """CPU seconds of all processes that this one and its descendants have waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def seconds_of(command, **kwargs):
    """(wall, CPU)"""
    begin, cpu = time.perf_counter(), cpu_of_children()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)
    return time.perf_counter() - begin, cpu_of_children() - cpu


def study_seconds(ranktune, command, trials, workers):
    with tempfile.TemporaryDirectory(prefix="ranktune-bench-") as folder:
        quoted = '"' + shlex.join(command).replace("\\", "\\\\").replace('"', '\\"').replace("{", "{{").replace("}", "}}") + '"'
        pathlib.Path(folder, "s.toml").write_text(STUDY.format(trials=trials, command=quoted))
        return seconds_of([ranktune, "run", "s.toml", "--local", str(workers)], cwd=folder,
                          env=dict(os.environ, NO_COLOR="1"))


def loop_seconds(loop, command, trials, workers, env):
    return seconds_of([loop, str(trials), str(workers), *command], env=env)


def measure(name, ranktune, loop, command, trials, arguments, env):
    """Interleaved, so that a slow phase of the machine affects both sides; medians of the repetitions."""
    studies, starts, loops = [], [], []
    for _ in range(arguments.repetitions):
        starts.append(study_seconds(ranktune, command, FEW, arguments.workers))
        studies.append(study_seconds(ranktune, command, FEW + trials, arguments.workers))
        loops.append(loop_seconds(loop, command, trials, arguments.workers, env))
    print(f"{name}: {trials} trials on {arguments.workers} workers, ms per trial, median of {arguments.repetitions} (range)")
    print(f"  {'':28} {'wall x workers':>28}   {'CPU':>28}")
    per_trial = (1e3 * arguments.workers / trials, 1e3 / trials)
    of_study = [[f * (whole[k] - start[k]) for whole, start in zip(studies, starts)] for k, f in enumerate(per_trial)]
    of_loop = [[f * value[k] for value in loops] for k, f in enumerate(per_trial)]
    beyond = [[a - b for a, b in zip(of_study[k], of_loop[k])] for k in range(2)]
    for label, columns in (("a trial of the study", of_study), ("posix_spawn, report, wait", of_loop),
                           ("beyond the program itself", beyond)):
        texts = [f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})" for values in columns]
        print(f"  {label:28} {texts[0]:>28}   {texts[1]:>28}")
    print(flush=True)
    return statistics.median(beyond[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--python-trials", type=int, default=100)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    ranktune, parts = arguments.build / "src/cli/ranktune", arguments.build / "tools/bench"
    for part in (ranktune, parts / "bench_one_report", parts / "bench_spawn_loop"):
        if not part.exists():
            parser.error(f"{part} is missing: ninja -C {arguments.build}")
    module = pathlib.Path(__file__).resolve().parents[1] / "python"
    loop = parts / "bench_spawn_loop"
    beyond = measure("a program that only reports", ranktune, loop, [str(parts / "bench_one_report")], arguments.trials,
                     arguments, dict(os.environ))
    if arguments.python_trials:
        script = [sys.executable, "-c", "import ranktune; ranktune.report(score=1)"]
        measure("Python that only reports", ranktune, loop, script, arguments.python_trials, arguments,
                dict(os.environ, PYTHONPATH=str(module)))
    return 0 if beyond <= ALLOWED_MS else 1


if __name__ == "__main__":
    sys.exit(main())
