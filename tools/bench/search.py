#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How good the searchers are, beside other tools: search.py BENCH_SEARCH [options]

    ninja -C BUILD_DIR tools/bench/bench_search
    tools/bench/search.py BUILD_DIR/tools/bench/bench_search                       TPE beside Optuna's, one trial at a time
    tools/bench/search.py ... --searchers tpe,random --workers 1,16,64 --ahead     as the head of a study does it
    tools/bench/search.py ... --searchers tpe:gamma=0.2,bohb --functions branin    options of a searcher
    tools/bench/search.py ... --python VENV/bin/python --peers optuna-tpe,optuna-gp,smac     those of a virtual environment
    tools/bench/search.py ... --functions svm_digits,gbr_diabetes      real models, trained by the scikit-learn of --python
    tools/bench/search.py ... --searchers nsga2,random --peers optuna-nsga2 --functions zdt1,zdt2,zdt3     several objectives

Both run on the same functions (search_functions.hpp, search_peers.py), which are compared first. Prints two tables in
Markdown: median and quartiles, over the seeds, of the simple regret (the best value so far minus the smallest value of the
function; with several objectives the area that the results do not cover yet) after 25, 50, 100 and 200 evaluations; and for
the first searcher the ratio of its median to that of each peer, with a 95 % interval from 2,000 bootstrap samples of the seeds. "worse" and "better" mean that the interval excludes 1.

