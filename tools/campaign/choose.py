#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which scheduler finds a good configuration first: choose.py PROGRAM [--seeds N] [--groups 4,32,256] [--only METHOD,...]

Simulates the studies in choose/ (curves that cross, stragglers) with each scheduler and number of groups, and prints one
table in Markdown: time until the best trial is within 1 % of the best reachable (median and quartiles over the seeds, which
change the curves, the stragglers and the configurations), how many seeds got there, the best value, and the utilisation.
Deterministic: the same program prints the same table.
"""
import argparse
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent / "choose"
EXPLORE = ",".join(f'{name}="perturb"' for name in ("lr", "momentum", "dropout", "decay", "width", "warmup"))
# name: study, overrides. All have 729 configurations, only a population has 64: its members train to the end.
METHODS = {
    "grid, all to the end": ("grid", ['scheduler={type="fifo"}']),
    "random, all to the end": ("study", ['scheduler={type="fifo"}']),
    "top-k (k = 10)": ("study", ['scheduler={type="topk",first=3,k=10}']),
    "median": ("study", ['scheduler={type="median",grace=3}']),
    "hyperband": ("study", ['scheduler={type="hyperband"}']),
    "asha, stop": ("study", ['scheduler={type="asha",variant="stop"}']),
    "asha, promote": ("study", ['scheduler={type="asha"}']),
    "asha, promote, delayed": ("study", ['scheduler={type="asha",delayed=true}']),
    "pbt": ("study", [f'scheduler={{type="pbt",interval=3,explore={{{EXPLORE}}}}}', "study.num_trials=64"]),
    "bohb": ("study", ['scheduler={type="hyperband"}', 'searcher={type="bohb"}']),
    "asha, bohb": ("study", ['scheduler={type="asha"}', 'searcher={type="bohb"}']),
    "tpe, all to the end": ("study", ['scheduler={type="fifo"}', 'searcher={type="tpe"}']),
    "asha, tpe": ("study", ['scheduler={type="asha"}', 'searcher={type="tpe"}']),
}


def available(program):
    """Names of the algorithms that the program has."""
    return subprocess.run([program, "algorithms"], capture_output=True, text=True, check=True).stdout


def simulate(program, method, groups, seeds):
    """The cells of the one line of the table: name to text."""
    study, overrides = METHODS[method]
    command = [program, "simulate", str(HERE / f"{study}.toml"), *overrides, "--groups", str(groups), "--model",
               str(HERE / "model.toml"), "--seeds", str(seeds)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    head, line = (re.split(r"  +", text) for text in done.stdout.splitlines()[:2])
    return dict(zip(head, line))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--groups", default="4,32,256")
    parser.add_argument("--only", help="names of methods, separated by semicolons")
    arguments = parser.parse_args()
    words = available(arguments.program)
    methods = arguments.only.split(";") if arguments.only else [m for m in METHODS if "bohb" not in m or "bohb" in words]
    print("| groups | method | time to within 1 % | seeds | best accuracy | core-hours | utilisation |")
    print("|---|---|---|---|---|---|---|")
    for groups in (int(text) for text in arguments.groups.split(",")):
        for method in methods:
            cells = simulate(arguments.program, method, groups, arguments.seeds)
            print("|", " | ".join([str(groups), method, cells["to 1 %"], cells["reached"], cells["best accuracy"],
                                   cells["core-hours"], cells["utilisation"]]), "|", flush=True)


if __name__ == "__main__":
    main()
