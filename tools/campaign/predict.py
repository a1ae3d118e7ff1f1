#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does `ranktune simulate` predict how long a study takes? predict.py PROGRAM STUDY [--from SCHEDULER:WORKERS] [--to SCHEDULER:WORKERS,...]

Runs STUDY for real with one scheduler and number of workers, simulates it from that journal with other schedulers and numbers of workers, runs
those for real, too, and prints predicted and real times, from the beginning to the end of the study (the start of MPI is not in them).

The machine must have a core for each worker and one for the head, and nothing else to do: with fewer, iterations take longer the more workers there are.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile


def environment():
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "OMPI_COMM", "PMIX_", "RANKTUNE_"))}
    return {**env, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_mpi_yield_when_idle": "1"}


class Studies:
    def __init__(self, program, study, overrides, folder):
        self.program, self.study, self.overrides, self.folder = os.path.abspath(program), os.path.abspath(study), overrides, folder

    def ranktune(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, env=environment(), cwd=self.folder)
        if done.returncode != 0:
            raise SystemExit(f"ranktune {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout

    def seconds(self, directory):
        """From the creation of the first trial to the end of the last."""
        trials = json.loads(self.ranktune("export", directory, "--format", "json"))["trials"]
        return max(trial["end"] for trial in trials) - min(trial["created"] for trial in trials)

    def settings(self, scheduler):
        return [f"scheduler={{type=\"{scheduler}\"}}", *self.overrides]

    def real(self, scheduler, workers, name):
        self.ranktune("run", self.study, *self.settings(scheduler), "--local", workers, "-o", name, "--progress", "none")
        return self.seconds(name)

    def predicted(self, scheduler, groups, earlier, name):
        text = self.ranktune("simulate", self.study, *self.settings(scheduler), "--groups", groups, "--model", earlier, "-o", name)
        curves = " ".join(text.split("curves", 2)[-1].split("trials ")[0].split())
        return self.seconds(name), curves


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("study")
    parser.add_argument("overrides", nargs="*", help="of the study file, as for `ranktune run`")
    parser.add_argument("--from", dest="earlier", default="asha:4", help="scheduler:workers of the journal")
    parser.add_argument("--to", default="median:2,fifo:8", help="scheduler:workers to predict")
    parser.add_argument("--ranks", type=int, default=1, help="ranks of a trial (workers are ranks)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ranktune-predict-") as folder:
        studies = Studies(arguments.program, arguments.study, arguments.overrides, pathlib.Path(folder))
        scheduler, workers = arguments.earlier.split(":")
        print(f"journal: {scheduler} on {workers} workers, {studies.real(scheduler, workers, 'journal'):.2f} s")
        print("| scheduler | workers | predicted | real | error | curves |")
        print("|---|---|---|---|---|---|")
        for i, wanted in enumerate(arguments.to.split(",")):
            scheduler, workers = wanted.split(":")
            expected, curves = studies.predicted(scheduler, int(workers) // arguments.ranks, "journal", f"predicted-{i}")
            real = studies.real(scheduler, workers, f"real-{i}")
            print(f"| {scheduler} | {workers} | {expected:.2f} s | {real:.2f} s | {100 * (expected / real - 1):+.1f} % | {curves} |", flush=True)


if __name__ == "__main__":
    main()
