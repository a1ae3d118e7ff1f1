#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What deaths of workers cost: survival.py PROGRAM [--kills 20] [--minutes 5] [--ranks 1]

First kills workers of a running study under mpirun, one after another, and prints how long after each the head knew of it, and
how long after it the trial of the dead worker had done its next iteration. Then prints how much of the rank time trained in a
study that nothing happens to, in one that loses a worker each minute and goes on, and in one that `supervise` starts again each
time (iterations of 0.1 s, a checkpoint each second, 8 workers). A worker that is dead has no rank time, and what is
computed twice does not count.
"""
import argparse
import datetime
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from kill_runs import SCHEDULERS, STUDY, mpirun_environment, processes_in

class Running:
    def __init__(self, program, folder, seconds, interval, ranks, workers, outlives=True):
        self.program, self.folder = program, pathlib.Path(folder)
        (self.folder / "study.toml").write_text(STUDY.format(trials=100000, iterations=60, slots=0, seed=1, seconds=seconds, ranks=ranks,
                                                             scheduler=SCHEDULERS["fifo"], interval=interval))
        environment = mpirun_environment()
        environment["OMPI_MCA_orte_enable_recovery"] = str(int(outlives))
        environment["RANKTUNE_LAST_END"] = "outside"
        self.begin = time.time()
        with open(self.folder / "said", "w") as said:
            self.process = subprocess.Popen([program, "supervise", "--", program, "run", "study.toml", "--local", str(workers), "-o", "study"],
                                            cwd=folder, env=environment, stdout=said, stderr=said)
        self.until(lambda: self.status().get("reports", 0) > 0)

    def until(self, true):
        while not true():
            if self.process.poll() is not None:
                sys.exit(f"the study ended by itself with {self.process.returncode}: {(self.folder / 'said').read_text()}")
            time.sleep(0.02)

    def verb(self, *arguments):
        return subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True).stdout

    def status(self):
        try:
            return json.loads(self.verb("status", "study", "-f", "json"))
        except ValueError:
            return {}

    def log(self):
        return "".join(path.read_text() for path in sorted((self.folder / "study" / "logs").glob("start-*.log")))

    def kill_one(self):
        """Returns (rank, when)."""
        pid, rank = random.choice([(pid, rank) for pid, rank in processes_in(str(self.folder)).items() if rank])
        when = time.time()
        os.kill(pid, signal.SIGKILL)
        return rank, when

    def end(self):
        """The whole study, after a clean stop. Returns it and when it was told to stop."""
        when = time.time()
        self.verb("stop", "study")
        self.process.wait()
        return json.loads(self.verb("export", "study", "--format", "json")), when


def seconds_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def latencies(program, kills, ranks):
    """(until the head knew, until the trial had done its next iteration) of each kill, in seconds."""
    found = []
    while len(found) < kills:
        with tempfile.TemporaryDirectory(prefix="ranktune-survival-") as folder:
            running = Running(program, os.path.realpath(folder), 0.02, 5, ranks, 8 + 2 * ranks)
            struck = []
            for _ in range(8):
                time.sleep(random.uniform(0.5, 1.0))
                struck.append(running.kill_one())
                running.until(lambda: len(re.findall(" E lost ", running.log())) == len(struck))
            time.sleep(3)
            whole, _ = running.end()
            begin = seconds_of(whole["study"]["starts"][0])
            for rank, when in struck:
                noticed = seconds_of(re.search(rf"^(\S+) E lost rank={rank} ", running.log(), re.MULTILINE)[1])
                done = next_iteration(whole, rank, when - begin)
                if done is not None:
                    found.append((noticed - when, done + begin - when))
    return found


def next_iteration(whole, rank, when):
    """When the trial that the death of this rank at this time interrupted had done its next iteration. None: the rank was idle."""
    for trial in whole["trials"]:
        for this, following in zip(trial["attempts"], trial["attempts"][1:]):
            if rank in this["ranks"] and this["start"] <= when < following["start"]:
                return min(report["time"] for report in whole["reports"]
                           if (report["trial"], report["attempt"]) == (trial["id"], following["attempt"]))
    return None


def share(program, minutes, ranks, deaths, outlives=True):
    """The share of the rank time that trained, and the number of starts."""
    workers = 8
    with tempfile.TemporaryDirectory(prefix="ranktune-survival-") as folder:
        running = Running(program, os.path.realpath(folder), 0.1, 10, ranks, workers, outlives)
        died = []
        for minute in range(minutes):
            time.sleep(max(0.0, running.begin + 60 * minute + 30 - time.time()))
            if deaths:
                died.append(running.kill_one()[1])
        time.sleep(max(0.0, running.begin + 60 * minutes - time.time()))
        whole, end = running.end()
        useful = sum(trial["seconds"] for trial in whole["trials"])  # of the iterations that count
        dead = sum(end - when for when in died) if outlives else 0.0
        return useful * ranks / ((end - running.begin) * workers - dead), len(whole["study"]["starts"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--minutes", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=1, help="ranks of a trial")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.program)
    if arguments.kills:
        found = latencies(program, arguments.kills, arguments.ranks)
        for name, times in zip(("the head knew", "next iteration done"), zip(*found)):
            print(f"{name:20} {statistics.median(times) * 1e3:6.0f} ms median, {max(times) * 1e3:6.0f} ms most, of {len(times)} kills", flush=True)
    if arguments.minutes:
        whole = None
        for name, deaths, outlives in (("undisturbed", False, True), ("goes on", True, True), ("started again", True, False)):
            part, starts = share(program, arguments.minutes, arguments.ranks, deaths, outlives)
            whole = whole or part
            print(f"{name:20} {part:6.3f} of the rank time trained, {part / whole:.3f} of undisturbed, {starts} starts", flush=True)


if __name__ == "__main__":
    main()
