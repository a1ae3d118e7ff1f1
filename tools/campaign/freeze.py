#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A study whose file system is frozen for longer than run.heartbeat_timeout: freeze.py PROGRAM [SECONDS]

Creates an ext4 file system on a loop device, runs a study there under `supervise -- mpirun`, freezes the file system in
mid-run with fsfreeze (90 s unless told otherwise; the time-out is the default, 60 s), thaws it, and expects that the study has
noticed nothing: one start, every trial complete, a journal that verifies. Needs root, loop devices, mkfs.ext4 and fsfreeze.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

STUDY = """[study]
name = "frozen"
metric = "score"
mode = "max"
num_trials = 8
max_iterations = 40
[trainable]
builtin = "curve"
seconds = 0.1
state_bytes = 100000
[searcher]
type = "random"
[space]
lr = "loguniform(1e-3, 1.0)"
[scheduler]
type = "asha"
"""
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "3"]


def reports(program, study):
    done = subprocess.run([program, "status", study, "-f", "json"], capture_output=True, text=True)
    return int(done.stdout.split('"reports":')[1].split(",")[0]) if done.returncode == 0 else 0


def main():
    program = os.path.abspath(sys.argv[1])
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 90.0
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ranktune-freeze-"))
    image, mount = folder / "image", folder / "mount"
    mount.mkdir()
    with open(image, "wb") as file:
        file.truncate(256 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    frozen = False
    try:
        study = folder / "frozen.toml"
        study.write_text(STUDY)
        directory = mount / "frozen"
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                       "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
        process = subprocess.Popen([program, "supervise", "--", *MPIRUN, program, "run", study, "-o", directory], env=environment,
                                   cwd=folder)
        while process.poll() is None and reports(program, directory) < 20:
            time.sleep(0.1)
        assert process.poll() is None, "it ended too early"
        subprocess.run(["fsfreeze", "-f", mount], check=True)
        frozen = True
        print(f"frozen for {seconds:g} s", flush=True)
        try:
            process.wait(seconds)
            raise AssertionError("it ended while its disk was frozen")
        except subprocess.TimeoutExpired:
            pass
        subprocess.run(["fsfreeze", "-u", mount], check=True)
        frozen = False
        print("thawed", flush=True)
        code = process.wait(300)
        outcome = (directory / "outcome").read_text()
        log = "".join(path.read_text() for path in sorted((directory / "logs").glob("start-*.log")))
        print(outcome, *(line for line in log.splitlines() if " held-up " in line or " lost " in line), sep="\n")
        assert code == 0, code
        assert "start=1\n" in outcome and "cause=over\n" in outcome
        assert " held-up " in log and " lost " not in log
        subprocess.run([program, "replay", directory, "--verify"], check=True)
        print("nothing was lost")
    finally:
        if frozen:
            subprocess.run(["fsfreeze", "-u", mount])
        subprocess.run(["umount", "-l", mount])
        subprocess.run(["rm", "-rf", folder])


if __name__ == "__main__":
    main()
