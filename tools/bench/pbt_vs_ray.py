#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Population-based training of one and the same Python training loop under ranktune and under Ray Tune.

8 members, 20 ready points, 0.2 s of training between two (waiting, as for a device), 100 MiB of weights, which are saved at
every ready point on both sides. Wall time of the whole command; for Ray also without the start of its services.
ranktune twice: with the process kept alive (report(..., exploits=True)), and started again at each takeover. With --members
BENCH_MEMBERS also the same in C++, whose weights go from memory to memory; that is no comparison. Installs the newest Ray from
PyPI into a virtual environment on first use; both sides run its Python.

usage: tools/bench/pbt_vs_ray.py RANKTUNE [--members BENCH_MEMBERS] [--venv DIR] [--rounds N]     (a release build)
Ends with 1 unless ranktune is 3 times as fast with the process kept alive, and no slower with restarts.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv

MEMBERS, INTERVALS, SECONDS, MIB = 8, 20, 0.2, 100

STUDY = """[study]
name = "population"
metric = "score"
mode = "max"
num_trials = {members}
max_iterations = {intervals}
seed = 1
[trainable]
{trainable}
[searcher]
type = "random"
[space]
lr = "uniform(0.1, 1.0)"
[scheduler]
type = "pbt"
interval = 1
[scheduler.explore]
lr = "perturb"
"""


# ---- the training loop of both sides ----------------------------------------------------------------------------------


class Training:
    """Weights of 100 MiB that grow by the learning rate; their mean is the score."""

    def __init__(self, lr, checkpoint):
        import numpy as np

        self.np, self.lr, self.iteration = np, lr, 0
        self.weights = np.zeros(MIB * 2**18, np.float32)
        if checkpoint:
            self.load(checkpoint)

    def load(self, checkpoint):
        self.weights = self.np.load(pathlib.Path(checkpoint) / "weights.npy")

    def step(self):
        time.sleep(SECONDS)
        self.weights += self.np.float32(self.lr)
        return float(self.weights[::4096].mean())

    def save(self, folder):
        self.np.save(pathlib.Path(folder) / "weights.npy", self.weights)


def ranktune_side(alive):
    import ranktune

    training = Training(ranktune.config().lr, ranktune.checkpoint())
    for iteration in range(ranktune.context().iteration, INTERVALS):
        score = training.step()
        folder = tempfile.mkdtemp(dir=".")
        training.save(folder)
        told = ranktune.report(score=score, checkpoint=folder, exploits=alive)
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(told, ranktune.Exploit):
            training.load(told.checkpoint)
            training.lr = told.config.lr


def ray_train(config):
    from ray import tune

    checkpoint = tune.get_checkpoint()
    iteration, training = 0, None
    if checkpoint:
        with checkpoint.as_directory() as folder:
            training = Training(config["lr"], folder)
            iteration = int((pathlib.Path(folder) / "iteration").read_text())
    training = training or Training(config["lr"], None)
    while iteration < INTERVALS:
        score = training.step()
        iteration += 1
        with tempfile.TemporaryDirectory() as folder:
            training.save(folder)
            (pathlib.Path(folder) / "iteration").write_text(str(iteration))
            tune.report({"score": score}, checkpoint=tune.Checkpoint.from_directory(folder))


def ray_side(storage):
    import ray
    from ray import tune
    from ray.tune.schedulers import PopulationBasedTraining

    ray.init(num_cpus=MEMBERS, include_dashboard=False, log_to_driver=False)
    scheduler = PopulationBasedTraining(time_attr="training_iteration", perturbation_interval=1,
                                        hyperparam_mutations={"lr": tune.uniform(0.1, 1.0)})
    begin = time.perf_counter()
    results = tune.Tuner(
        ray_train, param_space={"lr": tune.uniform(0.1, 1.0)},
        tune_config=tune.TuneConfig(metric="score", mode="max", num_samples=MEMBERS, scheduler=scheduler, reuse_actors=True),
        run_config=tune.RunConfig(storage_path=storage, verbose=0, stop={"training_iteration": INTERVALS})).fit()
    seconds = time.perf_counter() - begin
    if results.errors or len(results) != MEMBERS:
        sys.exit(f"Ray: {len(results.errors)} of {len(results)} trials failed")
    print(f"fit {seconds:.2f}", flush=True)


# ---- measuring --------------------------------------------------------------------------------------------------------


def prepare(directory):
    python = directory / "bin/python"
    if not python.exists():
        venv.create(directory, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "ray[tune]", "numpy"], check=True)
    return python


def timed(command, folder):
    log = folder / "log"
    begin = time.perf_counter()
    with open(log, "w") as out:
        done = subprocess.run([str(part) for part in command], cwd=folder, stdout=out, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, check=False)
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with {done.returncode}:\n{log.read_text()[-3000:]}")
    return seconds, log.read_text()


def one(side, python, arguments):
    """(wall time, that without the start of services)"""
    script = pathlib.Path(__file__).resolve()
    with tempfile.TemporaryDirectory(prefix="ranktune-bench-") as base:
        folder = pathlib.Path(base)
        if side == "ray":
            seconds, log = timed([python, script, "--side", "ray", "--storage", folder], folder)
            return seconds, float(log.rsplit("fit ", 1)[1].split()[0])
        os.environ["PYTHONPATH"] = str(script.parents[1] / "python")
        trainable = 'name = "member"' if side == "c++" else f'command = "{python} {script} --side {side}"'
        (folder / "s.toml").write_text(STUDY.format(members=MEMBERS, intervals=INTERVALS, trainable=trainable))
        program = arguments.members if side == "c++" else arguments.ranktune
        seconds, _ = timed([program, "run", "s.toml", "--local", MEMBERS], folder)
        return seconds, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ranktune", nargs="?", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--members", type=lambda path: pathlib.Path(path).resolve(), help="the program bench_members")
    parser.add_argument("--venv", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "ranktune-bench-ray")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", choices=("ray", "alive", "restarted"), help=argparse.SUPPRESS)
    parser.add_argument("--storage", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side == "ray":
        return ray_side(arguments.storage)
    if arguments.side:
        return ranktune_side(arguments.side == "alive")
    if not arguments.ranktune:
        parser.error("name the ranktune to measure")
    python = prepare(arguments.venv)
    times = {side: [] for side in ("alive", "restarted", "ray", *(["c++"] if arguments.members else []))}
    for _ in range(arguments.rounds):  # one after the other, so that a slow phase of the machine affects all
        for side in times:
            times[side].append(one(side, python, arguments))
    median = {side: statistics.median(wall for wall, _ in pairs) for side, pairs in times.items()}
    fit = statistics.median(inner for _, inner in times["ray"])
    for side, pairs in times.items():
        print(f"{side:10} {median[side]:7.2f} s   ({min(pairs)[0]:.2f} to {max(pairs)[0]:.2f})")
    print(f"Ray without the start of its services: {fit:.2f} s")
    print(f"Ray / ranktune: {median['ray'] / median['alive']:.2f} alive, {median['ray'] / median['restarted']:.2f} restarted; "
          f"without the start of its services {fit / median['alive']:.2f} and {fit / median['restarted']:.2f}")
    print(f"(training alone takes {INTERVALS * SECONDS:.1f} s)")
    return 0 if fit >= 3 * median["alive"] and fit >= median["restarted"] else 1


if __name__ == "__main__":
    sys.exit(main())
