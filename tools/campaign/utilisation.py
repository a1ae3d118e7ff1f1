#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of the ranks' time trains: utilisation.py PROGRAM [--only CASE,...]

Simulates the studies in utilisation/ and prints a table in Markdown: the share of the rank time that trained, and the time of
the study. Fails if less than the last column trained.

  gp, tpe           10,000 trials of 0.1 s on 32 groups, with models that take 0.02 s for a suggestion
  10000, 100000     so many groups, iterations of 120 s, and a head that takes 20 us for each event; the job ends while there
                    are trials left (the last case: two minutes of CPU, 6 GB)
"""
import argparse
import pathlib
import re
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent / "utilisation"
# name: study, groups, trials, hours (0: to the end), least per cent
CASES = {
    "gp": ("suggestions", 32, 10_000, 0, 99),
    "tpe": ("suggestions", 32, 10_000, 0, 99),
    "10000": ("head", 10_000, 1_200_000, 12, 99),
    "100000": ("head", 100_000, 3_000_000, 3, 95),
}


def simulated(program, name):
    """Per cent of the rank time that trained; the time of the whole study."""
    study, groups, trials, hours, _ = CASES[name]
    with tempfile.TemporaryDirectory() as directory:
        command = [program, "simulate", str(HERE / f"{study}.toml"), f"study.num_trials={trials}", "--groups", str(groups),
                   "--model", str(HERE / f"{study}-model.toml"), "--output", f"{directory}/study"]
        command += [f"searcher.type={name}"] if study == "suggestions" else ["--hours", str(hours)]
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
    parser.add_argument("--only", default=",".join(CASES))
    arguments = parser.parse_args()
    print("| case | groups | trials | time | training | least |\n|---|---|---|---|---|---|")
    low = []
    for name in arguments.only.split(","):
        _, groups, trials, _, least = CASES[name]
        training, time = simulated(arguments.program, name)
        print(f"| {name} | {groups:,} | {trials:,} | {time} | {training} % | {least} % |", flush=True)
        if training < least:
            low.append(name)
    if low:
        raise SystemExit(f"too little of the rank time trained: {', '.join(low)}")


if __name__ == "__main__":
    main()
