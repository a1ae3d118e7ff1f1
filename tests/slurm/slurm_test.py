#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The job scripts of slurm/ on a real Slurm of three nodes: who runs where with which GPUs, how jobs end, what is refused.

    slurm_test.py RANKTUNE SOURCE_ROOT [CASE...]

Starts a test bed of its own (tools/slurm-testbed) and stops it. Exits with 77, and says why, where there is no Slurm.
Cases run at the same time, as far as the nodes allow: Slurm sorts that out.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
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
PATIENCE = 240  # seconds for a job of seconds, on a machine that does other things as well
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
[space]
lr = "loguniform(1e-4, 1.0)"
[scheduler]
type = "asha"
[run]
abort_grace = "2s"
heartbeat_timeout = "10s"
"""

# One report, and a file that says what this rank of the trial sees.
TRAIN = """
import json, os, socket
seen = {name: os.environ.get(name) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES")}
seen["launcher"] = [name for name in os.environ if name.startswith(("SLURM_", "PMIX_", "OMPI_"))]
seen["node"] = socket.gethostname()
with open(f"seen-{os.environ['RANKTUNE_TRIAL']}-{os.environ['RANK']}.json", "w") as file:
    json.dump(seen, file)
head = socket.socket(fileno=int(os.environ["RANKTUNE_FD"]))
head.sendall(b'{"report": {"score": 1.0}}\\n')
head.recv(1000)
"""
PROGRAM_STUDY = STUDY.replace('builtin = "curve"\nseconds = {seconds}', 'command = "python3 train.py"').replace(
    "max_iterations = 9", "max_iterations = 1").replace('type = "asha"', 'type = "fifo"')

environment = {}


def slurm(*words, check=True):
    done = subprocess.run(list(map(str, words)), env=environment, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


class Job:
    """A job script, submitted with a small study; everything in a directory of its own."""

    def __init__(self, folder, script, *options, resources="ranks = 1", trials=12, seconds=0.01, variables=(), study=STUDY):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
        self.study = self.folder / "study"
        self.log_file = self.folder / "job.log"
        (self.folder / "train.py").write_text(TRAIN)
        (self.folder / "study.toml").write_text(study.format(trials=trials, seconds=seconds, resources=resources))
        if isinstance(script, str):  # the text of one
            (self.folder / "job.sh").write_text(script)
            script = self.folder / "job.sh"
        words = ["sbatch", "--parsable", f"--output={self.log_file}", f"--chdir={self.folder}", *options, script,
                 "study.toml", "-o", "study"]
        done = subprocess.run(list(map(str, words)), env=dict(environment, **dict(variables)), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self.id = done.stdout.strip().split(";")[0]

    def log(self):
        return self.log_file.read_text() if self.log_file.exists() else ""

    def show(self, key):
        found = re.search(rf"\b{key}=(\S+)", slurm("scontrol", "show", "job", self.id))
        return found.group(1) if found else ""

    def wait_for(self, what, condition, patience=PATIENCE):
        end = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < end, f"waited {patience} s for: {what}\n{self.log()}"
            time.sleep(0.2)

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


# ---- who runs where -------------------------------------------------------------------------------------------------

def layout_case(name, launcher, nodes):
    def case(folder):
        resources = "gpus = 2" if name == "gpu" else "ranks = 2"
        nodelist = "n1" if nodes == 1 else f"n[1-{nodes}]"
        job = Job(folder, template(name), f"--nodelist={nodelist}", f"--nodes={nodes}", resources=resources,
                  variables={"LAUNCHER": launcher})
        expect(job, "COMPLETED", 0, exit=0)
        want = expected_layout(nodes, 4, name == "gpu")
        assert job.layout() == want, f"{job.layout()}\nnot {want}"
    case.__name__ = f"{name}_{launcher}_{nodes}"
    case.__doc__ = f"slurm/{name}.sbatch by {launcher} on {nodes} node(s)"
    return case


def all_cores(launcher):
    def case(folder):
        job = Job(folder, template("cpu"), "--nodes=2", "--nodelist=n[1-2]", "--ntasks-per-node=8", "--exclusive",
                  variables={"LAUNCHER": launcher}, trials=32)
        expect(job, "COMPLETED", 0, exit=0)
        # A whole node comes with its GPUs, which a study that does not ask for any need not share.
        ranks = {node: [rank for rank, _ in entries] for node, entries in job.layout().items()}
        assert ranks == {"n1": list(range(9)), "n2": list(range(9, 17))}, ranks
    case.__name__ = f"all_cores_{launcher}"
    case.__doc__ = "a worker on every core of the nodes, and the head besides"
    return case


def gpu_forms(folder):
    """What Slurm granted is what ranks get, in every form of asking."""
    forms = [  # directive; launch line; GPUs of ranks 0 to 4
        ("--gpus-per-node=4", "srun --mpi=pmix -n5 -O", ["", "0", "1", "2", "3"]),
        ("--gres=gpu:4", "srun --mpi=pmix -n5 -O", ["", "0", "1", "2", "3"]),
        ("--gpus=4", "mpirun -n 5 --oversubscribe", ["", "0", "1", "2", "3"]),
        ("--gpus-per-node=4", "srun --mpi=pmix -n5 -O --gpu-bind=single:1", ["", "1", "2", "3", "0"]),
        ("--gpus-per-node=4", "srun --mpi=pmix -n4 --gpu-bind=map_gpu:3,2,1,0", ["", "2", "1", "0"]),
        ("--gpus-per-node=4", "srun --mpi=pmix -n3 --gpu-bind=mask_gpu:0x1,0x6,0x8", ["", "1", "3"]),
        ("--gpus-per-node=4", "srun --mpi=pmix -n5 -O --gpu-bind=none", ["", "0", "1", "2", "3"]),
        ("--ntasks=3 --gpus-per-task=1", "srun --mpi=pmix -n3", ["", "1", "2"]),
        ("--ntasks=2 --gpus-per-task=2", "srun --mpi=pmix -n2", ["", "2,3"]),
        ("--gpus-per-node=4", "export CUDA_VISIBLE_DEVICES=2,3; mpirun -n 3", ["", "2", "3"]),
    ]
    jobs = []
    for directive, launch, want in forms:
        tasks = "" if "--ntasks" in directive else "--ntasks=4"
        script = f"#!/bin/bash\n#SBATCH --nodes=1 {tasks} {directive}\n{launch} {PROGRAM} run study.toml -o study\n"
        jobs.append((Job(folder, script, resources="gpus = 1", trials=4), directive + "; " + launch, want))
    for job, form, want in jobs:
        expect(job, "COMPLETED", 0, exit=0)
        (ranks,) = job.layout().values()
        assert [gpus for _, gpus in ranks] == want, f"{form}: {ranks}, not {want}"


def gpu_programs(launcher):
    def case(folder):
        job = Job(folder, template("gpu"), "--nodes=2", "--nodelist=n[1-2]", resources="gpus = 2", study=PROGRAM_STUDY,
                  variables={"LAUNCHER": launcher})
        expect(job, "COMPLETED", 0, exit=0)
        used = set()
        for trial in range(12):
            ranks = [json.loads((job.folder / f"seen-{trial}-{rank}.json").read_text()) for rank in (0, 1)]
            devices = ranks[0]["CUDA_VISIBLE_DEVICES"].split(",")
            assert len(set(devices)) == 2 and set(devices) <= set("0123"), ranks
            for rank, seen in enumerate(ranks):
                assert (seen["RANK"], seen["LOCAL_RANK"], seen["WORLD_SIZE"]) == (str(rank), str(rank), "2"), seen
                assert seen["CUDA_VISIBLE_DEVICES"].split(",") == devices and seen["launcher"] == [], seen
                used.add((seen["node"], devices[rank]))
        assert len({node for node, _ in used}) in (1, 2) and len(used) % 4 == 0, used
    case.__name__ = f"gpu_programs_{launcher}"
    case.__doc__ = "trials of two ranks see the two GPUs of their ranks, and LOCAL_RANK picks one"
    return case


def gpu_private_names(folder):
    """As with a cgroup per task: each task calls its own GPU 0 and sees no other. Programs get theirs, as LOCAL_RANK 0."""
    script = "#!/bin/bash\n#SBATCH --nodes=1 --ntasks=3 --gpus-per-task=1\n" \
             f"srun --mpi=pmix -n3 bash -c 'export CUDA_VISIBLE_DEVICES=0; exec {PROGRAM} run study.toml -o study'\n"
    job = Job(folder, script, resources="gpus = 2", study=PROGRAM_STUDY, trials=2)
    expect(job, "COMPLETED", 0, exit=0)
    for rank in (0, 1):
        seen = json.loads((job.folder / f"seen-0-{rank}.json").read_text())
        assert (seen["RANK"], seen["LOCAL_RANK"], seen["CUDA_VISIBLE_DEVICES"]) == (str(rank), "0", "0"), seen


def shared_gpu_program(folder):
    """A study of programs that says nothing about GPUs, in a job where two trials would use the same one."""
    job = Job(folder, template("gpu"), "--ntasks-per-node=6", study=PROGRAM_STUDY)
    expect(job, "FAILED", 2)
    assert "two trials would use the same GPU" in job.log() and "resources.gpus = 0" in job.log(), job.log()


# ---- what is refused ------------------------------------------------------------------------------------------------

def shared_gpu(folder):
    """More workers than GPUs are refused with the line that mends it."""
    job = Job(folder, template("gpu"), "--ntasks-per-node=6", resources="gpus = 2")
    expect(job, "FAILED", 2)
    assert re.search(r"n\d: 6 workers for 4 GPUs \(CUDA_VISIBLE_DEVICES=0,1,2,3\), so that two would use one; start one "
                     r"worker for each GPU: #SBATCH --ntasks-per-node=4", job.log()), job.log()
    assert not job.study.exists()


def no_gpu(folder):
    """A study that wants GPUs, in a job without."""
    job = Job(folder, template("cpu"), resources="gpus = 2")
    expect(job, "FAILED", 2)
    assert re.search(r"n\d: no GPU was granted; ask for one per worker: #SBATCH --gpus-per-node=4", job.log()), job.log()


def broken_launch(mpi_type):
    def case(folder):
        job = Job(folder, template("cpu"), variables={"MPI_TYPE": mpi_type})
        expect(job, "FAILED", 2)
        log = job.log()
        assert log.count("each is alone in MPI") == 1, log
        assert "try           srun --mpi=pmix ranktune run study.toml -o study" in log, log
        assert "offered: pmix" in log, log
        assert not job.study.exists()
    case.__name__ = f"broken_launch_{mpi_type}"
    case.__doc__ = f"srun --mpi={mpi_type}: one message, the right line in it"
    return case


# ---- how jobs end ---------------------------------------------------------------------------------------------------

def running(folder, launcher, nodes, *options, trials=4000, requeue="no"):
    job = Job(folder, template("cpu"), f"--nodes={nodes}", "--exclusive", *options, trials=trials, seconds=0.3,
              variables={"LAUNCHER": launcher, "REQUEUE": requeue})
    job.wait_until_training()
    return job


def ending(name, launcher, nodes, act, state, code):
    def case(folder):
        job = running(folder, launcher, nodes, requeue="yes" if act == cancel else "no")
        act(job)
        expect(job, state, code, exit=75)
        assert job.show("Restarts") == "0"
        assert job.outcome()["resumable"] == "true", job.outcome()
    case.__name__ = f"{name}_{launcher}_{nodes}"
    case.__doc__ = f"{name.replace('_', ' ')}: a clean stop by {launcher} on {nodes} node(s)"
    return case


def at(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + seconds))


def signal_script(job):
    slurm("scancel", "--batch", "--signal=USR1", job.id)


def signal_tasks(job):
    slurm("scancel", "--signal=USR1", job.id)


def cancel(job):
    slurm("scancel", job.id)


def warn(job):
    """So near to its end, Slurm sends the signal of --signal at its next look."""
    slurm("scontrol", "update", f"JobId={job.id}", f"EndTime={at(100)}")


def time_is_up(job):
    slurm("scontrol", "update", f"JobId={job.id}", f"EndTime={at(3)}")


def preempt(job):
    slurm("sbatch", "--partition=high", f"--nodelist={job.show('NodeList')}", "--exclusive", "--output=/dev/null",
          "--wrap=true")


def goes_on(name, launcher, act, trials, requeue="no"):
    """`trials` last longer than Slurm takes to act."""
    def case(folder):
        job = running(folder, launcher, 1, "--requeue", trials=trials, requeue=requeue)
        act(job)

        def second_start():
            assert job.show("JobState") != "COMPLETED", job.log()
            return job.show("Restarts") == "1"
        job.wait_for("the second start", second_start)
        expect(job, "COMPLETED", 0, exit=0)
        starts = sorted(path.name for path in (job.study / "logs").glob("*.env.json"))
        assert len(starts) == 2, starts
    case.__name__ = f"{name}_{launcher}"
    case.__doc__ = f"{name.replace('_', ' ')}: the same job goes on with the study, to its end"
    return case


def uts(pid):
    """What tells the nodes of the test bed apart; empty for a process that is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/uts")
    except OSError:
        return ""


def rank(number):
    def victims(job):
        return [job_processes(job)[number]]
    victims.__name__ = "head" if number == 0 else "worker"
    return victims


def named(*names):
    """Processes of the job's steps with one of these names."""
    def victims(job):
        found = []
        for pid in sorted(map(int, filter(str.isdigit, os.listdir("/proc")))):
            try:
                with open(f"/proc/{pid}/comm") as file:
                    if file.read().strip() not in names:
                        continue
                with open(f"/proc/{pid}/environ", "rb") as file:
                    mine = b"SLURM_JOB_ID=" + job.id.encode() in file.read().split(b"\0")
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    title = file.read()
            except OSError:
                continue
            # Of a slurmstepd the title tells: "slurmstepd: [12.0]".
            step = title.startswith(b"slurmstepd: [" + job.id.encode() + b".")
            if step and b".batch]" not in title and b".extern]" not in title or mine and not title.startswith(b"slurmstepd"):
                found.append(pid)
        return found
    victims.__name__ = names[0]
    return victims


def killed(launcher, nodes, victims, last=False, restarts=(1,)):
    """kill -9 of a part of the step: the study goes on in the same job, to its end. `restarts`: how many may be needed."""
    def case(folder):
        job = running(folder, launcher, nodes, trials=60)
        found = victims(job)
        assert found, "nobody to kill"
        os.kill(found[-1 if last else 0], 9)
        expect(job, "COMPLETED", 0, exit=0)
        log = job.log()
        assert log.count("starting the study again") in restarts, log
        assert " without n" not in log, log  # every node is alive
        assert len(list((job.study / "logs").glob("*.env.json"))) - 1 in restarts
        done = subprocess.run([PROGRAM, "replay", job.study, "--verify"], env=environment, capture_output=True, text=True)
        assert done.returncode == 0 and "verified" in done.stdout, done
        end = time.monotonic() + 30
        while job_processes(job) and time.monotonic() < end:
            time.sleep(0.2)
        assert not job_processes(job), job_processes(job)
    case.__name__ = f"killed_{victims.__name__}_{launcher}_{nodes}"
    case.__doc__ = f"kill -9 of {victims.__name__} under {launcher} on {nodes} node(s): started again in the same job"
    return case


def slurmd_of(node):
    return int((pathlib.Path(DIRECTORY) / f"slurmd.{node}.pid").read_text())


def node_down(launcher):
    """Everything on the job's second node dies at once, its slurmd too: the study goes on with the first one, after
    the silence of the lost ranks or, where the launcher ends the step, in a new step."""
    def case(folder):
        job = running(folder, launcher, 2, trials=60)
        node = slurm("scontrol", "show", "hostnames", job.show("NodeList")).split()[-1]
        home = uts(slurmd_of(node))
        assert home and home != uts(os.getpid())
        for pid in [pid for pid in filter(str.isdigit, os.listdir("/proc")) if uts(pid) == home]:
            try:
                os.kill(int(pid), 9)
            except ProcessLookupError:
                pass
        expect(job, "COMPLETED", 0, exit=0)
        starts = sorted((job.study / "logs").glob("*.env.json"), key=lambda path: path.stat().st_mtime)
        assert launcher == "srun" or len(starts) > 1, job.log()
        for number, start in enumerate(starts):
            hosts = [entry["node"] for entry in json.loads(start.read_text())["layout"]]
            assert (node in hosts) == (number == 0), (hosts, job.log())
        if len(starts) > 1:
            assert re.search(rf"starting the study again \(restart \d+\) without {node} \(", job.log()), job.log()
        assert job.show("Restarts") == "0"
    case.__name__ = f"node_down_{launcher}"
    case.__doc__ = f"a node dies under {launcher}: the job goes on with the others"
    case.alone = True  # it takes the node away from every other job
    return case


class Skipped(Exception):
    """A case that this machine cannot run, with the reason."""


def tutorial(folder):
    """docs/tutorials/pytorch.md by srun on two nodes."""
    test = SOURCES / "tests" / "tutorials" / "tutorial_test.py"
    script = (f"#!/bin/bash\n#SBATCH --nodes=2 --ntasks=5 --ntasks-per-node=3\n"
              f"exec /usr/bin/python3 {test} {PROGRAM} {SOURCES} --launcher 'srun --mpi=pmix --ntasks=5'\n")
    job = Job(folder, script)
    state, code = job.finish(TUTORIAL_PATIENCE)
    if code == 77:
        raise Skipped(job.log().strip().splitlines()[-1])
    assert (state, code) == ("COMPLETED", 0), f"{state} {code}\n{job.log()}"


def job_processes(job):
    """{rank: process id} of the ranks of a job."""
    found = {}
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/comm") as file:
                if file.read().strip() != "ranktune":
                    continue
            with open(f"/proc/{name}/environ", "rb") as file:
                variables = dict(v.split(b"=", 1) for v in file.read().split(b"\0") if b"=" in v)
            if variables.get(b"SLURM_JOB_ID") == job.id.encode() and b"PMIX_RANK" in variables:
                found[int(variables[b"PMIX_RANK"])] = int(name)
        except (OSError, ValueError):
            continue
    return found


def cases():
    found = [layout_case(name, launcher, nodes)
             for nodes in (1, 2, 3) for name in ("cpu", "gpu") for launcher in ("srun", "mpirun")]
    found += [all_cores("srun"), all_cores("mpirun"), gpu_forms, gpu_programs("srun"),
              gpu_programs("mpirun"), gpu_private_names, shared_gpu, shared_gpu_program, no_gpu, broken_launch("none"),
              broken_launch("pmi2")]
    for launcher in ("srun", "mpirun"):
        found.append(ending("signal_to_the_script", launcher, 1, signal_script, "FAILED", 75))
    found += [
        ending("signal_to_the_tasks", "srun", 2, signal_tasks, "FAILED", 75),
        ending("cancelled", "srun", 1, cancel, "CANCELLED", 75),
        ending("warned", "srun", 1, warn, "FAILED", 75),
        ending("warned", "mpirun", 1, warn, "FAILED", 75),
        ending("time_is_up", "srun", 1, time_is_up, "TIMEOUT|FAILED", 75),  # FAILED: over before Slurm counted it
        goes_on("preempted", "srun", preempt, 40),
        goes_on("preempted", "mpirun", preempt, 100),
        goes_on("requeued_in_time", "srun", warn, 200, requeue="yes"),
        tutorial,
    ]
    for launcher in ("srun", "mpirun"):
        found += [killed(launcher, 1, rank(0)), killed(launcher, 2, rank(3))]
    found += [
        killed("srun", 2, named("srun")),
        # Ranks whose slurmstepd is gone go on talking to the head; Slurm notices late.
        killed("srun", 2, named("slurmstepd"), last=True, restarts=(0, 1)),
        killed("mpirun", 1, named("mpirun", "mpirun.openmpi", "orterun")),
        killed("mpirun", 2, named("mpirun", "mpirun.openmpi", "orterun")),
        killed("mpirun", 2, named("orted")),
        node_down("srun"), node_down("mpirun"),
    ]
    return found


def unavailable():
    """Why there is no test bed on this machine."""
    if os.getuid() != 0:
        return "only root can start slurmd"
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [name for name in ("munged", "slurmctld", "slurmd", "srun") if shutil.which(name, path=path) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian: slurm-wlm, munge)"
    return ""


def bring_up():
    subprocess.run([TESTBED, "start", f"--nodes={NODES}", f"--gpus={GPUS}", "--directory", DIRECTORY], check=True)
    text = subprocess.run([TESTBED, "env", "--directory", DIRECTORY], check=True, capture_output=True, text=True).stdout
    environment.update({k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_", "OMPI_", "PMIX_"))})
    for line in text.splitlines():
        for word in line.removeprefix("export ").split():
            name, value = word.split("=", 1)
            environment[name] = value
    environment["PATH"] = f"{PROGRAM.parent}:{environment['PATH']}"


def left_behind():
    mark = f"SLURM_CONF={DIRECTORY}/slurm.conf".encode()
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if name.isdigit() and mark in file.read().split(b"\0"):
                    found.append(name)
        except OSError:
            continue
    return found


def run_case(case, folder):
    began = time.monotonic()
    try:
        case(folder)
        return f"ok      {case.__name__}  {time.monotonic() - began:.1f} s", True
    except Skipped as reason:
        return f"skipped {case.__name__}: {reason}", True
    except Exception as error:  # one case must not hide the others
        return f"FAILED  {case.__name__} ({case.__doc__}): {type(error).__name__}: {error}", False


def main():
    if reason := unavailable():
        print(f"skipped: {reason}")
        return 77
    wanted = [case for case in cases() if len(sys.argv) <= 3 or case.__name__ in sys.argv[3:]]
    assert wanted, "no such case"
    folder = tempfile.mkdtemp(prefix="ranktune-slurm-")
    good = True
    try:
        bring_up()
        if (pathlib.Path(DIRECTORY) / "apart").read_text().strip() != "yes":
            print("this machine allows no namespaces: all nodes have one host name, so mpirun, gpu_programs and node_down are left out")
            wanted = [case for case in wanted if not re.search("mpirun|gpu_programs|node_down", case.__name__)]
        together = [case for case in wanted if not hasattr(case, "alone")]
        with concurrent.futures.ThreadPoolExecutor(max_workers=12) as pool:
            for done in concurrent.futures.as_completed([pool.submit(run_case, case, folder) for case in together]):
                line, passed = done.result()
                print(line, flush=True)
                good = good and passed
        for case in wanted:
            if case in together:
                continue
            line, passed = run_case(case, folder)
            print(line, flush=True)
            good = good and passed
            subprocess.run([TESTBED, "stop", "--directory", DIRECTORY], check=False)
            bring_up()
    finally:
        subprocess.run([TESTBED, "stop", "--directory", DIRECTORY], check=False)
        shutil.rmtree(folder, ignore_errors=True)
    assert not os.path.exists(DIRECTORY) and not left_behind(), left_behind()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
