#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs as trials under mpirun: real ranks, real processes. Each case runs a study whose trials are programs, some of
which misbehave, and checks the journal and that no process, file or shared memory stays behind.

    programs.py PROGRAM MPI_TRIAL -- LAUNCHER ARGUMENTS...        (both are programs of this folder)
"""
import json
import os
import re
import signal
import sys

import study_case

STUDY = """
[study]
name = "programs"
metric = "score"
mode = "max"
num_trials = {trials}
max_iterations = 9
seed = 1
[trainable]
command = '{command}'
{keys}
[resources]
ranks = {ranks}
{resources}
[searcher]
type = "random"
[space]
lr = "loguniform(1e-4, 1.0)"
{space}
[scheduler]
type = "{scheduler}"
[failure]
tolerate = 1.0
report_timeout = "20s"
[run]
abort_grace = "4s"
heartbeat_timeout = "10s"
"""

TRIAL = r"""
import json, os, signal, socket, subprocess, sys, time
what = dict(word[2:].split("=", 1) for word in sys.argv[1:])
link = socket.socket(fileno=int(os.environ["RANKTUNE_FD"])).makefile("rw")
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
last = rank == size - 1
folder = os.environ["RANKTUNE_CHECKPOINT_DIR"]
leaked = [name for name in os.environ if name.startswith(("OMPI_", "PMIX_", "PMI_", "SLURM_"))]
assert not leaked, leaked
held = {int(name) for name in os.listdir("/proc/self/fd")}
held = {fd for fd in held if os.path.exists(f"/proc/self/fd/{fd}")}  # but for the one that listed them
assert held == {0, 1, 2, 3}, held
total = int(open(os.environ["RANKTUNE_CHECKPOINT"]).read()) if "RANKTUNE_CHECKPOINT" in os.environ else 0
for iteration in range(int(os.environ["RANKTUNE_ITERATION"]) + 1, 10):
    total += iteration
    time.sleep(float(what.get("seconds", 0.01)))
    path = os.path.join(folder, "state")
    if rank == 0:
        open(path, "w").write(str(total))
    deed = what.get("deed", "none")
    if what.get("deed") == "freeze" and iteration == 2:
        signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)
    if last and iteration == 2:
        if deed == "crash": raise ValueError("no data")
        if deed == "segv": os.kill(os.getpid(), signal.SIGSEGV)
        if deed == "hang": signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)
    if deed == "flood": print("x" * 100 + "\n" * 2000, file=sys.stderr)
    if deed in ("family", "group"):
        subprocess.Popen(["sleep", "1000"], start_new_session=deed == "family" and iteration % 2 == 0)
    score = total * (1 + float(what["lr"]))
    link.write(json.dumps({"report": {"score": score} if rank == 0 else {}, "checkpoint": path}) + "\n")
    link.flush()
    if deed == "deaf": continue
    decision = json.loads(link.readline())
    assert decision["iteration"] == iteration
    print("iteration", iteration, decision["decision"], "total", total)
    if decision["decision"] != "continue":
        sys.exit(0)
