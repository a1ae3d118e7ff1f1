#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How good the searchers are, beside other tools: search.py BENCH_SEARCH [options]

    ninja -C BUILD_DIR tools/bench/bench_search
    tools/bench/search.py BUILD_DIR/tools/bench/bench_search                       TPE beside Optuna's, one trial at a time
    tools/bench/search.py ... --searchers tpe,random --workers 1,16,64 --ahead     as the head of a study does it
    tools/bench/search.py ... --searchers tpe:gamma=0.2,bohb --functions branin    options of a searcher
    tools/bench/search.py ... --peers optuna-tpe@/usr/bin/python3,optuna-tpe@VENV,smac@VENV     of several Pythons
    tools/bench/search.py ... --functions svm_digits,gbr_diabetes      real models, trained by the scikit-learn of --python
    tools/bench/search.py ... --functions ackley60,hartmann6in60,hpobench_car,nasbench_cifar100_time --python VENV     many parameters; tables
    tools/bench/search.py ... --searchers gp --functions branin+5,hartmann6+.3 --peers optuna-gp@VENV     with noise of a standard deviation
    tools/bench/search.py ... --searchers nsga2,random --peers optuna-nsga2 --functions zdt1,zdt2,zdt3     several objectives
    tools/bench/search.py ... --searchers auto,tpe,gp,cmaes --raw search.json     all of them beside the peers; values per seed

Both run on the same functions (search_functions.hpp, search_peers.py), which are compared first. Prints tables in Markdown: median and quartiles, over the seeds, of the simple regret (the best value so far minus the smallest value of the
function; with several objectives the area that the results do not cover yet; with noise the regret, without it, of what the tool names as best) after 25, 50, 100 and 200 evaluations; for every
searcher the ratio of its median to that of each peer, with a 95 % interval from 2,000 bootstrap samples of the seeds, and the
median of these ratios over the functions. "worse" and "better" mean that the interval excludes 1; P is the probability that a run is better
than one of the peer, * if it differs from 1/2 (p < .05). With `auto` and some of tpe,
gp and cmaes also whether `auto` is within 1.1 times the best of these. A searcher that refuses a space (cmaes: lists) is left out
there. A peer is NAME or NAME@PYTHON, PYTHON an interpreter or a virtual environment. tools/docs/plot_search.py draws the file of --raw.

--quick is a test of a few seconds: the functions agree, and TPE finds better values than random search.
"""
import argparse
import json
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MARKS = (25, 50, 100, 200)
FUNCTIONS = ("branin", "hartmann6", "ackley5", "rosenbrock4", "mixed6", "mixcond")
MODELS = ("svm_digits", "gbr_diabetes")  # whose values scikit-learn trains for
SMALLEST = 1e-12  # of a regret, for ratios
RIVALS = ("tpe", "gp", "cmaes")  # of auto
ENOUGH = 1.1  # times the best of them
REFUSAL = re.compile(r"\"\w+\" needs a number for '.*")  # what bench_search says of a space


def is_asked_for(function):
    """Its values are known to search_peers.py alone: models and tables."""
    function = function.split("+")[0]
    return function in MODELS or function.startswith(("hpobench_", "nasbench_"))


class Refused(Exception):
    """The searcher does not take the space."""


def look_for_refusal(errors):
    if found := REFUSAL.search(errors):
        raise Refused(found.group())


def output(command, text=None):
    done = subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        look_for_refusal(done.stderr)
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
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with tempfile.TemporaryFile("w+") as errors, subprocess.Popen([str(word) for word in evaluator], **pipes) as model, \
            subprocess.Popen([str(word) for word in command], stderr=errors, **pipes) as asking:
        for line in asking.stdout:
            if line.startswith("? "):
                model.stdin.write(line[2:])
                asking.stdin.write(model.stdout.readline())
            else:
                lines.append(line)
        model.stdin.close()
        codes = asking.wait(), model.wait()
        errors.seek(0)
        said = errors.read()
    if codes[0]:
        look_for_refusal(said)
    if any(codes):
        raise SystemExit(f"{' '.join(map(str, command))}: exit {codes[0]}; the model: exit {codes[1]}\n{said}")
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


def superiority(ours, theirs):
    """The probability that a run of ours is better than one of theirs (ties count half), and p by Mann and Whitney's test."""
    n, m = len(ours), len(theirs)
    wins = sum((a < b) + 0.5 * (a == b) for a in ours for b in theirs)
    both = [*ours, *theirs]
    ties = sum(both.count(value) ** 3 - both.count(value) for value in set(both)) / ((n + m) * (n + m - 1))
    deviation = math.sqrt(n * m / 12 * max(n + m + 1 - ties, 1e-9))
    return wins / (n * m), math.erfc(abs(wins - n * m / 2) / deviation / math.sqrt(2))


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


def peers_of(text, python):
    """[(name in the tables, peer, interpreter)] of `NAME@PYTHON,...`; without PYTHON that of --python."""
    peers = []
    for entry in filter(None, text.split(",")):
        peer, _, place = entry.partition("@")
        path = pathlib.Path(place or python).expanduser()
        peers.append((entry, peer, path / "bin/python" if path.is_dir() else path))
    return peers


def versions(peers, models):
    """A line for each Python: what it has of the packages that are used."""
    needed = {}
    for _, peer, python in peers:
        needed.setdefault(python, {"scikit-learn"} if models else set()).add("smac" if peer == "smac" else "optuna")
    return [f"{python}: {output([python, HERE / 'search_peers.py', '--version', *sorted(packages)])[0]}"
            for python, packages in needed.items()]


def table(titles, rows):
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [titles, ["---"] * len(titles), *rows])


