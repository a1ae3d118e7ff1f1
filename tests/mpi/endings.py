#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How runs end: signals, kill -9 of ranks, trials that hang. Each case starts a study under mpirun, disturbs it, and
checks exit code, journal, the file `outcome`, and that no process stays behind.

    endings.py PROGRAM -- LAUNCHER ARGUMENTS...        (PROGRAM: study_program of this folder)
"""
import os
import re
import signal
import subprocess
import sys

import study_case

STUDY = """
[study]
name = "endings"
metric = "score"
mode = "max"
num_trials = {trials}
max_iterations = 9
seed = 1
[trainable]
builtin = "{builtin}"
{options}
[resources]
ranks = 2
[searcher]
type = "random"
[space]
lr = "loguniform(1e-4, 1.0)"
[scheduler]
type = "{scheduler}"
[run]
abort_grace = "2s"
heartbeat_timeout = "4s"
{more}
"""


class Study(study_case.Study):
    def __init__(self, program, launcher, builtin="curve", options="seconds = 0.02", extra=(), trials=500, more="",
                 supervise="", scheduler="asha"):
        text = STUDY.format(builtin=builtin, options=options, trials=trials, scheduler=scheduler, more=more)
        super().__init__(program, launcher, text, extra=extra, supervise=supervise)

    def started(self):
        return '"running": 2' in self.status_file()

    def status_file(self):
        path = os.path.join(self.directory, "status")
        if not os.path.exists(path):
            return ""
        with open(path) as file:
            return file.read()

    def wait_until_training(self):
        self.wait_for("two running trials", self.started)

    def wait_for_a_report(self):
        self.wait_for("a report", lambda: re.search(r'"reports": [1-9]', self.status_file()))

    def worker_log(self):
        return self.log("workers-")


def check_resumable(study, code, output):
    assert code == 75, f"exit code {code}\n{output}"
    outcome = study.outcome()
    assert outcome["exit"] == "75" and outcome["resumable"] == "true" and outcome["progress"] == "true", outcome


def clean_stop(make):
    """USR1, which the launcher passes to every rank, ends the study cleanly: trials pause with a checkpoint."""
    study = make()
    study.wait_until_training()
    study.wait_for_a_report()
    study.process.send_signal(signal.SIGUSR1)
    check_resumable(study, *study.finish())
    journal = study.journal()
    assert journal["ended"] == 1 and journal["running"] == 0 and journal["reports"] > 0, journal


def function_without_checkpoints(make):
    """A clean stop costs the trials of a function that never called checkpoints() their work, and nothing else: they
    begin again in the next start."""
    study = make(builtin="plain", options="", trials=4, scheduler="fifo")
    study.wait_until_training()
    study.process.send_signal(signal.SIGUSR1)
    check_resumable(study, *study.finish())
    journal = study.journal()
    assert journal["failed"] == 0 and journal["waiting"] == 2, journal
    study.start()
    code, output = study.finish()
    assert code == 0, f"exit code {code}\n{output}"
    journal = study.journal()
    assert journal["failed"] == 0 and journal["finished"] == 4, journal


def stop_from_worker(make):
    """A signal that reaches one worker only is passed on to the head."""
    study = make()
    study.wait_until_training()
    study.wait_for_a_report()
    os.kill(study.ranks()[3], signal.SIGUSR2)
    check_resumable(study, *study.finish())
    assert study.journal()["ended"] == 1


def second_signal(make):
    """A second signal that insists ends the study at once, although its trials do not return; it stays resumable."""
    study = make(builtin="hang", options="")
    study.wait_until_training()
    head = study.ranks()[0]
    os.kill(head, signal.SIGTERM)
    study.wait_for("a clean stop under way", lambda: '"draining": true' in study.status_file())
    os.kill(head, signal.SIGINT)
    code, _ = study.finish()
    assert code == 75, f"exit code {code}"
    assert study.outcome()["resumable"] == "true"
    assert study.journal()["running"] >= 1  # nobody waited for them
    log = study.worker_log()
    assert "the trial does not return; its stack follows" in log, log
    assert "libc" in log, log  # frames of the sleeping call


def printed_output(make):
    """What trials print goes to the node's log, line by line with rank and trial, and not to the terminal."""
    study = make(builtin="loud", options="", trials=4)
    code, output = study.finish()
    assert code == 0, f"exit code {code}\n{output}"
    assert "loud trial" not in output and "error message" not in output, output
    log = study.worker_log()
    for rank in range(1, 5):
        assert re.search(rf"I out rank={rank} trial=\d+ \| iteration 1 of a loud trial$", log, re.M), log
        assert re.search(rf"I out rank={rank} trial=\d+ \| and an error message$", log, re.M), log
    assert re.search(r"I trial rank=1 trial=\d+ text=\"a line by log\(\)\"$", log, re.M), log


def crashed_worker(make):
    """A rank that aborts leaves a note with its trial, its stack and what it printed last."""
    study = make(builtin="loud", options="crash = true")
    code, _ = study.finish()
    assert code != 0
    log = study.worker_log()
    assert re.search(r"^crash rank=\d+ trial=\d+ signal=6$", log, re.M), log
    assert "last words" in log, log
    assert study.journal()["reports"] > 0


