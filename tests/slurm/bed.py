# SPDX-License-Identifier: Apache-2.0
"""What the cases on a real Slurm share: where everything is, small studies, and jobs that run them. For slurm_test.py, whose
arguments are read here."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
SOURCES = pathlib.Path(sys.argv[2]).resolve()
TESTBED = SOURCES / "tools" / "slurm-testbed"
DIRECTORY = f"/tmp/ranktune-slurm-test-{os.getpid()}"
NODES = 3
GPUS = 4
PATIENCE = 600  # seconds for a job of seconds, which waits for the nodes that other cases use, on a machine that does other things as well
TUTORIAL_PATIENCE = 1000  # seconds for the tutorial: two studies of PyTorch

STUDY = """
[study]
name = "layout"
metric = "score"
mode = "max"
num_trials = {trials}
max_iterations = 9
seed = 1
[trainable]
builtin = "curve"
seconds = {seconds}
[resources]
{resources}
[searcher]
type = "random"
[space]
lr = "loguniform(1e-4, 1.0)"
[scheduler]
type = "asha"
[run]
abort_grace = "2s"
heartbeat_timeout = "10s"
[slurm]
requeue = {requeue}
"""

# One report, and a file that says what this rank of the trial sees.
TRAIN = """
import json, os, socket, time
seen = {name: os.environ.get(name) for name in ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "WORLD_SIZE",
                                                "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ENVIRONMENT")}
seen["launcher"] = [name for name in os.environ if name.startswith(("SLURM_", "PMIX_", "OMPI_COMM_", "OMPI_MCA_")) and name != "SLURM_CONF"]
seen["node"] = os.environ["SLURMD_NODENAME"]
seen["began"] = time.time()
time.sleep(0.5)
seen["ended"] = time.time()
with open(f"seen-{os.environ['RANKTUNE_TRIAL']}-{os.environ['RANK']}.json", "w") as file:
    json.dump(seen, file)
head = socket.socket(fileno=int(os.environ["RANKTUNE_FD"]))
head.sendall(b'{"report": {"score": 1.0}}\\n')
head.recv(1000)
"""
PROGRAM_STUDY = STUDY.replace('builtin = "curve"\nseconds = {seconds}', 'command = "python3 train.py"\nkeep_env = ["SLURMD_NODENAME"]').replace(
    "max_iterations = 9", "max_iterations = 1").replace('type = "asha"', 'type = "fifo"')

# The same study on any number of ranks, whatever ends its runs: tests/slurm/endings.py.
DETERMINISTIC_STUDY = STUDY.replace("seed = 1\n", "seed = 1\ndeterministic = true\nmax_concurrent = 8\n")

environment = {}


def slurm(*words, check=True):
    done = subprocess.run(list(map(str, words)), env=environment, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


class Job:
    """A job script, submitted with a small study; everything in a directory of its own."""

    def __init__(self, folder, script, *options, resources="ranks = 1", trials=12, seconds=0.01, variables=(), study=STUDY,
                 requeue="false", disk=None, arguments=("study.toml", "-o", "study")):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
        self.study = self.folder / "study"
        self.log_file = self.folder / "job.log"
        if disk:  # the study's directory
            self.study.symlink_to(disk)
        (self.folder / "train.py").write_text(TRAIN)
        (self.folder / "study.toml").write_text(
            study.format(trials=trials, seconds=seconds, resources=resources, requeue=requeue))
        if isinstance(script, str):  # the text of one
            (self.folder / "job.sh").write_text(script)
            script = self.folder / "job.sh"
        self.script, self.options, self.variables, self.arguments = script, options, variables, arguments
        self.submit()

    def submit(self, *overrides):
        """Again: the same line on the same directory."""
        words = ["sbatch", "--parsable", "--cpus-per-task=1", f"--output={self.log_file}", f"--chdir={self.folder}", *self.options,
                 self.script, self.arguments[0], *overrides, *self.arguments[1:]]
        done = subprocess.run(list(map(str, words)), env=dict(environment, **dict(self.variables)), capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr
        self.id = done.stdout.strip().split(";")[0]

    def log(self):
        return self.log_file.read_text() if self.log_file.exists() else ""

    def show(self, key, task=""):
        """A field of what `scontrol show job` says, of one task of an array with `task` ("_2")."""
        found = re.search(rf"\b{key}=(\S+)", slurm("scontrol", "show", "job", self.id + task))
        return found.group(1) if found else ""

    def wait_for(self, what, condition, patience=PATIENCE):
        end = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < end, f"waited {patience} s for: {what}\n{self.log()}\n{self.standing()}"
            time.sleep(0.2)

    def standing(self):
        """What Slurm and the machine say of it."""
        return "\n".join((slurm("scontrol", "show", "job", self.id, check=False), slurm("sinfo", "-N", "-l", check=False),
                          slurm("ps", "-eo", "pid,ppid,pgid,sid,stat,etimes,args", check=False)))

    def wait_until_training(self):
        def training():
            assert self.show("JobState") in ("PENDING", "RUNNING", "CONFIGURING"), self.log()
            status = self.study / "status"
            return status.exists() and re.search(r'"running": [1-9]', status.read_text())
        self.wait_for("trials that run", training)

    def finish(self, patience=PATIENCE):
        """(state, exit code) once the job is over."""
        over = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "PREEMPTED", "NODE_FAIL")
        self.wait_for("the end of the job", lambda: self.show("JobState") in over, patience)
        return self.show("JobState"), int(self.show("ExitCode").split(":")[0])

    def outcome(self):
        return dict(line.split("=", 1) for line in (self.study / "outcome").read_text().splitlines())

    def layout(self):
        """{node: [(rank, GPUs)]} as the head found it."""
        (file,) = (self.study / "logs").glob("*.env.json")
        facts = json.loads(file.read_text())
        return {entry["node"]: list(zip(entry["ranks"], entry["gpus"])) for entry in facts["layout"]}


def expect(job, states, code, exit=None):
    """`states`: one, or several with | between."""
    got = job.finish()
    assert got[0] in states.split("|") and got[1] == code, f"{got}, not {(states, code)}\n{job.log()}"
    if exit is not None:
        assert job.outcome()["exit"] == str(exit), job.outcome()


def expected_layout(nodes, workers, gpus):
    layout, rank = {}, 0
    for node in range(1, nodes + 1):
        devices = ([""] if node == 1 else []) + [str(i) if gpus else "" for i in range(workers)]
        layout[f"n{node}"] = [(rank + i, device) for i, device in enumerate(devices)]
        rank += len(devices)
    return layout


def template(name):
    return SOURCES / "slurm" / f"{name}.sbatch"
