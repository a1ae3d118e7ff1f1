#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How runs end: signals, kill -9 of ranks, trials that hang. Each case starts a study under mpirun, disturbs it, and
checks exit code, journal, the file `outcome`, and that no process stays behind.

    endings.py PROGRAM -- LAUNCHER ARGUMENTS...        (PROGRAM: study_program of this folder)
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

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
[space]
lr = "loguniform(1e-4, 1.0)"
[scheduler]
type = "asha"
[run]
abort_grace = "2s"
heartbeat_timeout = "4s"
"""
PATIENCE = 60  # seconds for things that take one on an idle machine


class Study:
    def __init__(self, program, launcher, builtin="curve", options="seconds = 0.02", extra=(), trials=500):
        self.base = tempfile.mkdtemp(prefix="ranktune-endings-")
        self.directory = os.path.join(self.base, "study")
        self.program = program
        path = os.path.join(self.base, "study.toml")
        with open(path, "w") as file:
            file.write(STUDY.format(builtin=builtin, options=options, trials=trials))
        self.process = subprocess.Popen(launcher + list(extra) + ["-n", "5", program, self.directory, path],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        start_new_session=True)

    def ranks(self):
        """Process ids by rank, of the processes that run in this study's directory."""
        found = {}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                if not words or words[0].decode() != self.program or self.directory.encode() not in words:
                    continue
                with open(f"/proc/{name}/environ", "rb") as file:
                    variables = dict(v.split(b"=", 1) for v in file.read().split(b"\0") if b"=" in v)
                rank = variables.get(b"OMPI_COMM_WORLD_RANK", variables.get(b"PMI_RANK"))
                found[int(rank)] = int(name)
            except (OSError, TypeError, ValueError):
                continue
        return found

    def wait_for(self, what, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"waited {PATIENCE} s for: {what}")
            if self.process.poll() is not None:
                raise AssertionError(f"ended ({self.process.returncode}) before: {what}\n{self.process.stdout.read()}")
            time.sleep(0.05)

    def started(self):
        path = os.path.join(self.directory, "status")
        if not os.path.exists(path):
            return False
        with open(path) as file:
            return '"running": 2' in file.read()

    def wait_until_training(self):
        self.wait_for("two running trials", self.started)

    def finish(self, limit=PATIENCE):
        output, _ = self.process.communicate(timeout=limit)
        end = time.monotonic() + 10
        while self.ranks() and time.monotonic() < end:
            time.sleep(0.05)
        assert not self.ranks(), f"processes stayed behind: {self.ranks()}"
        return self.process.returncode, output

    def outcome(self):
        with open(os.path.join(self.directory, "outcome")) as file:
            return dict(line.rstrip("\n").split("=", 1) for line in file)

    def journal(self):
        text = subprocess.run([self.program, "--check", self.directory], check=True, capture_output=True, text=True)
        return {key: int(value) for key, value in (word.split("=") for word in text.stdout.split())}

    def worker_log(self):
        folder = os.path.join(self.directory, "logs")
        text = ""
        for name in os.listdir(folder):
            if name.startswith("workers-"):
                with open(os.path.join(folder, name)) as file:
                    text += file.read()
        return text

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for pid in self.ranks().values():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.base, ignore_errors=True)


def check_resumable(study, code):
    assert code == 75, f"exit code {code}"
    outcome = study.outcome()
    assert outcome["exit"] == "75" and outcome["resumable"] == "true" and outcome["progress"] == "true", outcome


def clean_stop(make):
    """USR1, which the launcher passes to every rank, ends the study cleanly: trials pause with a checkpoint."""
    study = make()
    study.wait_until_training()
    study.process.send_signal(signal.SIGUSR1)
    code, _ = study.finish()
    check_resumable(study, code)
    journal = study.journal()
    assert journal["ended"] == 1 and journal["running"] == 0 and journal["reports"] > 0, journal
    return study


def stop_from_worker(make):
    """A signal that reaches one worker only is passed on to the head."""
    study = make()
    study.wait_until_training()
    os.kill(study.ranks()[3], signal.SIGUSR2)
    code, _ = study.finish()
    check_resumable(study, code)
    assert study.journal()["ended"] == 1
    return study


