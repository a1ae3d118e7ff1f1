#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many small studies of `mlp` on the stand-in, each with delays or a fault of its own; all must end with the same bits.

usage: campaign.py PROGRAM SOURCE_ROOT MODULE_FOLDER STAND_IN_FOLDER DELAYS FAULTS [FIRST_FAULT]

DELAYS runs: the streams are late by other times in every run. FAULTS runs: a rank is killed, a device breaks, a sum fails, hangs or
reports an error of another rank, at random places; the study is started again until it is complete. Depends on the number
of the run alone (and on the machine's timing). Every second run replays CUDA graphs. The last lines have the figures; the exit code is 0 when nothing went wrong.
"""
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import pathlib
import time

import study_test

DELAYS, FAULTS, FIRST_FAULT = (int(argument) for argument in (*sys.argv[5:], "0")[:3])
RANKS = 2
STUDY = study_test.STUDY + """
[checkpoint]
interval = "1ms"
[failure]
report_timeout = "{timeout}"
max_losses = 20
max_failures = 5
"""
OPTIONS = 'accumulate = 2\nclip_norm = 0.5\ndevice = "{device}"'


def commands_of(pid):
    """The process and all that it has started."""
    text = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    table = [line.split(None, 2) for line in text.splitlines()]
    found = {str(pid)}
    for _ in table:
        found |= {row[0] for row in table if row[1] in found}
    return {int(row[0]): row[2] for row in table if row[0] in found}


class Campaign:
    def __init__(self, folder):
        self.cwd = pathlib.Path(folder)

    def start(self, name, timeout="1m", graphs=False, **variables):
        text = STUDY.replace('device = "{device}"', OPTIONS + ("\ncuda_graphs = true" if graphs else ""))
        (self.cwd / f"{name}.toml").write_text(
            text.format(root=study_test.ROOT, device="gpu", resources=f"gpus = {RANKS}", compression="none", timeout=timeout))
        environment = {key: value for key, value in os.environ.items() if key not in ("CUDA_VISIBLE_DEVICES", "NCCL_HOSTID")}
        environment.update({"LD_LIBRARY_PATH": f"{study_test.STAND_IN}:{study_test.MODULE}", "CUDA_VISIBLE_DEVICES": "0,1",
                            "OMPI_MCA_btl_vader_single_copy_mechanism": "none", **variables})
        return subprocess.Popen([study_test.PROGRAM, "run", f"{name}.toml", "--local", str(RANKS), "-o", name], cwd=self.cwd,
                                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def reports(self, name):
        rows = study_test.Studies.reports(self, name)
        return {key: (row["train_loss"], row["val_loss"], row["val_accuracy"]) for key, row in rows.items()}

    def delays(self, number):
        run = self.start(f"delays{number}", graphs=number % 2 == 1, RANKTUNE_STAND_IN_SEED=str(number + 1),
                         RANKTUNE_STAND_IN_DELAY=random.Random(number).choice(["0", "100", "400", "2000"]))
        output, _ = run.communicate(timeout=300)
        return "" if run.returncode == 0 else output

    def faults(self, number):
        chance = random.Random(number)
        rank, name = chance.randrange(RANKS), f"faults{number}"
        kind = chance.choice(["sticky", "fail", "async", "hang", "kill"])
        variables = {"RANKTUNE_STAND_IN_SEED": str(number + 1)}
        if kind == "sticky":
            variables["RANKTUNE_STAND_IN_STICKY"] = f"{rank}:{chance.randrange(1, 1500)}"
        elif kind != "kill":
            variables["RANKTUNE_STAND_IN_NCCL"] = f"{rank}:{chance.randrange(1, 90)}:{kind}"
        graphs = number % 2 == 1
        run = self.start(name, timeout="4s" if kind == "hang" else "1m", graphs=graphs, **variables)
        if kind == "kill":
            time.sleep(chance.uniform(0.2, 4.0))
            workers = [pid for pid, command in commands_of(run.pid).items() if "ranktune" in command and pid != run.pid]
            if workers:
                with contextlib.suppress(ProcessLookupError):  # the study ended meanwhile
                    os.kill(chance.choice(sorted(workers)), signal.SIGKILL)
        output = ""
        for _ in range(4):
            part, _ = run.communicate(timeout=300)
            output += f"{kind}: exit {run.returncode}\n{part}"
            left = commands_of(run.pid)
            if left.keys() - {run.pid}:
                return f"{kind}: processes are left: {left}\n{output}"
            if run.returncode == 0:
                return ""
            run = self.start(name, timeout="1m", graphs=graphs, RANKTUNE_STAND_IN_SEED=str(number + 1))
        run.kill()
        return f"the study does not end\n{output}"


def main():
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(folder)
        first = campaign.start("expected")
        output, _ = first.communicate(timeout=300)
        if first.returncode != 0:
            sys.exit(output)
        expected = campaign.reports("expected")
        for mode, numbers in (("delays", range(DELAYS)), ("faults", range(FIRST_FAULT, FIRST_FAULT + FAULTS))):
            begin, failed = time.monotonic(), 0
            for number in numbers:
                problem = getattr(campaign, mode)(number)
                if not problem and campaign.reports(f"{mode}{number}") != expected:
                    problem = f"other results: {campaign.reports(f'{mode}{number}')}"
                if problem:
                    failed += 1
                    print(f"run {number} with {mode}: {problem}", flush=True)
            wrong += failed
            print(f"{len(numbers)} runs with {mode}: {len(numbers) - failed} as expected, {failed} wrong; "
                  f"{len(expected)} reports each; {time.monotonic() - begin:.0f} s", flush=True)
    sys.exit(1 if wrong or len(expected) != 4 else 0)


if __name__ == "__main__":
    main()
