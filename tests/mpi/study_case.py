# SPDX-License-Identifier: Apache-2.0
"""A study under a launcher, and cases that run, disturb and check some: what the scripts of this folder share."""
import os
import shutil
import signal
import subprocess
import tempfile
import time


class Study:
    """A study in a directory of its own. `patience`: seconds, a guard against waiting for ever."""

    def __init__(self, program, launcher, text, files=(), extra=(), patience=300, ranks=5, supervise=""):
        self.base = tempfile.mkdtemp(prefix="ranktune-mpi-")
        self.directory = os.path.join(self.base, "study")
        self.program = program
        self.patience = patience
        for name, content in [("study.toml", text), *files]:
            with open(os.path.join(self.base, name), "w") as file:
                file.write(content)
        self.words = launcher + list(extra) + ["-n", str(ranks), program, self.directory, os.path.join(self.base, "study.toml")]
        if supervise:  # path of `ranktune`
            self.words = [supervise, "supervise", "--dir", self.directory, "--"] + self.words
        self.start()

    def start(self):
        """Also once more, after the end: the study goes on."""
        self.started_at = time.time()
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        start_new_session=True)

    def processes(self):
        """Of all processes that run for this study, the launcher aside: {process id: its environment}. Ranks, programs,
        and what those started."""
        found = {}
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == self.process.pid:
                continue
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    command = file.read()
                with open(f"/proc/{name}/environ", "rb") as file:
                    variables = file.read()
            except OSError:
                continue
            if self.base.encode() in command or b"RANKTUNE_STUDY_DIR=" + self.directory.encode() in variables:
                found[int(name)] = dict(v.split(b"=", 1) for v in variables.split(b"\0") if b"=" in v)
        return found

    def ranks(self):
        """Process ids by rank."""
        found = {}
        for pid, variables in self.processes().items():
            rank = variables.get(b"OMPI_COMM_WORLD_RANK", variables.get(b"PMI_RANK"))
            if rank is not None:
                found[int(rank)] = pid
        return found

    def wait_for(self, what, condition):
        end = time.monotonic() + self.patience
        while not condition():
            assert time.monotonic() < end, f"waited {self.patience} s for: {what}"
            code = self.process.poll()
            assert code is None, f"ended ({code}) before: {what}\n{self.process.stdout.read()}"
            time.sleep(0.05)

    def finish(self):
        """Exit code and output, once no process of the study is left."""
        output, _ = self.process.communicate(timeout=self.patience)
        end = time.monotonic() + self.patience
        while self.processes() and time.monotonic() < end:
            time.sleep(0.05)
        assert not self.processes(), f"processes stayed behind: {list(self.processes())}"
        return self.exit_code(output), output

    def exit_code(self, output):
        """What the launcher has ended with; when it crashed in its own end, what the study says that it was told.

        Open MPI 4.1's mpirun with PMIx 4.2 sometimes does, after all ranks have ended and one of them not with 0 (2 of
        660 runs on two busy cores; compare open-mpi/ompi 13650): its stack, which it prints, begins in PMIx_server_finalize.
        """
        code = self.process.returncode
        if code != -signal.SIGSEGV or "PMIx_server_finalize" not in output:
            return code
        path = os.path.join(self.directory, "outcome")
        if not os.path.exists(path) or os.path.getmtime(path) < self.started_at:
            return code
        print("note    the launcher crashed in PMIx_server_finalize: the exit code is that of the file outcome", flush=True)
        return int(self.outcome()["exit"])

    def outcome(self):
        with open(os.path.join(self.directory, "outcome")) as file:
            return dict(line.rstrip("\n").split("=", 1) for line in file)

    def journal(self):
        text = subprocess.run([self.program, "--check", self.directory], check=True, capture_output=True, text=True)
        return {key: int(value) for key, value in (word.split("=") for word in text.stdout.split())}

    def log(self, prefix=""):
        """The logs whose names begin with `prefix`, in one text."""
        folder = os.path.join(self.directory, "logs")
        text = ""
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name.startswith(prefix):
                with open(os.path.join(folder, name)) as file:
                    text += file.read()
        return text

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.base, ignore_errors=True)


def run_cases(cases, wanted, make_study):
    """Runs the cases (those named in `wanted`, if any are); each gets a function that makes studies, as make_study does.
    Returns the number of those that failed, for sys.exit."""
    failed = 0
    for case in cases:
        if wanted and case.__name__ not in wanted:
            continue
        studies = []

        def make(**options):
            studies.append(make_study(**options))
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
    return failed
