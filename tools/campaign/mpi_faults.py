#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random synthetic studies under mpirun whose messages are delayed, with trials that throw and workers whose links die: every
study has to end, every trial in a final state, and the journal has to verify. A study that lost all its workers goes on in a
second run, without faults.

    mpi_faults.py RANKTUNE CAMPAIGN_MPI_FAULTS [STUDIES] [SEED]

STUDIES: on each of 1, 2 and 4 workers (default 50). Ends with a line of figures; the exit code is 0 when nothing went wrong.
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

from kill_runs import SCHEDULERS, mpirun_environment

STUDY = """[study]
name = "faults"
metric = "score"
mode = "max"
num_trials = {trials}
max_iterations = 9
seed = {seed}
[trainable]
builtin = "curve"
seconds = {seconds}
fail_rate = 0.1
[resources]
ranks = {ranks}
[searcher]
type = "random"
[space]
lr = "loguniform(1e-4, 1.0)"
[scheduler]
{scheduler}
[failure]
tolerate = 1.0
[run]
heartbeat_timeout = "6s"
abort_grace = "2s"
"""
SCHEDULERS = {**SCHEDULERS, "median": 'type = "median"'}
PATIENCE = 200  # seconds for one run to end
RESUMABLE = 75


def run(program, folder, workers, seed):
    """(exit code, output); None: it did not end."""
    command = ["mpirun", "-n", str(workers + 1), "--oversubscribe", "--bind-to", "none", "--quiet", program, "study.toml",
               os.path.join(folder, "study"), str(seed)]
    process = subprocess.Popen(command, cwd=folder, env=mpirun_environment(), stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        return process.wait(PATIENCE), process.stderr.read()
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        return None, process.stderr.read()


def problems_of(ranktune, program, folder, workers, seed, tally):
    code, said = run(program, folder, workers, seed)
    tally["sent"] += sum(map(int, re.findall(r"sent (\d+)", said)))
    ended = re.search(r"the study ended with (\d+)", said)
    if code is None:
        return [f"it hung for {PATIENCE} s\n{said}"]
    outcome = int(ended.group(1)) if ended else code
    if not ended and code == 0:
        return [f"exit code 0, and the study did not say how it ended\n{said}"]
    # No worker was left; or one had lost the head and ended, and mpirun then ended the others.
    if outcome == RESUMABLE or not ended:
        tally["resumed"] += 1
        code, said = run(program, folder, workers, 0)
        if code != 0:
            return [f"the second run ended with {code}\n{said}"]
    elif outcome != 0:
        return [f"the study ended with {outcome}\n{said}"]
    shown = subprocess.run([ranktune, "export", "study", "--format", "json"], cwd=folder, capture_output=True, text=True)
    if shown.returncode != 0:
        return [f"export: {shown.stderr}"]
    trials = json.loads(shown.stdout)["trials"]
    tally["trials"] += len(trials)
    found = [f"trial {trial['id']} is {trial['state']}" for trial in trials
             if trial["state"] not in ("finished", "stopped", "failed")]
    verified = subprocess.run([ranktune, "replay", "study", "--verify"], cwd=folder, capture_output=True, text=True)
    if verified.returncode != 0:
        found.append(f"replay --verify: {verified.stdout}{verified.stderr}")
    return found


def main():
    ranktune, program = map(os.path.abspath, sys.argv[1:3])
    studies = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    first = int(sys.argv[4]) if len(sys.argv) > 4 else random.SystemRandom().randrange(1, 10**6)
    tally = dict.fromkeys(("sent", "resumed", "trials"), 0)
    wrong, began = 0, time.monotonic()
    for workers in (1, 2, 4):
        for number in range(studies):
            seed = first + 1000 * workers + number
            rng = random.Random(seed)
            kind = rng.choice(sorted(SCHEDULERS))
            with tempfile.TemporaryDirectory(prefix="ranktune-faults-") as folder:
                with open(os.path.join(folder, "study.toml"), "w") as file:
                    file.write(STUDY.format(trials=rng.randrange(12, 40), seed=seed, seconds=rng.choice((0, 0.01, 0.03)),
                                            ranks=rng.choice((1, 1, 2)) if workers > 1 else 1, scheduler=SCHEDULERS[kind]))
                problems = problems_of(ranktune, program, folder, workers, seed, tally)
            wrong += bool(problems)
            for problem in problems:
                print(f"study {seed} ({kind}, {workers} workers): {problem}", flush=True)
    print(f"{3 * studies} studies under mpirun on 1, 2 and 4 workers, {wrong} wrong; {tally['trials']} trials, {tally['sent']} messages, "
          f"{tally['resumed']} lost workers and went on in a second run; seed {first}; {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