--quick is a test of a few seconds: the functions agree, and TPE finds better values than random search.
"""
import argparse
import pathlib
import random
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
MARKS = (25, 50, 100, 200)
FUNCTIONS = ("branin", "hartmann6", "ackley5", "rosenbrock4", "mixed6", "mixcond")
MODELS = ("svm_digits", "gbr_diabetes")  # whose values scikit-learn trains for
SMALLEST = 1e-12  # of a regret, for ratios


def output(command, text=None):
    done = subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout.splitlines()


def compare_functions(bench, functions):
    """The functions in C++ and in Python have the same values at random configurations."""
    for function in functions:
        lines = [line.split(" ", 1) for line in output([bench, "--values", function, 200])]
        ours = [float(value) for value, _ in lines]
        theirs = map(float, output([sys.executable, HERE / "search_peers.py", "--values", function],
                                   "\n".join(configuration for _, configuration in lines)))
        for value, other, (_, configuration) in zip(ours, theirs, lines):
            if abs(value - other) > 1e-9 * max(1.0, abs(value)):
                raise SystemExit(f"{function} differs at {configuration}: {value} in C++, {other} in Python")


def check_minima():
    for line in output([sys.executable, HERE / "search_peers.py", "--minima"]):
        function, value, smallest = line.split()
        if not -1e-9 <= float(value) - float(smallest) <= 2e-4:
            raise SystemExit(f"the smallest value of {function} is said to be {smallest}, but {value} is at its minimum")


def asked_of(evaluator, command):
    """The output of a command that asks for values: a line `? name=value ...`, and the value in return."""
    lines = []
    with subprocess.Popen([str(word) for word in evaluator], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as model, \
            subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as asking:
        for line in asking.stdout:
            if line.startswith("? "):
                model.stdin.write(line[2:])
                asking.stdin.write(model.stdout.readline())
            else:
                lines.append(line)
    if asking.returncode or model.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit {asking.returncode}; the model: exit {model.returncode}")
    return lines


def run(command, evaluations, evaluator=None):
    """Regrets of each seed at the marks; median CPU time."""
    lines = asked_of(evaluator, command) if evaluator else output(command)
    rows = [[float(cell) for cell in line.split()[4:]] for line in lines]
    marks = [mark for mark in MARKS if mark <= evaluations]
    return {mark: [row[i] for row in rows] for i, mark in enumerate(marks)}, statistics.median(row[-1] for row in rows)


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.3g} [{low:.3g}, {high:.3g}]"


def ratio(ours, theirs, seed=0):
    """Of the medians, with its interval; the seeds are drawn in pairs."""
    def median_ratio(pairs):
        a, b = (max(SMALLEST, statistics.median(side)) for side in zip(*pairs))
        return a / b

    pairs = list(zip(ours, theirs))
    draw = random.Random(seed)
    samples = sorted(median_ratio(draw.choices(pairs, k=len(pairs))) for _ in range(2000))
    return median_ratio(pairs), samples[49], samples[1949]


def verdict(interval):
    return "worse" if interval[1] > 1 else "better" if interval[2] < 1 else "-"


def quick(bench):
    check_minima()
    compare_functions(bench, FUNCTIONS)
    for function in ("branin", "mixed6", "mixcond"):
        found = {name: run([bench, name, function, 9, 4, 50, "ahead"], 50)[0][50] for name in ("tpe", "random")}
        tpe, chance = (statistics.median(found[name]) for name in ("tpe", "random"))
        print(f"{function}: after 50 evaluations tpe {tpe:.3g}, random {chance:.3g}")
        if tpe >= chance:
            raise SystemExit(f"tpe is no better than random search on {function}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", help="the program bench_search")
    parser.add_argument("--searchers", default="tpe", help="the first one is compared with the peers")
    parser.add_argument("--peers", default="optuna-tpe,optuna-tpe-mv", help="see search_peers.py; empty: none")
    parser.add_argument("--functions", default=",".join(FUNCTIONS))
    parser.add_argument("--workers", default="1")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--ahead", action="store_true", help="suggestions are prepared ahead")
    parser.add_argument("--python", default="/usr/bin/python3", help="the Python that has the peers and scikit-learn")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if arguments.quick:
        return quick(arguments.bench)
    searchers = arguments.searchers.split(",")
    peers = [peer for peer in arguments.peers.split(",") if peer]
    functions = arguments.functions.split(",")
    compare_functions(arguments.bench, [function for function in functions if function not in MODELS])
    if peers:
        packages = {"smac" if peer == "smac" else "optuna" for peer in peers} | ({"scikit-learn"} if set(functions) & set(MODELS) else set())
        print(output([arguments.python, HERE / "search_peers.py", "--version", *sorted(packages)])[0], "\n")
    marks = [mark for mark in MARKS if mark <= arguments.evaluations]
    print("| function | workers | searcher |", " | ".join(f"{mark}" for mark in marks), "| CPU, s |")
    print("|---|---|---|" + "---|" * (len(marks) + 1))
    comparisons = []
    for function in functions:
        evaluator = [arguments.python, HERE / "search_peers.py", "--values", function] if function in MODELS else None
        for workers in arguments.workers.split(","):
            found = {}
            last = [function, arguments.seeds, workers, arguments.evaluations]
            for name in searchers + peers:
                if name in peers:
                    command = [arguments.python, HERE / "search_peers.py", name, *last]
                else:
                    command = [arguments.bench, name, *last, *(["ahead"] if arguments.ahead else [])]
                found[name], cpu = run(command, arguments.evaluations, evaluator)
                cells = [quartiles(found[name][mark]) for mark in marks]
                print(f"| {function} | {workers} | {name} |", " | ".join(cells), f"| {cpu:.3g} |", flush=True)
            for peer in peers:
                intervals = [ratio(found[searchers[0]][mark], found[peer][mark]) for mark in marks]
                comparisons.append((function, workers, peer, intervals))
    if comparisons:
        print(f"\nRegret of {searchers[0]} divided by that of the other:\n")
        print("| function | workers | beside |", " | ".join(f"{mark}" for mark in marks), "|")
        print("|---|---|---|" + "---|" * len(marks))
    for function, workers, peer, intervals in comparisons:
        cells = [f"{each[0]:.2g} [{each[1]:.2g}, {each[2]:.2g}] {verdict(each)}" for each in intervals]
        print(f"| {function} | {workers} | {peer} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
