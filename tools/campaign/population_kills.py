#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Populations (pbt) of real processes under mpirun or srun, killed with -9 at random moments (the head, a rank of a donor, a
rank of a trial that took over another one's state, or everything), and resumed by the same command until they end.

Each trial's state holds a digest of all values of its hyper-parameter that led to it, iteration by iteration. At the end it
must be that of the schedule which the journal tells: so no trial ever trained on with the weights of one and the configuration of
another. Every second study is deterministic, on another number of ranks in each start: its takeovers must be those of a run
without a kill. Half of the members exploit in the same process, and half of them are started again.

    population_kills.py PROGRAM KILLS [SEED] [--survive] [--deterministic] [--srun TESTBED | --mpirun WORDS] [--sweep]

Options and output as of kill_runs.py, which does the rest.
"""
import os
import pathlib
import subprocess
import sys
import zlib

from kill_runs import Study, Wrong, main, rank_of

MEMBER = pathlib.Path(__file__).resolve().parent / "population_member.py"
STUDY = """[study]
name = "population"
metric = "score"
mode = "max"
num_trials = {trials}
max_iterations = 12
max_concurrent = {slots}
seed = {seed}
[trainable]
command = "/usr/bin/python3 {member} {exploits}"
[resources]
ranks = {ranks}
[searcher]
type = "random"
[space]
lr = "loguniform(1e-4, 1.0)"
[scheduler]
type = "pbt"
interval = {interval}
[scheduler.explore]
lr = "perturb"
[checkpoint]
interval = {checkpoints}
[failure]
max_losses = 20
[run]
heartbeat_timeout = "6s"
abort_grace = "2s"
"""


class Population(Study):
    VICTIMS = ["head", "donor", "loser", "all"]

    def draw(self, number):
        rng = self.rng
        self.deterministic = self.launch.deterministic or rng.random() < 0.5
        self.kind = "pbt"
        self.ranks = rng.choice([1, 1, 2])
        self.chains = 0
        return STUDY.format(trials=rng.choice([4, 6]), seed=number, slots=rng.choice([2, 3, 6]), member=MEMBER, ranks=self.ranks,
                            exploits=rng.choice(["stay", "start"]), interval=rng.choice([2, 3]),
                            checkpoints=rng.choice(['"none"', "1"]))

    def targets(self, whom):
        """Of a donor or loser that trains: one of its ranks. None trains: any worker."""
        if whom not in ("donor", "loser"):
            return super().targets(whom)
        try:
            trials = self.export()["trials"]
        except (Wrong, subprocess.TimeoutExpired):  # the study has not begun
            trials = []
        losers = {trial["id"] for trial in trials if trial.get("takeovers")}
        donors = {each["donor"] for trial in trials for each in trial.get("takeovers", [])}
        wanted = donors if whom == "donor" else losers
        ranks = [rank for trial in trials if trial["id"] in wanted and trial["state"] == "running"
                 for rank in trial["attempts"][-1]["ranks"]]
        if ranks:
            rank = self.rng.choice(ranks)
            found = [pid for pid in self.processes()["worker"] if rank_of(pid) == rank]
            if found:
                return found
        return super().targets("worker")

    def check(self):
        super().check()
        whole = self.export()
        last = {report["trial"]: report for report in whole["reports"]}
        for trial in whole["trials"]:
            chain, length = 0, 0
            parts = trial.get("schedule") or [{"from": 0, "to": trial["iterations"], "configuration": trial["configuration"]}]
            for part in parts:
                for _ in range(part["from"], part["to"]):
                    chain = zlib.crc32(repr((chain, part["configuration"]["lr"])).encode())
                    length += 1
            report = last.get(trial["id"])
            if report is None:
                raise Wrong(f"trial {trial['id']} never reported")
            if report["metrics"]["chain"] != chain:
                raise Wrong(f"trial {trial['id']}: its state was not made by the {length} iterations of its schedule: {parts}")
            self.chains += 1


if __name__ == "__main__":
    sys.exit(main(__doc__, Population))
