# SPDX-License-Identifier: Apache-2.0
"""How jobs end on a real Slurm: signals, limits, preemption, requeue, lost nodes. After each ending the next start goes
on with the study to its end, and it is then what it would have been without: deterministic studies, whose logical digest is
compared with that of an undisturbed run."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time

from bed import (DETERMINISTIC_STUDY, DIRECTORY, PATIENCE, PROGRAM, Job, environment, expect, slurm, template)


def running(folder, launcher, nodes, *options, trials=60, requeue="false", seconds=0.3, study=DETERMINISTIC_STUDY, disk=None):
    """60 trials are 20 s of training on one node: enough for whatever acts at once."""
    job = Job(folder, template("cpu"), f"--nodes={nodes}", "--exclusive", *options, trials=trials, seconds=seconds,
              variables={"LAUNCHER": launcher}, requeue=requeue, study=study, disk=disk)
    job.wait_until_training()
    return job


def ending(name, launcher, nodes, act, state, code, reason=None, options=()):
    def case(folder):
        # Slurm looks at times twice a minute.
        trials = 400 * nodes if act in (warn, time_is_up) else 60
        job = running(folder, launcher, nodes, *options, trials=trials, requeue="true" if act in (cancel, stop) else "false")
        act(job)
        expect(job, state, code, exit=75)
        assert job.show("Restarts") == "0"
        assert job.outcome()["resumable"] == "true", job.outcome()
        assert job.outcome()["requeue"] == "no", job.outcome()
        assert reason is None or job.outcome()["reason"] == reason, job.outcome()
        complete(job)
    case.__name__ = f"{name}_{launcher}_{nodes}"
    case.__doc__ = f"{name.replace('_', ' ')}: a clean stop by {launcher} on {nodes} node(s)"
    return case


def trials_of(job):
    done = subprocess.run([PROGRAM, "export", job.study, "--format", "json"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["trials"]


digests = {}  # of undisturbed runs, by study file
one_at_a_time = threading.Lock()


def digest_of(study):
    """The study's results without times, hosts and attempts; the study must be complete and deterministic."""
    done = subprocess.run([PROGRAM, "replay", study, "--verify", "--logical-digest"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr and "verified" in done.stdout, (done.stdout, done.stderr)
    return done.stdout.split()[0]


def undisturbed_digest(file):
    """Of the same study file, run outside Slurm on other ranks, with nothing to wait for in its iterations."""
    with one_at_a_time:
        text = file.read_text()
        if text not in digests:
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([PROGRAM, "run", file, "-o", f"{folder}/study", "-q", "--local", "2", "trainable.seconds=0"],
                                      env=environment, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
                assert done.returncode == 0, done
                digests[text] = digest_of(f"{folder}/study")
        return digests[text]


def check_same(study):
    """The study is complete, and its result equals that of an undisturbed run."""
    assert "exit=0" in (study / "outcome").read_text(), (study / "outcome").read_text()
    got, want = digest_of(study), undisturbed_digest(study.parent / "study.toml")
    assert got == want, f"{study}: the logical digest is {got}, undisturbed {want}"


def complete(job):
    """The next start, by the same command, completes the study."""
    before = trials_of(job)
    assert len(before) < 2 or any(trial["state"] in ("running", "paused", "waiting") for trial in before), "nothing is left to do"
    trained = {trial["id"]: trial["iterations"] for trial in before}
    job.submit()
    expect(job, "COMPLETED", 0, exit=0)
    assert all(trial["iterations"] >= trained.get(trial["id"], 0) for trial in trials_of(job)), "a trial went back"
    assert "resuming layout" in job.log(), job.log()
    check_same(job.study)


def at(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + seconds))


def signal_script(job):
    slurm("scancel", "--batch", "--signal=USR1", job.id)


def signal_script_usr2(job):
    slurm("scancel", "--batch", "--signal=USR2", job.id)


def terminate_script(job):
    slurm("scancel", "--batch", "--signal=TERM", job.id)


def hang_up_script(job):
    slurm("scancel", "--batch", "--signal=HUP", job.id)


def stop(job):
    done = subprocess.run([PROGRAM, "stop", job.study], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "asked host " in done.stdout, done


def stopped_while_it_stops(launcher):
    """USR1, then `ranktune stop` while trials still save: somebody wants no further start, so there is none."""
    def case(folder):
        job = running(folder, launcher, 1, "--requeue", requeue="true", seconds=6)
        signal_script(job)
        job.wait_for("a clean stop under way", lambda: '"draining": true' in (job.study / "status").read_text())
        done = subprocess.run([PROGRAM, "stop", job.study], env=environment, capture_output=True, text=True)
        assert done.returncode == 0 and f"job {job.id} is not queued again" in done.stdout, done
        expect(job, "FAILED", 75, exit=75)
        assert job.outcome()["reason"] == "ranktune stop" and job.outcome()["requeue"] == "no", job.outcome()
        assert job.show("Restarts") == "0"
        done = subprocess.run([PROGRAM, "replay", job.study, "--verify"], env=environment, capture_output=True, text=True)
        assert done.returncode == 0 and "verified" in done.stdout, done
    case.__name__ = f"stopped_while_it_stops_{launcher}"
    return case


def signal_tasks(job):
    slurm("scancel", "--signal=USR1", job.id)


def signal_tasks_usr2(job):
    slurm("scancel", "--signal=USR2", job.id)


def terminate_tasks(job):
    slurm("scancel", "--signal=TERM", job.id)


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


def goes_on(name, launcher, act, trials, requeue="false", nodes=1):
    """`trials` last longer than Slurm takes to act."""
    def case(folder):
        job = running(folder, launcher, nodes, "--requeue", trials=trials, requeue=requeue)
        act(job)

        def second_start():
            assert job.show("JobState") != "COMPLETED", job.log()
            return job.show("Restarts") == "1"
        job.wait_for("the second start", second_start)
        expect(job, "COMPLETED", 0, exit=0)
        if launcher == "srun":  # every trial had its checkpoint
            first = next((job.study / "logs").glob("*start-1.log")).read_text()
            assert re.search(r" leave exit=75 clean=yes ", first), first
        starts = sorted(path.name for path in (job.study / "logs").glob("*.env.json"))
        # Under mpirun on several nodes the ranks end before the script hears of a preemption: supervise may try again.
        assert len(starts) == 2 or nodes > 1 and len(starts) > 2, starts
        check_same(job.study)
    case.__name__ = f"{name}_{launcher}" + (f"_{nodes}" if nodes > 1 else "")
    case.__doc__ = f"{name.replace('_', ' ')}: the same job goes on with the study, to its end"
    return case


def uts(pid):
    """The node of the test bed on which a process runs; empty when it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/uts")
    except OSError:
        return ""


def rank(number):
    def victims(job):
        return [job_processes(job)[number]]
    victims.__name__ = "head" if number == 0 else "worker"
    return victims


def batch_slurmstepd(job):
    """The slurmstepd of the job script."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read().startswith(b"slurmstepd: [" + job.id.encode() + b".batch]"):
                    found.append(int(pid))
        except OSError:
            continue
    return found


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
            if b"--overlap" in title.split(b"\0"):  # looks after the first node, and runs no study
                continue
            if step and b".batch]" not in title and b".extern]" not in title or mine and not title.startswith(b"slurmstepd"):
                found.append(pid)
        return found
    victims.__name__ = names[0]
    return victims


def supervisor(job):
    """Pid of the job's `ranktune supervise`."""
    for pid in named("ranktune")(job):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
        with open(f"/proc/{pid}/stat") as file:
            parent = int(file.read().rsplit(")", 1)[1].split()[1])
        with open(f"/proc/{parent}/comm") as file:
            guardian = file.read().strip() == "ranktune"  # a copy of it
        if words[1:2] == [b"supervise"] and not guardian:
            return pid
    raise AssertionError("no supervise")


def killed(launcher, nodes, victims, last=False, restarts=(1,)):
    """kill -9 of a part of the step: the study goes on in the same job, to its end. `restarts`: how many may be needed; none
    for a worker, which its step outlives."""
    def case(folder):
        job = running(folder, launcher, nodes)
        found = victims(job)
        assert found, "nobody to kill"
        os.kill(found[-1 if last else 0], 9)
        expect(job, "COMPLETED", 0, exit=0)
        log = job.log()
        assert log.count("starting the study again") in restarts, log
        assert " without n" not in log, log  # every node is alive
        assert len(list((job.study / "logs").glob("*.env.json"))) - 1 in restarts
        check_same(job.study)
        end = time.monotonic() + 30
        while job_processes(job) and time.monotonic() < end:
            time.sleep(0.2)
        assert not job_processes(job), job_processes(job)
    case.__name__ = f"killed_{victims.__name__}_{launcher}_{nodes}"
    case.__doc__ = f"kill -9 of {victims.__name__} under {launcher} on {nodes} node(s): the study goes on in the same job"
    return case


def killed_batch_slurmstepd(launcher, nodes):
    """kill -9 of the slurmstepd of the job script: the study goes on to its end. Slurm may not notice that the script is
    over, and the job keeps its nodes until somebody cancels it."""
    def case(folder):
        job = running(folder, launcher, nodes)
        found = batch_slurmstepd(job)
        assert len(found) == 1, found
        os.kill(found[0], 9)
        job.wait_for("the end of the study", lambda: (job.study / "outcome").exists() and job.outcome()["exit"] == "0")
        check_same(job.study)
        end = time.monotonic() + 30
        while job_processes(job) and time.monotonic() < end:
            time.sleep(0.2)
        assert not job_processes(job), job_processes(job)
        slurm("scancel", job.id, check=False)
        job.finish()
    case.__name__ = f"killed_batch_slurmstepd_{launcher}_{nodes}"
    case.__doc__ = f"kill -9 of the job script's slurmstepd under {launcher} on {nodes} node(s): the study goes on to its end"
    return case


def killed_supervise(launcher, nodes):
    """kill -9 of supervise itself: the job ends, nobody stays behind, and the study is resumable."""
    def case(folder):
        job = running(folder, launcher, nodes)
        os.kill(supervisor(job), 9)
        expect(job, "FAILED", 137)
        job.wait_for("the end of the ranks", lambda: not job_processes(job))
        status = subprocess.run([PROGRAM, "status", job.study], env=environment, capture_output=True, text=True)
        assert status.returncode == 0 and "trials" in status.stdout, status
        complete(job)
    case.__name__ = f"killed_supervise_{launcher}_{nodes}"
    case.__doc__ = f"kill -9 of supervise with {launcher} on {nodes} node(s): the job ends with everything in it"
    return case


def interrupted(launcher, nodes, times):
    """INT to supervise, as Ctrl-C of a terminal sends it: a clean stop, and the job is not queued again; the second one:
    at once, although no iteration ends."""
    def case(folder):
        job = running(folder, launcher, nodes, requeue="true", seconds=0.3 if times == 1 else 900)
        victim = supervisor(job)
        os.kill(victim, 2)
        if times > 1:
            job.wait_for("a clean stop under way", lambda: '"draining": true' in (job.study / "status").read_text())
            os.kill(victim, 2)
        expect(job, "FAILED", 75, exit=75)
        assert job.outcome()["cause"] == "asked", job.outcome()
        assert "starting the study again" not in job.log(), job.log()
        assert job.outcome()["reason"] == "Ctrl-C" and job.outcome()["requeue"] == "no", job.outcome()
        assert job.show("Restarts") == "0"
        job.wait_for("the end of the ranks", lambda: not job_processes(job))
        if times == 1:
            complete(job)
    case.__name__ = f"interrupted_{'once' if times == 1 else 'twice'}_{launcher}_{nodes}"
    case.__doc__ = f"INT {times} time(s) with {launcher} on {nodes} node(s)"
    return case


def slurmd_of(node):
    return int((pathlib.Path(DIRECTORY) / f"slurmd.{node}.pid").read_text())


def nodes_of(job):
    return slurm("scontrol", "show", "hostnames", job.show("NodeList")).split()


def take_down(node):
    """Kills everything on the node, including its slurmd. All of it stops first: an srun that outlives another one cancels its step.
    Then the children die before their parents: the kernel wakes stopped ones by SIGHUP when their parent has died, and srun and
    orted would pass that on to other nodes."""
    home = uts(slurmd_of(node))
    assert home and home != uts(os.getpid())
    stopped = set()
    while found := {pid for pid in filter(str.isdigit, os.listdir("/proc")) if uts(pid) == home} - stopped:
        for pid in found:
            send(pid, signal.SIGSTOP)
        stopped |= found
    for pid in sorted(stopped, key=begin_of, reverse=True):
        send(pid, signal.SIGKILL)
        while (facts := stat_of(pid)) and facts[0] not in "ZX":
            time.sleep(0.001)


def send(pid, number):
    try:
        os.kill(int(pid), number)
    except ProcessLookupError:
        pass


def stat_of(pid):
    """The fields of /proc/PID/stat from the state on; none: it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


def begin_of(pid):
    facts = stat_of(pid)
    return (int(facts[19]) if facts else 0, int(pid))


def node_down(launcher):
    """The job's second node dies: the study goes on with the first one, after the silence of the lost ranks."""
    def case(folder):
        job = running(folder, launcher, 2)
        node = nodes_of(job)[-1]
        take_down(node)
        expect(job, "COMPLETED", 0, exit=0)
        assert len(list((job.study / "logs").glob("*.env.json"))) == 1, job.log()
        assert job.show("Restarts") == "0"
        check_same(job.study)
    case.__name__ = f"node_down_{launcher}"
    case.__doc__ = f"a node dies under {launcher}: the job goes on with the others"
    case.alone = True  # it takes the node away from every other job
    return case


def early_signal(folder):
    """A signal to the script before it starts the study: it ends with 75 and says so, and the next job runs the study."""
    slow = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "ranktune"
    slow.write_text(f'#!/bin/bash\nif [ $1 = hosts ]; then touch "{slow.parent}/begun"; sleep 3; fi\nexec {PROGRAM} "$@"\n')
    slow.chmod(0o755)
    job = Job(folder, template("cpu"), "--nodes=1", variables={"PATH": f"{slow.parent}:{environment['PATH']}"})
    job.wait_for("the list of hosts", (slow.parent / "begun").exists)
    signal_script_usr2(job)
    expect(job, "FAILED", 75)
    assert "SIGUSR2 came before the study was started" in job.log(), job.log()
    assert not job.study.exists()
    job.submit()
    expect(job, "COMPLETED", 0, exit=0)


def without_slurm_programs(launcher):
    """The compute nodes have none of Slurm's programs but srun: the templates run the study on all nodes, and end it."""
    def case(folder):
        fakes = pathlib.Path(tempfile.mkdtemp(dir=folder))
        for name in ("scontrol", "squeue", "scancel", "sinfo"):
            (fakes / name).write_text(f"#!/bin/sh\necho '{name}: command not found' >&2; exit 127\n")
            (fakes / name).chmod(0o755)
        job = Job(folder, template("cpu"), "--nodes=2", "--exclusive", trials=60, seconds=0.3, study=DETERMINISTIC_STUDY,
                  variables={"LAUNCHER": launcher, "PATH": f"{fakes}:{environment['PATH']}"})
        job.wait_until_training()
        assert [len(ranks) for ranks in job.layout().values()] == [5, 4], job.layout()
        signal_script(job)
        expect(job, "FAILED", 75, exit=75)
        complete(job)
    case.__name__ = f"without_slurm_programs_{launcher}"
    case.__doc__ = without_slurm_programs.__doc__
    return case


def first_node_down(launcher, nodes):
    """The node of the job script and of the head dies: Slurm queues the job again, and it takes the study over on others."""
    def case(folder):
        job = running(folder, launcher, nodes, "--requeue")
        first = nodes_of(job)[0]
        take_down(first)
        job.wait_for("the second start", lambda: job.show("Restarts") == "1" and job.show("JobState") != "PENDING")
        assert first not in nodes_of(job), nodes_of(job)
        expect(job, "COMPLETED", 0, exit=0)
        assert "resuming layout" in job.log(), job.log()
        check_same(job.study)
    case.__name__ = f"first_node_down_{launcher}_{nodes}"
    case.__doc__ = f"the first of {nodes} node(s) dies under {launcher}: the job is queued again, and goes on elsewhere"
    case.alone = True  # it takes the node away from every other job
    return case


def out_of_time(launcher):
    """No signal comes: the head knows when the job ends, stops in time, and the job goes back into the queue."""
    def case(folder):
        job = running(folder, launcher, 1, "--requeue", "--time=2", "--signal=B:URG@1", trials=800, requeue="true")
        job.wait_for("an end by itself", lambda: (job.study / "outcome").exists() and job.outcome()["exit"] == "75")
        assert job.outcome()["reason"].startswith("deadline: the job has "), job.outcome()
        job.wait_for("the second start", lambda: job.show("Restarts") == "1")
        assert job.outcome()["requeue"] == "yes", job.outcome()
        slurm("scancel", job.id)
        job.finish()
        complete(job)
    case.__name__ = f"out_of_time_{launcher}"
    case.__doc__ = f"the time of a job by {launcher} is up, and nothing says so"
    return case


def array(folder):
    """Tasks of a job array, each with its own study; one is stopped by a signal and requeued as <array>_<task>."""
    script = f'#!/bin/bash\nexec bash {template("cpu")} study.toml -o study-$SLURM_ARRAY_TASK_ID\n'
    job = Job(folder, script, "--array=1-2", "--nodes=1", "--ntasks-per-node=3", "--requeue", "--open-mode=append",
              trials=60, seconds=0.3, requeue="true", study=DETERMINISTIC_STUDY)
    job.study = job.folder / "study-2"
    task = f"{job.id}_2"
    job.wait_for("reports", lambda: '"reports": 0' not in (job.study / "status").read_text()
                 if (job.study / "status").exists() else False)
    slurm("scancel", "--signal=USR1", task)
    job.wait_for("the second start", lambda: "Restarts=1" in slurm("scontrol", "show", "job", task))
    assert job.outcome()["requeue"] == "yes", job.outcome()
    job.wait_for("the end of both", lambda: all(
        (job.folder / f"study-{i}" / "outcome").exists() and
        "exit=0" in (job.folder / f"study-{i}" / "outcome").read_text() for i in (1, 2)))
    assert "Restarts=0" in slurm("scontrol", "show", "job", f"{job.id}_1")
    for i in (1, 2):
        check_same(job.folder / f"study-{i}")


def array_first_node_down(folder):
    """The first node of an array's last task dies. Its SLURM_JOB_ID is the number of the whole array: it alone is queued
    again, and not the task that is done."""
    script = (f'#!/bin/bash\nset -- study.toml -o "study-$SLURM_ARRAY_TASK_ID"\n'
              f'[ "$SLURM_ARRAY_TASK_ID" = 2 ] || set -- "$@" study.num_trials=4\nexec bash {template("cpu")} "$@"\n')
    job = Job(folder, script, "--array=1-2%1", "--nodes=2", "--ntasks-per-node=3", "--exclusive", "--requeue", "--open-mode=append", trials=60,
              seconds=0.3, study=DETERMINISTIC_STUDY)
    job.study = job.folder / "study-2"
    job.wait_for("trials of the second task", lambda: (job.study / "status").exists() and
                 re.search(r'"running": [1-9]', (job.study / "status").read_text()))
    assert job.show("JobId", "_2") == job.id  # what makes it the case that it is
    assert job.show("JobState", "_1") == "COMPLETED"
    first = slurm("scontrol", "show", "hostnames", job.show("NodeList", "_2")).split()[0]
    take_down(first)
    job.wait_for("the second start", lambda: job.show("Restarts", "_2") == "1" and job.show("JobState", "_2") != "PENDING")
    job.wait_for("the end", lambda: job.show("JobState", "_2") == "COMPLETED")
    assert job.show("Restarts", "_1") == "0" and job.show("JobState", "_1") == "COMPLETED"
    assert job.outcome()["exit"] == "0", job.outcome()
    check_same(job.study)


array_first_node_down.alone = True


def hostile(folder):
    """Slurm's programs on the compute node print nonsense: the study runs, stops on a signal, and says what to do."""
    fakes = pathlib.Path(tempfile.mkdtemp(dir=folder))
    for name, text in (("squeue", "head -c 100000 /dev/urandom"),
                       ("scontrol", "[ $1 = show ] || { echo 'disabled here' >&2; exit 1; }\n"
                                    "echo JobId=1 JobState=HIBERNATING RunTime=? TimeLimit=Partition_Limit Requeue=maybe")):
        (fakes / name).write_text(f"#!/bin/sh\n{text}\n")
        (fakes / name).chmod(0o755)
    script = f"#!/bin/bash\n#SBATCH --nodes=1 --ntasks=3\nPATH={fakes}:$PATH srun --mpi=pmix {PROGRAM} run \"$@\"\n"
    job = Job(folder, script, trials=60, seconds=0.3, requeue="true", study=DETERMINISTIC_STUDY)
    job.wait_until_training()
    slurm("scancel", "--signal=USR1", job.id)
    expect(job, "FAILED", 75, exit=75)
    assert job.outcome()["requeue"] == "failed", job.outcome()
    said = " ".join(job.log().split())
    assert "submit the job again" in said and "disabled here" in said, job.log()
    head_log = next(path for path in (job.study / "logs").glob("*start-1.log")).read_text()
    assert "left_s=unknown" in head_log, head_log
    complete(job)


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
    found = [ending("signal_to_the_script", launcher, 1, signal_script, "FAILED", 75) for launcher in ("srun", "mpirun")]
    return found + [
        ending("signal_to_the_tasks", "srun", 2, signal_tasks, "FAILED", 75),
        ending("signal_to_the_tasks", "mpirun", 2, signal_tasks, "FAILED", 75),
        ending("signal_usr2_to_the_tasks", "srun", 1, signal_tasks_usr2, "FAILED", 75, reason="SIGUSR2"),
        ending("term_to_the_tasks", "srun", 1, terminate_tasks, "FAILED", 75, reason="SIGTERM"),
        ending("warned_tasks", "srun", 1, warn, "FAILED", 75, options=["--signal=USR1@120"]),
        ending("cancelled", "srun", 1, cancel, "CANCELLED", 75),
        ending("warned", "srun", 1, warn, "FAILED", 75),
        ending("warned", "mpirun", 1, warn, "FAILED", 75),
        ending("signal_to_the_script", "mpirun", 2, signal_script, "FAILED", 75),
        ending("warned", "mpirun", 2, warn, "FAILED", 75),
        ending("cancelled", "mpirun", 1, cancel, "CANCELLED", 75),
        ending("cancelled", "mpirun", 2, cancel, "CANCELLED", 75),
        ending("time_is_up", "srun", 1, time_is_up, "TIMEOUT|FAILED", 75),  # FAILED: over before Slurm counted it
        goes_on("preempted", "srun", preempt, 40),
        goes_on("preempted", "mpirun", preempt, 100),
        goes_on("preempted", "mpirun", preempt, 200, nodes=2),
        goes_on("requeued_in_time", "srun", warn, 200, requeue="true"),
        *(ending("signal_usr2_to_the_script", launcher, nodes, signal_script_usr2, "FAILED", 75, reason="SIGUSR2")
          for launcher, nodes in (("srun", 1), ("mpirun", 2))),
        ending("hung_up", "srun", 1, hang_up_script, "FAILED", 75, reason="SIGHUP"),
        *(ending("term_to_the_script", launcher, nodes, terminate_script, "FAILED", 75, reason="SIGTERM")
          for launcher, nodes in (("srun", 2), ("mpirun", 1))),
        *(ending("stop_verb", launcher, nodes, stop, "FAILED", 75, reason="ranktune stop")
          for launcher, nodes in (("srun", 1), ("srun", 2), ("mpirun", 1), ("mpirun", 2))),
        stopped_while_it_stops("srun"), stopped_while_it_stops("mpirun"),
        early_signal, without_slurm_programs("srun"), without_slurm_programs("mpirun"),
        goes_on("requeued_in_time", "mpirun", warn, 200, requeue="true"), out_of_time("srun"), out_of_time("mpirun"), array, hostile,
        *(case for launcher in ("srun", "mpirun") for case in (
            killed(launcher, 1, rank(0)), killed(launcher, 2, rank(0)), killed(launcher, 1, rank(3), restarts=(0,)),
            killed(launcher, 2, rank(3), restarts=(0,)), killed_supervise(launcher, 2), interrupted(launcher, 2, 1),
            interrupted(launcher, 2, 2))),
        killed("srun", 2, named("srun")),
        # Ranks whose slurmstepd is gone keep running; Slurm notices late.
        killed("srun", 2, named("slurmstepd"), last=True, restarts=(0, 1)), killed("mpirun", 2, named("slurmstepd"), restarts=(0, 1)),
        killed_batch_slurmstepd("srun", 2), killed_batch_slurmstepd("mpirun", 1), killed_batch_slurmstepd("mpirun", 2),
        killed("mpirun", 1, named("mpirun", "mpirun.openmpi", "orterun")),
        killed("mpirun", 2, named("mpirun", "mpirun.openmpi", "orterun")),
        killed("mpirun", 2, named("orted")),
        node_down("srun"), node_down("mpirun"), first_node_down("srun", 2), first_node_down("mpirun", 1), first_node_down("mpirun", 2),
        array_first_node_down,
    ]
