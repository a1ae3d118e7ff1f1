# SPDX-License-Identifier: Apache-2.0
"""Jobs that `ranktune submit` has handed to a real Slurm, and chains of them."""
import pathlib
import re
import subprocess
import tempfile
import time

from bed import DETERMINISTIC_STUDY, PATIENCE, PROGRAM, environment, slurm
from endings import check_same


def submitted(folder, name, *options, trials, seconds=0.05, requeue="false", limit="1:00:00", lead="2m"):
    """A study that `ranktune submit` has handed to Slurm, and the numbers of its jobs."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=folder, prefix=name))
    (folder / "study.toml").write_text(DETERMINISTIC_STUDY.format(trials=trials, seconds=seconds, resources="ranks = 1", requeue=requeue))
    (folder / "site.toml").write_text(f'[slurm]\nlead_time = "{lead}"\n')
    words = [PROGRAM, "submit", "study.toml", "--time", limit, "--workers-per-node", "3", *options]
    done = subprocess.run(list(map(str, words)), env=dict(environment, RANKTUNE_SITE=str(folder / "site.toml")), cwd=folder,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "layout", (folder / "layout" / "submit" / "jobs").read_text().split(), words


def state_of(job):
    return re.search(r"JobState=(\S+)", slurm("scontrol", "show", "job", job)).group(1)


def wait_until(what, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited {PATIENCE} s for {what}"
        time.sleep(0.2)


def chain_done(folder):
    """The job that completes a study cancels its followers; one that starts all the same ends at once."""
    study, jobs, words = submitted(folder, "chain-done", "--chain", "3", trials=12)
    assert len(jobs) == 3
    wait_until("the end of all", lambda: [state_of(job) for job in jobs] == ["COMPLETED", "CANCELLED", "CANCELLED"])
    again = subprocess.run(list(map(str, words)), env=environment, cwd=study.parent, capture_output=True, text=True)
    assert again.returncode == 0 and "is finished, so nothing was submitted" in again.stdout, again
    late = slurm("sbatch", "--parsable", f"--chdir={study.parent}", study / "submit" / "job.sbatch")
    wait_until("the end of a late one", lambda: state_of(late) == "COMPLETED")
    ran = re.search(r"RunTime=00:00:(\d\d)", slurm("scontrol", "show", "job", late))
    assert ran and int(ran.group(1)) < 30, slurm("scontrol", "show", "job", late)


def chain_goes_on(folder):
    """A job that is stopped early ends with 0 when it has a follower, which finishes the study."""
    study, jobs, _ = submitted(folder, "chain-on", "--chain", "2", trials=60, seconds=0.3)
    wait_until("reports", lambda: (study / "status").exists() and '"reports": 0' not in (study / "status").read_text())
    slurm("scancel", "--batch", "--signal=USR1", jobs[0])
    wait_until("the end of both", lambda: [state_of(job) for job in jobs] == ["COMPLETED", "COMPLETED"])
    outcome = (study / "outcome").read_text()
    assert "exit=0" in outcome and "start=2" in outcome, outcome
    check_same(study)


def chain_out_of_time(folder):
    """The first job of a chain stops before its time is up, and its follower finishes the study."""
    study, jobs, _ = submitted(folder, "chain-time", "--chain", "2", "--", "--signal=B:URG@1", trials=600, seconds=0.3,
                               limit="0:02:00", lead="1m")
    wait_until("the end of the first", lambda: state_of(jobs[0]) not in ("PENDING", "RUNNING", "CONFIGURING"))
    assert state_of(jobs[0]) == "COMPLETED", slurm("scontrol", "show", "job", jobs[0])
    ended = (study / "outcome").read_text()
    wait_until("the end of both", lambda: state_of(jobs[1]) == "COMPLETED")
    outcome = (study / "outcome").read_text()
    assert "exit=0" in outcome and "start=2" in outcome, outcome
    assert "reason=deadline" in ended or "start=2" in ended, ended  # the follower may have begun already
    check_same(study)


def chain_stopped(folder):
    """`ranktune stop` ends a chain: the followers are cancelled, and the job ends with 75."""
    study, jobs, _ = submitted(folder, "chain-stopped", "--chain", "3", trials=4000, seconds=0.3)
    wait_until("reports", lambda: (study / "status").exists() and '"reports": 0' not in (study / "status").read_text())
    done = subprocess.run([PROGRAM, "stop", study], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done
    wait_until("the end of all", lambda: [state_of(job) for job in jobs] == ["FAILED", "CANCELLED", "CANCELLED"])
    assert "ExitCode=75:0" in slurm("scontrol", "show", "job", jobs[0])
    outcome = (study / "outcome").read_text()
    assert "reason=ranktune stop" in outcome and "start=1" in outcome, outcome


def chain_alone(folder):
    """A follower that was cancelled goes on with nothing: the job that is stopped early ends with 75."""
    study, jobs, _ = submitted(folder, "chain-alone", "--chain", "2", trials=4000, seconds=0.3)
    wait_until("reports", lambda: (study / "status").exists() and '"reports": 0' not in (study / "status").read_text())
    slurm("scancel", jobs[1])
    slurm("scancel", "--batch", "--signal=USR1", jobs[0])
    wait_until("the end of both", lambda: [state_of(job) for job in jobs] == ["FAILED", "CANCELLED"])
    assert "ExitCode=75:0" in slurm("scontrol", "show", "job", jobs[0])


def submit_again(folder):
    """While a job of the study waits or runs, the next one is submitted to begin after it."""
    study, jobs, words = submitted(folder, "again", "--", "--begin=now+1hour", trials=12)
    again = subprocess.run(list(map(str, words)), env=environment, cwd=study.parent, capture_output=True, text=True)
    assert f"to begin when job {jobs[0]} of this study has ended" in again.stdout, again
    both = (study / "submit" / "jobs").read_text().split()
    assert both[0] == jobs[0] and len(both) == 2, both
    assert f"afterany:{jobs[0]}" in slurm("scontrol", "show", "job", both[1])
    slurm("scancel", *both)


def cases():
    return [chain_done, chain_goes_on, chain_out_of_time, chain_stopped, chain_alone, submit_again]