def second_signal(make):
    """A second signal that insists ends the study at once, although its trials do not return; it stays resumable."""
    study = make(builtin="hang", options="")
    study.wait_until_training()
    head = study.ranks()[0]
    os.kill(head, signal.SIGTERM)
    time.sleep(0.5)
    os.kill(head, signal.SIGINT)
    code, _ = study.finish()
    assert code == 75, f"exit code {code}"
    assert study.outcome()["resumable"] == "true"
    assert study.journal()["running"] >= 1  # nobody waited for them
    log = study.worker_log()
    assert "the trial does not return; its stack follows" in log, log
    assert "libc" in log, log  # frames of the sleeping call
    return study


def printed_output(make):
    """What trials print goes to the node's log, line by line with rank and trial, and not to the terminal."""
    study = make(builtin="loud", options="", trials=4)
    code, output = study.finish(limit=120)
    assert code == 0, f"exit code {code}\n{output}"
    assert "loud trial" not in output and "error message" not in output, output
    log = study.worker_log()
    for rank in range(1, 5):
        assert re.search(rf"I out rank={rank} trial=\d+ \| iteration 1 of a loud trial$", log, re.M), log
        assert re.search(rf"I out rank={rank} trial=\d+ \| and an error message$", log, re.M), log
    assert re.search(r"I trial rank=1 trial=\d+ text=\"a line by log\(\)\"$", log, re.M), log
    return study


def crashed_worker(make):
    """A rank that aborts leaves a note with its trial, its stack and what it printed last."""
    study = make(builtin="loud", options="crash = true")
    code, _ = study.finish(limit=120)
    assert code != 0
    log = study.worker_log()
    assert re.search(r"^crash rank=\d+ trial=\d+ signal=6$", log, re.M), log
    assert "last words" in log, log
    assert study.journal()["reports"] > 0
    return study


def killed_worker(make):
    """kill -9 of a worker: the launcher ends the job; the journal is whole and nothing stays behind."""
    study = make()
    study.wait_until_training()
    os.kill(study.ranks()[2], signal.SIGKILL)
    code, _ = study.finish()
    assert code != 0
    journal = study.journal()
    assert journal["reports"] > 0, journal
    return study


def killed_head(make):
    """kill -9 of the head: the same."""
    study = make()
    study.wait_until_training()
    os.kill(study.ranks()[0], signal.SIGKILL)
    code, _ = study.finish()
    assert code != 0
    assert study.journal()["reports"] > 0
    return study


def survived_worker(make):
    """Where the launcher lets the others live, the study goes on without the dead rank, to its end."""
    study = make(options="seconds = 0.005", extra=["--enable-recovery"])
    study.wait_until_training()
    os.kill(study.ranks()[4], signal.SIGKILL)
    study.finish(limit=240)
    outcome = study.outcome()
    journal = study.journal()
    assert outcome["exit"] == "0", outcome
    assert journal["ended"] == 1 and journal["trials"] == 500, journal
    return study


def orphaned_workers(make):
    """Workers whose head is gone end by themselves, also where the launcher would let them live."""
    study = make(extra=["--enable-recovery"])
    study.wait_until_training()
    os.kill(study.ranks()[0], signal.SIGKILL)
    study.finish()
    assert study.journal()["reports"] > 0
    return study


def main():
    split = sys.argv.index("--")
    program, launcher = os.path.abspath(sys.argv[1]), sys.argv[split + 1:]
    wanted = sys.argv[2:split]
    cases = [clean_stop, stop_from_worker, second_signal, printed_output, crashed_worker, killed_worker, killed_head]
    version = subprocess.run([launcher[0], "--version"], capture_output=True, text=True).stdout
    if "Open MPI" in version or "OpenRTE" in version:  # only this launcher can let the others live
        cases += [survived_worker, orphaned_workers]
    failed = 0
    for case in cases:
        if wanted and case.__name__ not in wanted:
            continue
        studies = []

        def make(**options):
            studies.append(Study(program, launcher, **options))
            return studies[-1]

        began = time.monotonic()
        try:
            case(make)
            print(f"ok      {case.__name__}  {time.monotonic() - began:.1f} s", flush=True)
        except Exception as error:  # one case must not hide the others
            failed += 1
            print(f"FAILED  {case.__name__}: {type(error).__name__}: {error}", flush=True)
        finally:
            for study in studies:
                study.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
