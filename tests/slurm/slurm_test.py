#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The job scripts of slurm/ on a real Slurm of three nodes: who runs where with which GPUs, how jobs end, what is refused.

    slurm_test.py RANKTUNE SOURCE_ROOT [CASE... | --list]

Starts a test bed of its own (tools/slurm-testbed) and stops it. Exits with 77, and says why, where there is no Slurm.
Cases run at the same time, as far as the nodes allow: Slurm sorts that out.
"""
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import beside
import chains
import endings
import faults
from bed import (DIRECTORY, GPUS, NODES, PROGRAM, PROGRAM_STUDY, SOURCES, STUDY, TESTBED, TUTORIAL_PATIENCE, Job, environment, expect,
                 expected_layout, template)

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
        trials = []
        for trial in range(12):
            ranks = [json.loads((job.folder / f"seen-{trial}-{rank}.json").read_text()) for rank in (0, 1)]
            devices = ranks[0]["CUDA_VISIBLE_DEVICES"].split(",")
            assert len(set(devices)) == 2 and set(devices) <= set("0123"), ranks
            for rank, seen in enumerate(ranks):
                assert (seen["RANK"], seen["LOCAL_RANK"], seen["WORLD_SIZE"]) == (str(rank), str(rank), "2"), seen
                assert seen["CUDA_VISIBLE_DEVICES"].split(",") == devices and seen["launcher"] == [], seen
                assert seen["ROCR_VISIBLE_DEVICES"] is None and seen["ENVIRONMENT"] != "BATCH", seen
            trials.append(ranks)
        # Several at a time on each node, and then no two of them on the same device.
        together = 0
        for one, other in itertools.combinations(trials, 2):
            apart = any(a["ended"] < b["began"] for a, b in itertools.product(one, other)) or \
                any(b["ended"] < a["began"] for a, b in itertools.product(one, other))
            if apart or one[0]["node"] != other[0]["node"]:
                continue
            together += 1
            devices = [set(ranks[0]["CUDA_VISIBLE_DEVICES"].split(",")) for ranks in (one, other)]
            assert not devices[0] & devices[1], (one, other)
        assert together > 0, trials
    case.__name__ = f"gpu_programs_{launcher}"
    case.__doc__ = "trials of two ranks see the two GPUs of their ranks, and LOCAL_RANK picks one"
    return case


def gpus_for_some(launcher):
    def case(folder):
        study = PROGRAM_STUDY.replace("[space]\n", "[space]\ngpus = [0, 1, 2]\n")
        job = Job(folder, template("gpu"), "--nodes=2", "--nodelist=n[1-2]", "--ntasks-per-node=6", study=study,
                  resources='ranks = 2\ngpus = "{gpus}"', variables={"LAUNCHER": launcher})
        expect(job, "COMPLETED", 0, exit=0)
        done = subprocess.run([PROGRAM, "export", "study", "--format", "json"], cwd=job.folder, capture_output=True, text=True, check=True)
        wanted = [trial["configuration"]["gpus"] for trial in json.loads(done.stdout)["trials"]]
        assert set(wanted) == {0, 1, 2}, wanted
        for trial, gpus in enumerate(wanted):
            seen = json.loads((job.folder / f"seen-{trial}-0.json").read_text())
            devices = [device for device in (seen["CUDA_VISIBLE_DEVICES"] or "").split(",") if device]
            assert (len(devices), seen["WORLD_SIZE"]) == (gpus, str(gpus or 2)), (gpus, seen)
    case.__name__ = f"gpus_for_some_{launcher}"
    case.__doc__ = "trials with GPUs, and trials on the workers that have none"
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
        assert (seen["LOCAL_WORLD_SIZE"], seen["GROUP_WORLD_SIZE"]) == ("1", "2"), seen


def shared_gpu_program(folder):
    """A study of programs that says nothing about GPUs, in a job where two trials would use the same one."""
    job = Job(folder, template("gpu"), "--ntasks-per-node=6", study=PROGRAM_STUDY)
    expect(job, "FAILED", 2)
    assert "two trials would use the same GPU" in job.log() and "resources.gpus = 0" in job.log(), job.log()


# ---- what is refused ------------------------------------------------------------------------------------------------

def with_gpus(directive):
    """The template for GPUs with another way of asking for them."""
    text = template("gpu").read_text()
    assert "#SBATCH --gpus-per-node=4\n" in text
    return text.replace("#SBATCH --gpus-per-node=4\n", f"#SBATCH {directive}\n")


def gpus_of_the_job(launcher):
    def case(folder):
        job = Job(folder, with_gpus("--gpus=8"), "--nodes=2", "--nodelist=n[1-2]", resources="gpus = 2",
                  variables={"LAUNCHER": launcher})
        expect(job, "COMPLETED", 0, exit=0)
        want = expected_layout(2, 4, True)
        assert job.layout() == want, f"{job.layout()}\nnot {want}"
    case.__name__ = f"gpus_of_the_job_{launcher}"
    case.__doc__ = f"--gpus=8 on two nodes, by {launcher}"
    return case


def gpus_by_task(folder):
    """--gpus-per-task leaves none for the step's last task: the script says what to ask for."""
    job = Job(folder, with_gpus("--gpus-per-task=1"), resources="gpus = 2")
    expect(job, "FAILED", 2)
    assert "(--gpus-per-task): #SBATCH --gpus-per-node=4" in job.log(), job.log()
    assert not job.study.exists()


