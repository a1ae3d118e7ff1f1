#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executes docs/tutorials/pytorch.md as a new user would, and holds its promises against what happened.

usage: tutorial_test.py PROGRAM SOURCE_ROOT [--python PYTHON] [--launcher 'srun --mpi=pmix -n 5'] [--keep DIR]

--python: the interpreter with PyTorch and h5py; default: this one, or another one of this machine that has them.
--launcher: in place of `--local N`, for a run inside of an allocation. --keep: where the files stay. Exit code 77 (skipped)
where there is no PyTorch.
"""
import argparse
import difflib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

LONGEST_STEP = 300  # seconds; a study of the tutorial takes about one minute on two cores
FINAL = {"finished", "stopped", "paused"}


def fail(text):
    print(f"FAILED: {text}", flush=True)
    sys.exit(1)


def check(condition, text):
    if not condition:
        fail(text)
    print(f"ok: {text}", flush=True)


def blocks(page, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", page, re.M | re.S)


def changed_lines(old, new):
    """(removed, added), without order of the file around them."""
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0))[2:]
    return [line[1:] for line in lines if line[0] == "-"], [line[1:] for line in lines if line[0] == "+"]


def check_the_page(page, job):
    plain, tuned = (job / "train.py").read_text(), (job / "train_ranktune.py").read_text()
    removed, added = changed_lines(plain, tuned)
    check(max(len(removed), len(added)) <= 5, f"{len(removed)} lines of train.py became {len(added)}: at most 5")
    shown = blocks(page, "diff")[0].splitlines()
    check([line[1:] for line in shown if line[0] == "-"] == removed, "the page shows the lines that go")
    check([line[1:] for line in shown if line[0] == "+"] == added, "the page shows the lines that come")
    for line in (line[1:] for line in shown if line[0] == " "):
        check(line in plain.splitlines() and line in tuned.splitlines(), f"context of the diff: {line.strip()}")
    study = re.sub(r"\A#.*\n", "", (job / "pytorch.toml").read_text())
    check(blocks(page, "toml")[0] == study, "the page shows jobs/pytorch/pytorch.toml")
    count = len(plain.splitlines())
    check(f"is {count} lines" in page, f"the page says that train.py has {count} lines")


class Shell:
    """Runs the page's commands, one shell for all of them, as `export` and `cd` ask for."""

    def __init__(self, folder, env):
        self.folder, self.env = folder, env

    def run(self, script):
        process = subprocess.Popen(["bash", "-euo", "pipefail", "-c", script], cwd=self.folder, env=self.env, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            out, _ = process.communicate(timeout=LONGEST_STEP * 3)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
            print(out[-5000:])
            fail("the tutorial's commands took too long")
        print(out, flush=True)
        if process.returncode:
            fail(f"the tutorial's commands ended with code {process.returncode}")
        return out


def as_run(script, launcher, old_torchrun):
    """The commands, with what the page says about Debian's torchrun, and in an allocation its launcher."""
    with socket.socket() as probe:  # torchrun's default port may be another test's
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = script.replace("torchrun ", f"torchrun --master_port={port} " + ("-r 1 -t 1 " if old_torchrun else ""))
    if launcher:
        script = re.sub(r"^ranktune run (.*)--local \d+", rf"{launcher} ranktune run \1", script, flags=re.M)
    return "set -x\n" + script


def curve(study, trial):
    """[(iteration, attempt, metric)] of a trial, from the table for people."""
    import h5py

    with h5py.File(study / "metrics.h5") as file:
        reports = file["reports"]
        rows = reports["trial"][:] == trial
        return list(zip(reports["iteration"][:][rows].tolist(), reports["attempt"][:][rows].tolist(),
                        reports["val_accuracy"][:][rows].tolist()))


def trials(study):
    import h5py

    with h5py.File(study / "metrics.h5") as file:
        table = file["trials"]
        columns = {name: (data.asstr() if data.dtype == object else data)[:].tolist() for name, data in table.items()}
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def check_study(study, promotes):
    rows = trials(study)
    states = sorted({row["state"] for row in rows})
    check(len(rows) == 18 and set(states) <= FINAL, f"{study.name}: {len(rows)} trials, states {states}")
    best = max(row["best"] for row in rows)
    check(0.95 <= best <= 1, f"{study.name}: best val_accuracy {best:.4f}")
    for row in rows:
        iterations = [iteration for iteration, _, _ in curve(study, row["trial"])]
        if iterations != list(range(1, row["iteration"] + 1)):
            fail(f"{study.name}: trial {row['trial']} reported the iterations {iterations}")
    again = [row for row in rows if len({attempt for _, attempt, _ in curve(study, row["trial"])}) > 1]
    if promotes:
        check(again, f"{study.name}: {len(again)} trials were promoted, each iteration trained once")
    else:
        check(not again, f"{study.name}: no trial was started twice")
    return again


def check_continuation(shell, study, promoted):
    """A promoted trial's curve is that of the plain script, trained without a break: it went on from its checkpoint, the
    momentum of the optimiser included."""
    row = max(promoted, key=lambda row: row["iteration"])
    found = curve(study, row["trial"])
    arguments = " ".join(f"--{name}={row[name]!r}" for name in ("lr", "momentum", "batch_size", "hidden"))
    arguments += f" --epochs={row['iteration']} --output={shlex.quote(str(study.parent))}"
    out = shell.run(f"""cd {shlex.quote(str(study.parent))}
        export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 20000)) OMP_NUM_THREADS=1
        RANK=1 python3 -u train.py {arguments} & RANK=0 python3 -u train.py {arguments}; wait""")
    by_hand = [float(value) for value in re.findall(r"^epoch \d+: val_accuracy (\S+)$", out, re.M)]
    in_study = [round(value, 4) for _, _, value in found]
    starts = len({attempt for _, attempt, _ in found})
    check(starts >= 2 and in_study == by_hand,
          f"trial {row['trial']}, started {starts} times, has the curve of an unbroken run: {in_study} {by_hand}")


def check_population(shell, program):
    """Every member trained to the end. They are compared together, so the worst takes over from the best."""
    whole = json.loads(shell.run(f"cd jobs/pytorch; {shlex.quote(str(program))} export pytorch-pbt --format json"))
    check({trial["state"] for trial in whole["trials"]} == {"finished"}, "pytorch-pbt: all members are finished")
    takeovers = [(trial["id"], taken["donor"]) for trial in whole["trials"] for taken in trial.get("takeovers", [])]
    check(takeovers and all(trial != donor for trial, donor in takeovers), f"pytorch-pbt: {len(takeovers)} takeovers")


def torch_version(python):
    """(version of PyTorch, has the torchrun that needs -r 1 -t 1)"""
    probe = subprocess.run([python, "-c", "import h5py, sys, torch; print(torch.__version__, sys.version_info >= (3, 11))"],
                           capture_output=True, text=True)
    if probe.returncode != 0:
        return None, False
    version, new_python = probe.stdout.split()
    return version, version.startswith("1.13") and new_python == "True"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("source", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--python")
    parser.add_argument("--launcher")
    parser.add_argument("--keep", type=lambda path: pathlib.Path(path).resolve())
    arguments = parser.parse_args()

    page = (arguments.source / "docs/tutorials/pytorch.md").read_text()
    check_the_page(page, arguments.source / "jobs/pytorch")
    candidates = [arguments.python] if arguments.python else [sys.executable, "/usr/bin/python3", shutil.which("python3")]
    for python in candidates:
        version, old_torchrun = torch_version(python) if python and os.path.exists(python) else (None, False)
        if version is not None:
            break
    else:
        print(f"skipped: no PyTorch and h5py in {candidates} (apt-get install python3-torch python3-h5py)")
        return 77
    print(f"PyTorch {version} of {python}", flush=True)
    arguments.python = python
    with tempfile.TemporaryDirectory(prefix="ranktune-tutorial-") as temporary:
        root = arguments.keep or pathlib.Path(temporary)
        for part in ("jobs/pytorch", "jobs/digits", "tools/python"):
            shutil.copytree(arguments.source / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
        bin_ = pathlib.Path(temporary) / "bin"
        bin_.mkdir()
        (bin_ / "python3").symlink_to(shutil.which(arguments.python))
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("RANKTUNE_", "PYTHON")) and name not in ("NO_COLOR", "COLUMNS")}
        if not arguments.launcher:  # inside of an allocation its variables are needed
            env = {name: value for name, value in env.items() if not name.startswith(("SLURM_", "OMPI_", "PMIX_", "PMI_"))}
        env["PATH"] = f"{bin_}:{arguments.program.parent}:{pathlib.Path(arguments.python).parent}:{env['PATH']}"
        env["PYTHONPATH"] = ""
        shell = Shell(root, env)
        out = shell.run(as_run("".join(blocks(page, "sh")), arguments.launcher, old_torchrun))
        for line in blocks(page, "text")[0].splitlines():
            print("as on the page" if line in out else "not as on the page, another PyTorch perhaps", line)
        job = root / "jobs/pytorch"
        promoted = check_study(job / "pytorch", promotes=True)
        check_study(job / "pytorch-stop", promotes=False)
        check("trial" in (job / "trials.csv").read_text(), "trials.csv is there")
        check_continuation(shell, job / "pytorch", promoted)
        check_population(shell, arguments.program)
    return 0


if __name__ == "__main__":
    sys.exit(main())