"""
# Writes down where it may run, and waits for the file `go` before it reports.
CPUS = """
sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status >cpus.new && mv cpus.new cpus
while [ ! -e go ]; do sleep 0.05; done
echo '{"report": {"score": 1}}' >&$RANKTUNE_FD
"""
PATIENCE = 300  # seconds; a guard against waiting for ever
SHM = "/dev/shm"


class Study(study_case.Study):
    def __init__(self, program, launcher, command=None, trials=12, ranks=2, scheduler="asha", space="", keys="", extra=(),
                 resources="", processes=5):
        text = STUDY.format(command=command or "/usr/bin/python3 -S trial.py {args}", trials=trials, ranks=ranks,
                            scheduler=scheduler, space=space, keys=keys, resources=resources)
        report = 'echo "{\\"report\\": {\\"score\\": $1}}" >&$RANKTUNE_FD\n'
        super().__init__(program, launcher, text, [("trial.py", TRIAL), ("report.sh", report), ("cpus.sh", CPUS)], extra,
                         PATIENCE, processes)


def check_nothing_left(study):
    attempts = os.path.join(study.directory, "attempts")
    assert not os.path.exists(attempts), os.listdir(attempts)


def promoted(make):
    """Trials of two ranks are paused and promoted from their own checkpoints."""
    study = make()
    code, output = study.finish()
    assert code == 0, output
    journal = study.journal()
    assert journal["trials"] == 12 and journal["failed"] == 0 and journal["finished"] + journal["stopped"] == 12, journal
    log = study.log()
    assert "| iteration 1 pause total 1" in log, log
    assert "| iteration 3 " in log and "total 6" in log, log  # went on from the checkpoint of iteration 1
    check_nothing_left(study)
    kept = os.listdir(os.path.join(study.directory, "checkpoints"))
    assert len(kept) == 1, kept  # of the best trial


def mischief(make):
    """Programs that crash, segfault, hang, flood their pipes, ignore decisions and start families cost their own trials."""
    deeds = ["none", "crash", "segv", "flood", "deaf", "family"]
    study = make(space=f'deed = "grid({deeds})"', trials=24, ranks=2)
    code, output = study.finish()
    assert code == 0, output
    journal = study.journal()
    assert journal["ended"] == 1 and journal["trials"] == 24, journal
    # Only trials that got as far as iteration 2 could fail.
    assert journal["finished"] + journal["stopped"] + journal["failed"] == 24, journal
    check_nothing_left(study)


def crashes_fail(make):
    """Without a rung before it every crash is a failed trial, with its last words; the ranks serve all trials."""
    study = make(space='deed = "grid([\'crash\', \'segv\', \'none\'])"', trials=9, scheduler="fifo")
    code, output = study.finish()
    assert code == 0, output
    journal = study.journal()
    assert journal["failed"] == 6 and journal["finished"] + journal["stopped"] == 3, journal
    log = study.log()
    assert "exit code 1: ValueError: no data" in log, log
    assert "killed by signal 11 (Segmentation fault)" in log, log
    check_nothing_left(study)


def hanging(make):
    """Programs that ignore TERM and hang: on all ranks, which fails after the time-out for reports; on one, which is waited
    for a little once rank 0 has made all of its reports, which count."""
    study = make(space='deed = "grid([\'freeze\', \'hang\', \'none\'])"', trials=3, scheduler="fifo",
                 keys="[trainable.env]\nX = 1")
    code, output = study.finish()
    assert code == 0, output
    journal = study.journal()
    assert journal["failed"] == 1 and journal["finished"] == 2, journal
    log = study.log()
    assert "no sign of progress for 20s" in log, log
    assert "in vain for rank 1 (report 2)" in log, log
    check_nothing_left(study)


def shared_memory():
    """Names in /dev/shm but for those of MPI and of launchers, which may belong to another job."""
    names = os.listdir(SHM) if os.path.isdir(SHM) else []
    return {name for name in names if not name.startswith(("vader_segment", "psm", "ucx", "sm_segment", "ranktune-"))}


def many(make):
    """Two hundred trials leave no shared memory and no process."""
    before = shared_memory()
    study = make(command="/bin/sh report.sh {lr}", trials=200, ranks=1, scheduler="fifo")
    code, output = study.finish()
    assert code == 0, output
    journal = study.journal()
    assert journal["finished"] + journal["stopped"] == 200, journal
    assert not shared_memory() - before, shared_memory() - before
    check_nothing_left(study)


def clean_stop(make):
    """The end of a job pauses programs with their checkpoints."""
    study = make(space="seconds = 0.7", trials=100, scheduler="fifo")
    study.wait_for("a report", lambda: "| iteration 2" in study.log())
    study.process.send_signal(signal.SIGUSR1)
    code, output = study.finish()
    assert code == 75, (code, output)
    journal = study.journal()
    assert journal["ended"] == 1 and journal["running"] == 0 and journal["waiting"] == 2, journal
    assert len(os.listdir(os.path.join(study.directory, "checkpoints"))) == 2
    check_nothing_left(study)


def killed_worker(make):
    """kill -9 of a worker: its program dies with it, and what that has started, in its process group and outside."""
    study = make(space='seconds = 0.7\ndeed = "family"', trials=100, scheduler="fifo")
    study.wait_for("a report", lambda: "| iteration 2" in study.log())
    os.kill(study.ranks()[3], signal.SIGKILL)
    code, _ = study.finish()
    assert code != 0


def killed_all(make):
    """kill -9 of the launcher and all ranks at once: what programs have started in sessions of their own ends, too."""
    study = make(space='seconds = 0.7\ndeed = "family"', trials=100, scheduler="fifo")
    study.wait_for("a report", lambda: "| iteration 2" in study.log())
    for pid in [study.process.pid, *study.ranks().values()]:
        os.kill(pid, signal.SIGKILL)
    study.finish()


def mpi_program(make):
    """A program that initialises MPI itself is a job of one rank."""
    study = make(command=os.path.abspath(sys.argv[2]), trials=4, ranks=1, scheduler="fifo")
    code, output = study.finish()
    assert code == 0, output + study.log()
    assert study.journal()["failed"] == 0, study.log()


def allowed(pid):
    """The processors that a process may use, as a set."""
    with open(f"/proc/{pid}/status") as file:
        line = next(line for line in file if line.startswith("Cpus_allowed_list:"))
    return listed(line.split(":")[1])


def listed(text):
    """0-2,5 as a set."""
    ranges = [part.split("-") for part in text.strip().split(",")]
    return {cpu for part in ranges for cpu in range(int(part[0]), int(part[-1]) + 1)}


def bound(make):
    """Head and worker share out the processors that both were granted, and a program runs where its rank may. Without
    bind = "cores" all of them may run anywhere, because this machine is not theirs alone."""
    granted = os.sched_getaffinity(0)
    for bind in ("cores", "auto"):
        study = make(command="/bin/sh cpus.sh", trials=1, ranks=1, scheduler="fifo", resources=f'bind = "{bind}"', processes=2)
        seen = os.path.join(study.base, "cpus")
        study.wait_for("a program that runs", lambda: os.path.exists(seen))
        with open(seen) as file:
            program = listed(file.read())
        ranks = study.ranks()
        head, worker = allowed(ranks[0]), allowed(ranks[1])
        with open(os.path.join(study.base, "go"), "w"):
            pass
        code, output = study.finish()
        assert code == 0, output
        if bind == "auto" or len(granted) == 1:
            assert head == worker == program == granted, (head, worker, program, granted)
        else:
            assert worker == program and head | worker == granted and not head & worker, (head, worker, program)
            assert re.search(r'I bind bound=2 ranks=2 how="\S+: \d+ cores split: 1 for the head, ', study.log()), study.log()
            with open(os.path.join(study.directory, "logs", "start-1.env.json")) as file:
                [node] = json.load(file)["layout"]
            assert [listed(cpus) for cpus in node["cpus"]] == [head, worker], node


def main():
    split = sys.argv.index("--")
    program, launcher = os.path.abspath(sys.argv[1]), sys.argv[split + 1:]
    cases = [promoted, mischief, crashes_fail, hanging, many, clean_stop, killed_worker, killed_all, mpi_program, bound]
    failed = study_case.run_cases(cases, sys.argv[3:split], lambda **options: Study(program, launcher, **options))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