def cell(ours, theirs):
    interval, (wins, p) = ratio(ours, theirs), superiority(ours, theirs)
    return f"{interval[0]:.2g} [{interval[1]:.2g}, {interval[2]:.2g}] {verdict(interval)}; P {wins:.2f}{'*' if p < 0.05 else ''}"


def comparisons(found, searcher, peers, marks):
    """The rows of one searcher beside the peers, and under each peer the median of the ratios over the functions."""
    rows = []
    for workers in dict.fromkeys(key[1] for key in found):
        for peer in peers:
            pairs = {function: [(by[searcher][mark], by[peer][mark]) for mark in marks]
                     for (function, count), by in found.items() if count == workers and searcher in by and peer in by}
            rows += [[function, workers, peer, *(cell(*pair) for pair in each)] for function, each in pairs.items()]
            if pairs:
                medians = [statistics.median(ratio(*each[i])[0] for each in pairs.values()) for i in range(len(marks))]
                rows.append([f"median of {len(pairs)}", workers, peer, *(f"{median:.2g}" for median in medians)])
    return rows


def auto_rows(found, marks):
    """`auto` divided by the best of its rivals, medians; and whether that is at most ENOUGH everywhere."""
    rows, fine = [], True
    for (function, workers), by in found.items():
        rivals = [name for name in by if name.split(":")[0] in RIVALS]
        if "auto" not in by or not rivals:
            continue
        cells = []
        for mark in marks:
            medians = {name: max(SMALLEST, statistics.median(by[name][mark])) for name in rivals}
            best = min(medians, key=medians.get)
            times = max(SMALLEST, statistics.median(by["auto"][mark])) / medians[best]
            fine = fine and times <= ENOUGH
            cells.append(f"{times:.3g} ({best})" + ("" if times <= ENOUGH else " worse"))
        rows.append([function, workers, *cells])
    return rows, fine


def measure(arguments, searchers, peers):
    """(function, workers) -> searcher -> mark -> regrets of the seeds; prints a line for each."""
    found = {}
    marks = [mark for mark in MARKS if mark <= arguments.evaluations]
    print(table(["function", "workers", "searcher", *marks, "CPU, s"], []))
    for function in arguments.functions.split(","):
        evaluator = [arguments.python, HERE / "search_peers.py", "--values", function] if is_asked_for(function) else None
        for workers in arguments.workers.split(","):
            by = found[function, workers] = {}
            last = [function, arguments.seeds, workers, arguments.evaluations]
            ahead = ["ahead"] if arguments.ahead else []
            commands = [(name, [arguments.bench, name, *last, *ahead]) for name in searchers]
            commands += [(name, [python, HERE / "search_peers.py", peer, *last]) for name, peer, python in peers]
            for name, command in commands:
                try:
                    by[name], cpu = run(command, arguments.evaluations, evaluator)
                except Refused as why:
                    print(f"{name} is left out with {function}: {why}", file=sys.stderr)
                    print(f"| {function} | {workers} | {name} |" + " refused |" * len(marks) + " |", flush=True)
                    continue
                cells = [quartiles(by[name][mark]) for mark in marks]
                print(f"| {function} | {workers} | {name} |", " | ".join(cells), f"| {cpu:.3g} |", flush=True)
    return found


def report(found, searchers, peers, marks):
    """Whether `auto` is good enough."""
    for searcher in searchers:
        if rows := comparisons(found, searcher, [name for name, _, _ in peers], marks):
            print(f"\nRegret of {searcher} divided by that of the other:\n")
            print(table(["function", "workers", "beside", *marks], rows))
    rows, fine = auto_rows(found, marks)
    if rows:
        print(f"\nRegret of auto divided by that of the best of {', '.join(RIVALS)}; at most {ENOUGH} is asked for:\n")
        print(table(["function", "workers", *marks], rows))
    return fine


def raw(found, pythons, arguments):
    """What --raw writes: regrets of each seed."""
    results = [{"function": function, "workers": int(workers), "searcher": name,
                "regrets": {str(mark): values for mark, values in marks.items()}}
               for (function, workers), by in found.items() for name, marks in by.items()]
    return {"seeds": arguments.seeds, "evaluations": arguments.evaluations, "ahead": arguments.ahead, "versions": pythons,
            "results": results}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", help="the program bench_search")
    parser.add_argument("--searchers", default="tpe", help="each is compared with the peers")
    parser.add_argument("--peers", default="optuna-tpe,optuna-tpe-mv", help="NAME[@PYTHON],...; see search_peers.py; empty: none")
    parser.add_argument("--functions", default=",".join(FUNCTIONS))
    parser.add_argument("--workers", default="1")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--ahead", action="store_true", help="suggestions are prepared ahead")
    parser.add_argument("--python", default="/usr/bin/python3", help="the Python of peers without one, and of scikit-learn for models")
    parser.add_argument("--raw", type=pathlib.Path, help="JSON file for the values of each seed")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if arguments.quick:
        return quick(arguments.bench)
    searchers = arguments.searchers.split(",")
    peers = peers_of(arguments.peers, arguments.python)
    functions = arguments.functions.split(",")
    compare_functions(arguments.bench, [function for function in functions if not is_asked_for(function)])
    pythons = versions(peers, bool(set(functions) & set(MODELS)))
    print(*pythons, sep="\n", end="\n\n" if pythons else "")
    found = measure(arguments, searchers, peers)
    fine = report(found, searchers, peers, [mark for mark in MARKS if mark <= arguments.evaluations])
    if arguments.raw:
        arguments.raw.write_text(json.dumps(raw(found, pythons, arguments), indent=1) + "\n")
    if not fine:
        raise SystemExit(f"auto is worse than {ENOUGH} times the best of {', '.join(RIVALS)}; see the last table")


if __name__ == "__main__":
    main()
