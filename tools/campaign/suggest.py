#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether ranks wait for suggestions: suggest.py PROGRAM [--searchers gp,tpe] [--groups 32] [--trials 10000]

Simulates the study in suggest/ (trials of 0.1 s, 0.02 s for each suggestion that a model prepares) with each searcher, and
prints a table in Markdown: the share of the rank time that trained, and the time of the whole study. Fails if less than
99 % trained.
"""
import argparse
import pathlib
import re
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent / "suggest"
ENOUGH = 99.0  # per cent


def simulated(program, searcher, groups, trials):
    """Per cent of the rank time that trained; the time of the study."""
    with tempfile.TemporaryDirectory() as directory:
        command = [program, "simulate", str(HERE / "study.toml"), f"searcher.type={searcher}", f"study.num_trials={trials}",
                   "--groups", str(groups), "--model", str(HERE / "model.toml"), "--output", f"{directory}/study"]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    training = re.search(r"^workers +([\d.]+) % training", done.stdout, re.MULTILINE)
    time = re.search(r"^time +([^,\n]+)", done.stdout, re.MULTILINE)
    if not training or not time:
        raise SystemExit(f"{' '.join(command)} did not say how long ranks trained:\n{done.stdout}")
    return float(training.group(1)), time.group(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--searchers", default="gp,tpe")
    parser.add_argument("--groups", type=int, default=32)
    parser.add_argument("--trials", type=int, default=10000)
    arguments = parser.parse_args()
    print("| searcher | groups | trials | time | training |\n|---|---|---|---|---|")
    low = []
    for searcher in arguments.searchers.split(","):
        training, time = simulated(arguments.program, searcher, arguments.groups, arguments.trials)
        print(f"| {searcher} | {arguments.groups} | {arguments.trials:,} | {time} | {training} % |", flush=True)
        if training < ENOUGH:
            low.append(searcher)
    if low:
        raise SystemExit(f"less than {ENOUGH:g} % of the rank time trained with {', '.join(low)}")


if __name__ == "__main__":
    main()
