#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other tools on the functions of search_functions.hpp, with the output of bench_search.

search_peers.py PEER FUNCTION SEEDS [WORKERS [EVALUATIONS]]     a line for each seed
search_peers.py --values FUNCTION < configurations              the value of each line of `name=value name=value ...`
search_peers.py --minima                                        of each function: value where it is smallest, smallest value
search_peers.py --version                                       the version of Optuna

Peers: optuna-random, optuna-tpe (its default), optuna-tpe-mv (multivariate), with -cl (constant liar) where it is an option,
optuna-tpe-mvg (multivariate, groups), optuna-cmaes, optuna-gp, optuna-nsga2.
"""
import heapq
import math
import random
import sys
import time
import warnings

MARKS = (25, 50, 100, 200)


def square(x):
    return x * x


def position(x, low, high):
    return (math.log(x) - math.log(low)) / (math.log(high) - math.log(low))


def branin(x):
    y = x[1] - 5.1 / (4 * math.pi ** 2) * x[0] ** 2 + 5 / math.pi * x[0] - 6
    return y * y + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x[0]) + 10


ALPHA = (1.0, 1.2, 3.0, 3.2)
A = ((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8), (17, 8, 0.05, 10, 0.1, 14))
P = ((1312, 1696, 5569, 124, 8283, 5886), (2329, 4135, 8307, 3736, 1004, 9991), (2348, 1451, 3522, 2883, 3047, 6650),
     (4047, 8828, 8732, 5743, 1091, 381))


def hartmann6(x):
    return -sum(alpha * math.exp(-sum(a * square(v - 1e-4 * p) for a, p, v in zip(row, places, x)))
                for alpha, row, places in zip(ALPHA, A, P))


def ackley(x):
    n = len(x)
    return (-20 * math.exp(-0.2 * math.sqrt(sum(v * v for v in x) / n)) - math.exp(sum(math.cos(2 * math.pi * v) for v in x) / n)
            + 20 + math.e)


def rosenbrock(x):
    return sum(100 * square(b - a * a) + square(1 - a) for a, b in zip(x, x[1:]))


def mixed6(c):
    places = {"a": 0.9, "b": 0.3, "c": 0.1, "d": 0.7, "e": 0.5}
    return hartmann6((c["plain"], position(c["log"], 1e-4, 1), c["integer"] / 20, c["quantised"], places[c["category"]],
                      position(c["ordered"], 16, 1024)))


def mixcond(c):
    if c["algo"] == "svm":
        u = position(c["C"], 1e-3, 1e3) - 0.7
        value = 0.12 + 0.5 * u * u + {"linear": 0.08, "rbf": 0.0, "poly": 0.03}[c["kernel"]]
        if c["kernel"] != "linear":
            value += square(position(c["gamma"], 1e-5, 10) - (0.55 - 0.3 * u))
        return value + (0.02 * abs(c["degree"] - 3) if c["kernel"] == "poly" else 0.0)
    if c["algo"] == "gbm":
        return (0.10 + 0.8 * square(position(c["lr_gbm"], 1e-3, 1) + 0.6 * position(c["trees"], 10, 1000) - 0.9)
                + 0.3 * square((c["depth"] - 1) / 9 - 4 / 9) + 0.2 * square(c["sub"] - 0.8))
    layers = int(c["layers"])
    widths = sum(0.6 * square(position(c[f"width{i}"], 8, 512) - (0.6 - 0.1 * i)) for i in range(layers)) / layers
    return (0.05 + 2 * square(position(c["lr_mlp"], 1e-5, 1) - 0.62) + {"relu": 0.0, "tanh": 0.02, "logistic": 0.06}[c["act"]]
            + 0.05 * abs(layers - 2) + widths)


def ask_mixed6(trial):
    return {"plain": trial.suggest_float("plain", 0, 1), "log": trial.suggest_float("log", 1e-4, 1, log=True),
            "integer": trial.suggest_int("integer", 0, 20), "quantised": trial.suggest_float("quantised", 0, 1, step=0.05),
            "category": trial.suggest_categorical("category", list("abcde")),
            "ordered": 2 ** trial.suggest_int("ordered", 4, 10)}


def ask_mixcond(trial):
    c = {"algo": trial.suggest_categorical("algo", ["svm", "mlp", "gbm"])}
    if c["algo"] == "svm":
        c["C"] = trial.suggest_float("C", 1e-3, 1e3, log=True)
        c["kernel"] = trial.suggest_categorical("kernel", ["linear", "rbf", "poly"])
        if c["kernel"] != "linear":
            c["gamma"] = trial.suggest_float("gamma", 1e-5, 10, log=True)
        if c["kernel"] == "poly":
            c["degree"] = trial.suggest_int("degree", 2, 5)
    elif c["algo"] == "gbm":
        c.update(trees=trial.suggest_int("trees", 10, 1000, log=True), lr_gbm=trial.suggest_float("lr_gbm", 1e-3, 1, log=True),
                 depth=trial.suggest_int("depth", 1, 10), sub=trial.suggest_float("sub", 0.3, 1))
    else:
        c.update(layers=trial.suggest_int("layers", 1, 4), lr_mlp=trial.suggest_float("lr_mlp", 1e-5, 1, log=True),
                 act=trial.suggest_categorical("act", ["relu", "tanh", "logistic"]))
        for i in range(c["layers"]):
            c[f"width{i}"] = trial.suggest_int(f"width{i}", 8, 512, log=True)
    return c


def box(function, bounds):
    """(value of a configuration, configuration of an Optuna trial)"""
    return (lambda c: function([c[f"x{i}"] for i in range(len(bounds))]),
            lambda trial: {f"x{i}": trial.suggest_float(f"x{i}", *pair) for i, pair in enumerate(bounds)})


# name: value, ask, smallest value
FUNCTIONS = {
    "branin": (*box(branin, [(-5, 10), (0, 15)]), 0.39788735772973816),
    "hartmann6": (*box(hartmann6, [(0, 1)] * 6), -3.322368011415515),
    "ackley5": (*box(ackley, [(-5, 10)] * 5), 0.0),
    "rosenbrock4": (*box(rosenbrock, [(-5, 10)] * 4), 0.0),
    "mixed6": (mixed6, ask_mixed6, -3.291812133187052),
    "mixcond": (mixcond, ask_mixcond, 0.05),
}


def zdt(number, x):
    g = 1 + 9 * sum(x[1:]) / (len(x) - 1)
    ratio = x[0] / g
    last = {1: 1 - math.sqrt(ratio), 2: 1 - ratio * ratio, 3: 1 - math.sqrt(ratio) - ratio * math.sin(10 * math.pi * x[0])}
    return x[0], g * last[number]


REFERENCE = (1.1, 6.0)
VOLUMES = {"zdt1": 6.2666664, "zdt2": 5.9333332, "zdt3": 6.7217625}  # that the whole front covers
FRONTS = {f"zdt{k}": box(lambda x, k=k: zdt(k, x), [(0, 1)] * 6) for k in (1, 2, 3)}
for name, (values, ask) in FRONTS.items():
    FUNCTIONS[name] = (lambda c, values=values: sum(values(c)), ask, -VOLUMES[name])


def covered(points):
    """The area below REFERENCE that the points cover."""
    area, lowest = 0.0, REFERENCE[1]
    for first, second in sorted(points):
        if first < REFERENCE[0] and second < lowest:
            area += (REFERENCE[0] - first) * (lowest - second)
            lowest = second
    return area


# Where each function has its smallest value, to a few digits.
MINIMISERS = {
    "branin": "x0=3.14159265 x1=2.275",
    "hartmann6": "x0=0.20169 x1=0.150011 x2=0.476874 x3=0.275332 x4=0.311652 x5=0.6573",
    "ackley5": "x0=0 x1=0 x2=0 x3=0 x4=0",
    "rosenbrock4": "x0=1 x1=1 x2=1 x3=1",
    "mixed6": f"plain=0.20566257 log={1e-4 ** (1 - 0.14919596)} integer=9 quantised=0.3 category=b ordered=256",
    "mixcond": f"algo=mlp layers=2 lr_mlp={10 ** (-5 + 5 * 0.62)} act=relu width0={round(8 * 64 ** 0.6)} width1=64",
}


def sampler_of(peer, seed):
    from optuna import samplers
    name, *options = peer.removeprefix("optuna-").split("-")
    if name == "tpe":
        settings = {}
        if "mv" in options or "mvg" in options:
            settings["multivariate"] = True
        if "mvg" in options:
            settings["group"] = True
        if "cl" in options:
            settings["constant_liar"] = True
        return samplers.TPESampler(seed=seed, **settings)
    classes = {"random": "RandomSampler", "cmaes": "CmaEsSampler", "gp": "GPSampler", "nsga2": "NSGAIISampler"}
    return getattr(samplers, classes[name])(seed=seed)


def run(peer, function, seed, workers, evaluations):
    """The best value after each evaluation; with several objectives what is covered, negated."""
    import optuna
    value, ask, _ = FUNCTIONS[function]
    points = []
    if function in FRONTS:
        value = FRONTS[function][0]
        study = optuna.create_study(sampler=sampler_of(peer, seed), directions=["minimize", "minimize"])
    else:
        study = optuna.create_study(sampler=sampler_of(peer, seed))
    durations = random.Random(seed)
    under_way, best, number = [], [], 0

    def begin(now):
        nonlocal number
        trial = study.ask()
        configuration = ask(trial)
        duration = 1.0 if workers == 1 else durations.lognormvariate(0, 0.5)
        heapq.heappush(under_way, (now + duration, number, trial, value(configuration)))
        number += 1

    for _ in range(workers):
        begin(0.0)
    while len(best) < evaluations:
        end, _, trial, result = heapq.heappop(under_way)
        study.tell(trial, result)
        if function in FRONTS:
            points.append(result)
            best.append(-covered(points))
        else:
            best.append(min(best[-1], result) if best else result)
        begin(end)
    return best


def value_at(function, line):
    """`line`: name=value name=value ..."""
    def parsed(text):
        try:
            return float(text)
        except ValueError:
            return text

    configuration = dict(pair.split("=", 1) for pair in line.split())
    return FUNCTIONS[function][0]({name: parsed(text) for name, text in configuration.items()})


def main():
    if sys.argv[1] == "--values":
        for line in sys.stdin:
            print(repr(value_at(sys.argv[2], line)))
        return None
    if sys.argv[1] == "--minima":
        for function, place in MINIMISERS.items():
            print(function, repr(value_at(function, place)), FUNCTIONS[function][2])
        return None
    import optuna
    if sys.argv[1] == "--version":
        return print(optuna.__version__)
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    peer, function, seeds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    workers = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    evaluations = int(sys.argv[5]) if len(sys.argv) > 5 else 200
    for seed in range(seeds):
        before = time.process_time()
        best = run(peer, function, seed, workers, evaluations)
        regrets = [f"{best[mark - 1] - FUNCTIONS[function][2]:.9g}" for mark in MARKS if mark <= evaluations]
        print(peer, function, workers, seed, *regrets, f"{time.process_time() - before:.4f}", flush=True)


if __name__ == "__main__":
    main()