def shared_gpu(folder):
    """More workers than GPUs are refused with the line that mends it."""
    job = Job(folder, template("gpu"), "--ntasks-per-node=6", resources="gpus = 2")
    expect(job, "FAILED", 2)
    assert re.search(r"n\d: 6 workers for 4 GPUs \(CUDA_VISIBLE_DEVICES=0,1,2,3\), so that two would use one; start one "
                     r"worker for each GPU: #SBATCH --ntasks-per-node=4", job.log()), job.log()
    assert not job.study.exists()


def no_gpu(folder):
    """A study that needs GPUs, in a job without any."""
    job = Job(folder, template("cpu"), resources="gpus = 2")
    expect(job, "FAILED", 2)
    assert re.search(r"n\d: no GPU was granted; ask for one per worker: #SBATCH --gpus-per-node=4", job.log()), job.log()


def side_tasks(folder):
    """A worker that does a side task is killed under srun; the study goes on, in this step or the next, and does each task once."""
    study = STUDY.replace("{resources}", "{resources}\nhelpers = 1") + """[before]
command = 'echo before >> ran; test "$(wc -l < ran)" -gt 1 || kill -9 $PPID; sleep 1'
[after_trial]
command = 'test -s {{checkpoint}} && echo after {{trial}} >> ran'
[after]
command = 'echo after >> ran'
"""
    script = f"#!/bin/bash\n#SBATCH --nodes=1 --ntasks=4\n{PROGRAM} supervise -- srun --mpi=pmix -n4 {PROGRAM} run study.toml -o study\n"
    job = Job(folder, script, trials=4, study=study.replace('type = "asha"', 'type = "fifo"'))
    expect(job, "COMPLETED", 0, exit=0)
    ran = (job.folder / "ran").read_text().splitlines()
    assert ran[:2] == ["before"] * 2 and ran[-1] == "after", ran
    assert sorted(ran[2:-1]) == [f"after {trial}" for trial in range(4)], ran


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


# ---- all of them ----------------------------------------------------------------------------------------------------

class Skipped(Exception):
    """This machine cannot run the case; holds the reason."""


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


def tutorial_job(folder):
    """The line of the tutorial's section 6, as it stands there."""
    if subprocess.run(["/usr/bin/python3", "-c", "import h5py, torch"], capture_output=True).returncode != 0:
        raise Skipped("no PyTorch and h5py for /usr/bin/python3")
    page = (SOURCES / "docs/tutorials/pytorch.md").read_text()
    ((options, script),) = re.findall(r"^sbatch (.*) \S*/slurm/(\w+\.sbatch) pytorch\.toml\b", page, re.M)
    root = pathlib.Path(tempfile.mkdtemp(dir=folder))
    for part in ("pytorch", "digits"):
        shutil.copytree(SOURCES / "jobs" / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "bin").mkdir()
    (root / "bin" / "python3").symlink_to("/usr/bin/python3")
    job = Job(folder, SOURCES / "slurm" / script, *options.split(), f"--chdir={root / 'pytorch'}", arguments=["pytorch.toml"],
              variables={"PATH": f"{root / 'bin'}:{pathlib.Path(PROGRAM).parent}:{environment['PATH']}"})
    job.study = root / "pytorch" / "pytorch"
    state, code = job.finish(TUTORIAL_PATIENCE)
    assert (state, code) == ("COMPLETED", 0), f"{state} {code}\n{job.log()}"
    assert job.outcome()["exit"] == "0" and "18 trials, 18 ok, 0 failed" in job.log(), job.log()
    assert sum(map(len, job.layout().values())) == 9 and len(job.layout()) == 2, job.layout()


def tutorial_slurm(folder):
    """docs/tutorials/slurm.md, word for word: a study is submitted, stopped, submitted again, and complete."""
    sys.path.insert(0, str(SOURCES / "tests" / "tutorials"))
    import follow
    page = (SOURCES / "docs/tutorials/slurm.md").read_text()
    root = pathlib.Path(tempfile.mkdtemp(dir=folder))
    follow.write_files(page, root)
    said = follow.shell("".join(text for kind, _, text in follow.blocks(page) if kind == "sh"), root, environment)
    outcome = dict(line.split("=", 1) for line in (root / "demo" / "outcome").read_text().splitlines())
    assert (outcome["exit"], outcome["start"]) == ("0", "2"), f"{outcome}\n{said}"
    assert len((root / "trials.csv").read_text().splitlines()) == 61, said


def cases():
    found = [layout_case(name, launcher, nodes)
             for nodes in (1, 2, 3) for name in ("cpu", "gpu") for launcher in ("srun", "mpirun")]
    found += [all_cores("srun"), all_cores("mpirun"), gpu_forms, gpus_for_some("srun"), gpus_for_some("mpirun"), gpu_programs("srun"),
              gpu_programs("mpirun"), gpu_private_names, gpus_of_the_job("srun"), gpus_of_the_job("mpirun"), gpus_by_task, shared_gpu, shared_gpu_program, no_gpu, side_tasks, broken_launch("none"),
              broken_launch("pmi2")]
    return found + endings.cases() + beside.cases() + chains.cases() + faults.cases() + [tutorial, tutorial_job, tutorial_slurm]


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
    if sys.argv[3:] == ["--list"]:
        print("\n".join(case.__name__ for case in cases()))
        return 0
    if reason := unavailable():
        print(f"skipped: {reason}")
        return 77
    wanted = [case for case in cases() if len(sys.argv) <= 3 or case.__name__ in sys.argv[3:]]
    assert wanted, "no such case"
    folder = tempfile.mkdtemp(prefix="ranktune-slurm-")
    good = True
    try:
        faults.mount_disks(folder)
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
        faults.unmount_disks()
        shutil.rmtree(folder, ignore_errors=True)
    assert not os.path.exists(DIRECTORY) and not left_behind(), left_behind()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