def crashed_worker_supervised(make):
    """The same under supervise: each start charges the trial of the one before, and the study comes to its end."""
    study = make(builtin="loud", options="crash = true", trials=4, supervise=os.environ["RANKTUNE"])
    check_all_charged(study)


def hung_trial_supervised(make):
    """So it is where every trial hangs."""
    study = make(builtin="hang", options="", trials=4, more='[failure]\nreport_timeout = "2s"\n',
                 supervise=os.environ["RANKTUNE"])
    check_all_charged(study)


def check_all_charged(study):
    """All 4 trials have failed, one or two of them by each end of the job, and none was tried twice. (A head that hears of both
    before the launcher ends it closes the study by itself.)"""
    code, output = study.finish()
    assert code == 4, f"exit code {code}\n{output}"
    journal = study.journal()
    restarts = output.count("starting the study again")
    assert journal["failed"] == 4 and journal["ended"] == 1 and 1 <= restarts <= 4, (restarts, journal, output)
    starts = [name for name in os.listdir(os.path.join(study.directory, "logs")) if name.endswith(".env.json")]
    assert len(starts) == restarts + 1, starts  # (the launcher may end the head before it writes `outcome`)


def hung_trial(make):
    """Ranks whose trials make no progress leave their stacks and a note, and end, and with them the job; the next start
    knows whose fault it was."""
    study = make(builtin="hang", options="", more='[failure]\nreport_timeout = "2s"\n')
    code, output = study.finish()
    assert code not in (0, 75), f"exit code {code}\n{output}"
    log = study.worker_log()
    assert "no report or gradient step for 2s (failure.report_timeout)" in log, log
    assert "the trial does not return; its stack follows" in log and "libc" in log, log
    notes = study.log("crash-1-")
    assert re.search(r"^[01] 1 trial no report or gradient step for 2s", notes, re.M), notes
    study.start()  # of the trials that hung, those that left a note have failed; others hang now
    study.finish()
    journal = study.journal()
    assert journal["failed"] >= 1, journal
    return study


def late_rank(make):
    """A rank for which the others waited too long costs the attempt, and neither the trial nor the job."""
    study = make(builtin="late", options="", trials=4, scheduler="fifo", more='[failure]\ncollective_timeout = "1s"\n')
    code, output = study.finish()
    assert code == 0, f"exit code {code}\n{output}"
    journal = study.journal()
    assert journal["failed"] == 0 and journal["finished"] == 4 and journal["reports"] >= 36, journal
    log = study.log("")
    assert "(failure.collective_timeout)" in log and "lost" in log, log


def killed_launcher(make):
    """kill -9 of the launcher: nobody stays behind."""
    study = make()
    study.wait_until_training()
    study.wait_for_a_report()
    study.process.kill()
    study.finish()
    assert study.journal()["reports"] > 0
    return study


def killed_worker(make):
    """kill -9 of a worker: the launcher ends the job; the journal is whole and nothing stays behind."""
    study = make()
    study.wait_until_training()
    study.wait_for_a_report()
    os.kill(study.ranks()[2], signal.SIGKILL)
    code, _ = study.finish()
    assert code != 0
    journal = study.journal()
    assert journal["reports"] > 0, journal


def killed_head(make):
    """kill -9 of the head: the same."""
    study = make()
    study.wait_until_training()
    study.wait_for_a_report()
    os.kill(study.ranks()[0], signal.SIGKILL)
    code, _ = study.finish()
    assert code != 0
    assert study.journal()["reports"] > 0


def survived_worker(make):
    """Where the launcher lets the others live, the study goes on without the dead rank, to its end."""
    study = make(options="seconds = 0.005", extra=["--enable-recovery"])
    study.wait_until_training()
    study.wait_for_a_report()
    os.kill(study.ranks()[4], signal.SIGKILL)
    study.finish()
    outcome = study.outcome()
    journal = study.journal()
    assert outcome["exit"] == "0", outcome
    assert journal["ended"] == 1 and journal["trials"] == 500, journal


def orphaned_workers(make):
    """Workers whose head is gone end by themselves, also where the launcher would let them live."""
    study = make(extra=["--enable-recovery"])
    study.wait_until_training()
    study.wait_for_a_report()
    os.kill(study.ranks()[0], signal.SIGKILL)
    study.finish()
    assert study.journal()["reports"] > 0


def main():
    split = sys.argv.index("--")
    program, launcher = os.path.abspath(sys.argv[1]), sys.argv[split + 1:]
    wanted = sys.argv[2:split]
    cases = [clean_stop, function_without_checkpoints, stop_from_worker, second_signal, printed_output, crashed_worker,
             hung_trial, late_rank, killed_worker, killed_head, killed_launcher]
    if "RANKTUNE" in os.environ:
        cases += [crashed_worker_supervised, hung_trial_supervised]
    version = subprocess.run([launcher[0], "--version"], capture_output=True, text=True).stdout
    if "Open MPI" in version or "OpenRTE" in version:  # only this launcher can let the others live
        cases += [survived_worker, orphaned_workers]
    sys.exit(1 if study_case.run_cases(cases, wanted, lambda **options: Study(program, launcher, **options)) else 0)


if __name__ == "__main__":
    main()
