# SPDX-License-Identifier: Apache-2.0
"""What trials and disks do to jobs over several nodes: user code that throws, crashes or hangs, and a file system that is full."""
import os
import pathlib
import re
import subprocess

from bed import DETERMINISTIC_STUDY, STUDY, Job, environment, expect, template
from endings import check_same, complete, rank, running, trials_of

NODES = 2
LAUNCHERS = ("srun", "mpirun")
disks = {}  # by launcher: small file systems, mounted before the nodes of the test bed were there


def named(case, name, launcher):
    case.__name__ = f"{name}_{launcher}_{NODES}"
    return case


def thrown(launcher):
    def case(folder):
        """Half of the trials throw: they fail, and the study's result is the same as anywhere."""
        study = (DETERMINISTIC_STUDY + "[failure]\ntolerate = 0.9\n").replace("seconds =", "fail_rate = 0.5\nfail_iteration = 1\nseconds =")
        job = Job(folder, template("cpu"), f"--nodes={NODES}", "--exclusive", variables={"LAUNCHER": launcher}, study=study, trials=20)
        expect(job, "COMPLETED", 0, exit=0)
        failed = [trial for trial in trials_of(job) if trial["state"] == "failed"]
        assert 4 <= len(failed) <= 16, failed
        assert all("curve was told to fail" in trial["message"] for trial in failed), failed
        assert "starting the study again" not in job.log(), job.log()
        check_same(job.study)
    return named(case, "thrown", launcher)


def crashed(launcher):
    def case(folder):
        """A rank crashes in user code: it leaves a note, the step outlives it, and the trial is charged and retried."""
        job = running(folder, launcher, NODES, study=DETERMINISTIC_STUDY + "[failure]\nmax_failures = 3\n")
        (victim,) = rank(1)(job)
        os.kill(victim, 11)
        expect(job, "COMPLETED", 0, exit=0)
        assert "starting the study again" not in job.log(), job.log()
        notes = "".join(path.read_text() for path in (job.study / "logs").glob("crash-1-*"))
        assert "signal 11" in notes, notes
        workers = "".join(path.read_text() for path in (job.study / "logs").glob("workers-*.log"))
        assert re.search(r"^crash rank=1 trial=\d+ signal=11$", workers, re.M), workers
        log = next((job.study / "logs").glob("*start-1.log")).read_text()
        assert re.search(r"W attempt trial=\d+ attempt=\d+ outcome=(failed|disturbed) action=retry message=\".*signal 11", log), log
        check_same(job.study)
    return named(case, "crashed", launcher)


def hung(launcher):
    def case(folder):
        """Every trial hangs: each start charges the trials of the previous one, and the study ends with all trials failed."""
        job = Job(folder, template("cpu"), f"--nodes={NODES}", "--exclusive", variables={"LAUNCHER": launcher}, trials=4, seconds=900, resources="ranks = 4",
                  study=STUDY + '[failure]\nreport_timeout = "3s"\n')
        expect(job, "FAILED", 4)
        assert job.log().count("starting the study again") >= 1, job.log()
        assert [trial["state"] for trial in trials_of(job)] == ["failed"] * 4, trials_of(job)
        workers = "".join(path.read_text() for path in (job.study / "logs").glob("workers-*.log"))
        assert "no report or gradient step for 3s (failure.report_timeout)" in workers, workers
        assert "the trial does not return; its stack follows" in workers, workers
    return named(case, "hung", launcher)


def full_disk(launcher):
    def case(folder):
        """The study's file system is full: exit code 75, no restart; once there is room, the next job continues."""
        disk = disks.get(launcher)
        assert disk, "no small file system could be mounted here"
        job = running(folder, launcher, NODES, disk=disk)
        filler = disk / ".filler"
        with open(filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
        expect(job, "FAILED", 75, exit=75)
        assert job.outcome()["cause"] == "storage", job.outcome()
        assert "No space left on device" in " ".join(job.log().split()), job.log()
        assert "starting the study again" not in job.log(), job.log()
        filler.unlink()
        complete(job)
    return named(case, "full_disk", launcher)


def mount_disks(folder):
    """Before the nodes are there: they have mounts of their own."""
    for launcher in LAUNCHERS:
        disk = pathlib.Path(folder) / f"disk-{launcher}"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "ranktune-test", disk], env=environment or None)
        if mounted.returncode == 0:
            disks[launcher] = disk


def unmount_disks():
    for disk in disks.values():
        subprocess.run(["umount", "-l", disk], check=True)


def cases():
    return [make(launcher) for make in (thrown, crashed, hung, full_disk) for launcher in LAUNCHERS]
