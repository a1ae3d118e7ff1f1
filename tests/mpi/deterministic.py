#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A deterministic study with real processes: on 1, 2 and 4 workers, and after kill -9 and resumption on another number of
them, the logical digest is the same; so it is for real training, and the journals verify.

    deterministic.py RANKTUNE SOURCE_ROOT -- MPIRUN...
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

at = sys.argv.index("--")
PROGRAM, SOURCES = (os.path.abspath(word) for word in sys.argv[1:at])
MPIRUN = sys.argv[at + 1:]
PATIENCE = 300  # seconds; a guard against waiting for ever

CURVE = """[study]
name = "curve"
metric = "score"
mode = "max"
num_trials = 18
max_iterations = 9
max_concurrent = 3
seed = 5
[trainable]
builtin = "curve"
seconds = 0.01
state_bytes = 5000
[searcher]
type = "random"
[space]
lr = "loguniform(1e-4, 1.0)"
[scheduler]
{scheduler}
[checkpoint]
interval = 1
[run]
heartbeat_timeout = "10s"
"""
MLP = """[study]
name = "mlp"
metric = "val_accuracy"
mode = "max"
num_trials = 6
max_iterations = {iterations}
max_concurrent = 2
seed = 5
[trainable]
builtin = "mlp"
data = "{data}"
[searcher]
type = "random"
[space]
lr = "loguniform(1e-3, 1.0)"
{hidden}
[scheduler]
{scheduler}
"""


def command(file, directory, workers):
    return [*MPIRUN, "-n", str(workers + 1), PROGRAM, "run", file, "-o", directory, "-q", "--deterministic"]


def run(file, directory, workers):
    done = subprocess.run(command(file, directory, workers), capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, f"{workers} workers: exit {done.returncode}: {done.stdout}{done.stderr}"


def replay(directory, *options):
    done = subprocess.run([PROGRAM, "replay", directory, *options], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and not done.stderr, f"replay {options}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def digest(directory):
    replay(directory, "--verify")
    return replay(directory, "--logical-digest")


def killed_and_resumed(file, directory, workers):
    """Killed, with all its processes, once there are some records; then resumed on other numbers of workers."""
    process = subprocess.Popen(command(file, directory, workers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True, cwd=os.path.dirname(file))
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        export = subprocess.run([PROGRAM, "export", directory, "--format", "json"], capture_output=True, text=True)
        if export.returncode == 0 and any(t["iterations"] >= 3 for t in json.loads(export.stdout)["trials"]):
            break
        time.sleep(0.02)
    for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
        try:
            if os.readlink(f"/proc/{pid}/cwd") == os.path.dirname(file) and int(pid) != os.getpid():
                os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass
    process.wait()
    for more in (1, 3):
        done = subprocess.run(command(file, directory, more), capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, f"resumed on {more}: exit {done.returncode}: {done.stdout}{done.stderr}"


def main():
    with tempfile.TemporaryDirectory() as base:
        digits = os.path.join(SOURCES, "jobs", "digits", "digits.h5")
        studies = {"promote": CURVE.format(scheduler='type = "asha"'),
                   "stop": CURVE.format(scheduler='type = "asha"\nvariant = "stop"'),
                   "mlp": MLP.format(data=digits, iterations=3, hidden="hidden = [[8], [16]]", scheduler='type = "asha"'),
                   "pbt": MLP.format(data=digits, iterations=7, hidden="",
                                     scheduler='type = "pbt"\ninterval = 2\n[scheduler.explore]\nlr = "perturb"')}
        for name, text in studies.items():
            file = os.path.join(base, name + ".toml")
            with open(file, "w") as out:
                out.write(text)
            digests = {}
            for workers in (1, 2, 4):
                directory = os.path.join(base, f"{name}-{workers}")
                run(file, directory, workers)
                digests[workers] = digest(directory)
            killed = os.path.join(base, name + "-killed")
            killed_and_resumed(file, killed, 2)
            digests["killed"] = digest(killed)
            assert len(set(digests.values())) == 1, f"{name}: {digests}"
            print(f"{name}: {digests[1]} on 1, 2 and 4 workers, and after a kill")


if __name__ == "__main__":
    main()
