#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the start of a trial costs: 200 trials of 3 iterations of 10 ms on 2 workers, as a Python function (in an interpreter that is
kept, or forked for each) and as a program that does the same: functions.py RANKTUNE [RUNS [VENV]] (wall time and CPU of all processes; medians). VENV: a virtual environment
with optuna and ray[tune], which run the same function beside it."""
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
PEERS = {"Optuna, n_jobs = 2": """import optuna, sys, time
optuna.logging.set_verbosity(optuna.logging.WARNING)
def train(trial):
    x = trial.suggest_float("x", 0, 1)
    for i in range(3):
        time.sleep(0.01)
        trial.report(x + i, i)
    return x + 2
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler())
study.optimize(train, n_trials=int(sys.argv[1]), n_jobs=2)
""", "Ray Tune": """import sys, time
import ray
from ray import tune
def train(config):
    for i in range(3):
        time.sleep(0.01)
        tune.report({"score": config["x"] + i})
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
tuner = tune.Tuner(tune.with_resources(train, {"cpu": 1}), param_space={"x": tune.uniform(0, 1)},
                   tune_config=tune.TuneConfig(num_samples=int(sys.argv[1]), metric="score", mode="max", max_concurrent_trials=2, reuse_actors=True),
                   run_config=tune.RunConfig(verbose=0))
assert len(tuner.fit()) == int(sys.argv[1])
"""}
WAYS = {"function, kept": 'python = "train.py:train"\nkept = true', "function": 'python = "train.py:train"', "program": 'command = "python3 train.py"'}


def run(way, trials):
    """Wall time and CPU."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(way(trials), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def own(program, trainable):
    def command(trials):
        pathlib.Path("start.toml").write_text(STUDY.format(trials=trials, trainable=trainable))
        return [program, "run", "start.toml", "--local", str(WORKERS), "-q", "--fresh"]
    return command


def main():
    program, runs = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    venv = os.path.abspath(sys.argv[3]) + "/bin/python" if len(sys.argv) > 3 else ""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("train.py").write_text(TRAIN)
        ideal = TRIALS * ITERATIONS * STEP / WORKERS
        ways = {f"ranktune, {name}": own(program, trainable) for name, trainable in WAYS.items()}
        for name, text in PEERS.items() if venv else ():
            ways[name] = lambda trials, text=text, python=venv: [python, "-c", text, str(trials)]
        for name, way in ways.items():
            few = [run(way, WORKERS) for _ in range(runs)]
            all_ = [run(way, TRIALS) for _ in range(runs)]
            wall, cpu = (statistics.median(column) for column in zip(*all_))
            start = statistics.median(row[0] for row in few)
            per_trial = (cpu - statistics.median(row[1] for row in few)) / (TRIALS - WORKERS)
            print(f"{name:24} wall {wall:.2f} s, of which {start:.2f} s with {WORKERS} trials alone (iterations: {ideal:.1f} s); "
                  f"{per_trial * 1e3:.1f} ms of CPU a trial, head and workers included")


if __name__ == "__main__":
    main()
