# SPDX-License-Identifier: Apache-2.0
"""Cases on a real Slurm: what lies around the trials. Data that nodes copy, predictions, and tasks. For slurm_test.py."""
import csv
import json
import shutil
import subprocess
import tempfile

from bed import PROGRAM, SOURCES, Job, environment, expect, slurm

LINE = """#!/bin/bash
{launch} bash -c 'export TMPDIR=/dev/shm; exec "$@"' nobody {command}
"""
LAUNCHERS = {"srun": "srun --mpi=pmix --overcommit -n {ranks}", "mpirun": "mpirun -n {ranks} --oversubscribe --bind-to none --allow-run-as-root"}
STAGED = """[study]
name = "staged"
metric = "value"
mode = "max"
num_trials = 6
max_iterations = 1
[trainable]
command = "bash read.sh {{data.text}} {text}"
report = '(?P<value>[0-9]+) bytes, staged (?P<staged>[01])'
[space]
x = "uniform(0, 1)"
[scheduler]
type = "fifo"
[data]
text = "{text}"
stage = true
"""
READ = 'echo "$(wc -c < $1) bytes, staged $(test $1 = $2; echo $?)"\n'
# A task that kills its worker, once.
TASK = """test "$1" != 7 || test -e killed || { touch killed; kill -9 $PPID; }
echo "{\\"twice\\": $((2 * $1))}"
"""


def job(folder, launcher, nodes, command, files=()):
    """The files are {name: text}, in the folder of the job."""
    launch = LAUNCHERS[launcher].format(ranks=2 * nodes + 1)
    made = Job(folder, LINE.format(launch=launch, command=command), f"--nodes={nodes}", "--hold")
    for name, text in dict(files).items():
        (made.folder / name).write_text(text)
    slurm("scontrol", "release", made.id)
    return made


def results(file):
    with open(file, newline="") as table:
        return list(csv.DictReader(table))


def staging(launcher):
    def case(folder):
        text = tempfile.NamedTemporaryFile(dir=folder, suffix=".txt")
        text.write(b"0123456789abcdef" * (3 << 20))  # three pieces
        text.flush()
        made = job(folder, launcher, 3, "ranktune run staged.toml -o study", {"staged.toml": STAGED.format(text=text.name), "read.sh": READ})
        expect(made, "COMPLETED", 0, exit=0)
        exported = json.loads(subprocess.run([PROGRAM, "export", made.study, "--format", "json"], env=environment, check=True, capture_output=True, text=True).stdout)
        values = [report["metrics"] for report in exported["reports"]]
        assert values == 6 * [{"value": 16.0 * (3 << 20), "staged": 1.0}], values
    case.__name__ = f"staging_{launcher}"
    case.__doc__ = f"three nodes under {launcher} copy a file, train on the copies, and remove them"
    return case


def tasks(launcher):
    def case(folder):
        rows = 60
        made = job(folder, launcher, 2, "ranktune map --input rows.csv -o tasks -- bash task.sh {x}",
                   {"rows.csv": "x\n" + "".join(f"{row}\n" for row in range(rows)), "task.sh": TASK})
        state = made.finish()
        if state != ("COMPLETED", 0):  # without a way to outlive a rank the launcher ends the job, and the same line goes on
            made.submit()
            slurm("scontrol", "release", made.id)
            expect(made, "COMPLETED", 0)
        found = results(made.folder / "tasks" / "results.csv")
        assert [row["x"] for row in found] == [str(row) for row in range(rows)], found
        assert [float(row["twice"]) for row in found] == [2.0 * row for row in range(rows)], found
        assert {row["state"] for row in found} == {"finished"}, found
    case.__name__ = f"tasks_{launcher}"
    case.__doc__ = f"each row of a table once in the results, under {launcher} on two nodes, although a task kills its worker"
    return case


def predictions(launcher):
    def case(folder):
        trained = tempfile.mkdtemp(dir=folder)
        shutil.copy(SOURCES / "jobs/digits/digits.h5", trained)
        study = (SOURCES / "jobs/digits/digits.toml").read_text()
        with open(f"{trained}/digits.toml", "w") as file:
            file.write(study)
        here = [PROGRAM, "run", "digits.toml", "--local", "2", "-o", "digits", "study.num_trials=2", "study.max_iterations=2", "resources.ranks=1"]
        subprocess.run(here, cwd=trained, env=environment, check=True, capture_output=True)
        line = "predict {0}/digits best --input {0}/digits.h5:train/x --range 50".format(trained)
        subprocess.run([PROGRAM, *line.split(), "-o", "alone.h5", "--local", "2"], cwd=trained, env=environment, check=True, capture_output=True)
        made = job(folder, launcher, 2, f"ranktune {line} -o y.h5")
        expect(made, "COMPLETED", 0)
        with open(f"{trained}/alone.h5", "rb") as alone:
            assert (made.folder / "y.h5").read_bytes() == alone.read(), "not what two ranks on one node predict"
    case.__name__ = f"predictions_{launcher}"
    case.__doc__ = f"two nodes under {launcher} write one file of predictions, the same as one node"
    return case


def cases():
    return [make(launcher) for make in (staging, tasks, predictions) for launcher in ("srun", "mpirun")]
