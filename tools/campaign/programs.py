#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that go wrong: random studies under mpirun whose trials are killed, crash, hang, fill their pipes, end early or
send garbage, some by themselves and some from outside.

After each study: its exit code, the state of every trial, that no rank was lost, and that nothing is left behind: no
process, no zombie of a worker, no descriptor of a worker, no file in the temporary directory or in /dev/shm.

usage: programs.py PROGRAM [RUNS] [--seed S] [--keep DIR] [--quick]
       RUNS: default 200. --seed: of the first run; a failure prints the seed that repeats it. --keep: where studies that
       failed are kept. --quick: few trials, for the tests.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve()
MARK = "RANKTUNE_CAMPAIGN_RUN"  # removed from the environment of programs, like all RANKTUNE_ names: the next one marks them
CHILD_MARK = "CAMPAIGN_RUN"
LIMIT = 240  # seconds per study
REPORT_TIMEOUT = 8  # seconds at least; more where Python itself starts slowly

# Faults of a trial's program, and whether they fail the trial.
FAULTS = {
    "none": False,
    "killed": True,  # by itself: SIGKILL
    "segfault": True,
    "abort": True,
    "exit code": True,
    "exception": True,
    "hang": True,  # stops reporting; the report time-out ends it
    "hang without mercy": True,  # also ignores TERM
    "stopped": True,  # SIGSTOP: not even TERM is seen
    "garbage": True,  # on the control descriptor
    "endless line": True,  # on the control descriptor, more than a MiB
    "closes": True,  # its control descriptor, and lives on
    "leaves a rank": True,  # one rank ends with code 0 in the middle, the others wait for it
    "full pipe": False,  # much output, also without line ends
    "ends early": False,  # exit code 0 before the ceiling on all ranks
    "grandchildren": False,  # leaves processes of its own behind, also one in a session of its own
    "threads": False,  # ends while threads still print
    "binary output": False,
    "victim": None,  # waits to be killed from outside, which may not happen
}
QUIET = ("hang", "hang without mercy", "stopped", "closes")


# ---- the program of the trials ---------------------------------------------------------------------------------------


def victim(folder, seed, names):
    import ranktune

    here = ranktune.context()
    generator = random.Random(f"{seed}/{here.trial}")
    fault = generator.choice(names)
    bad_iteration = generator.randint(1, here.iterations)
    bad_rank = generator.randrange(here.world_size)
    state = ranktune.checkpoint()
    if state is not None:
        with open(os.path.join(state, "state")) as file:
            assert int(file.read()) == here.iteration, f"wrong checkpoint {state}"

    def note(text):
        silent = here.rank > 0 and iteration == here.iteration + 1  # as in a program in which only rank 0 reports
        with open(os.path.join(folder, "notes"), "a") as file:
            file.write(json.dumps({"trial": here.trial, "attempt": here.attempt, "rank": here.rank, "what": text,
                                   "silent": silent}) + "\n")

    def save(target):
        if here.rank == 0:
            with open(os.path.join(target, "state"), "w") as file:
                file.write(str(iteration))

    for iteration in range(here.iteration + 1, here.iterations + 1):
        if iteration == bad_iteration:
            if fault == "ends early":
                note(fault)
                return
            if fault == "victim":
                note(fault)
                time.sleep(0.3)
            elif here.rank == bad_rank and fault != "none":
                note(fault)
                misbehave(fault)
                if fault == "leaves a rank":
                    if here.world_size == 1:
                        note("ends early")
                    return
        time.sleep(generator.random() * 0.02)
        # Slightly different metrics for each trial, so that ASHA has to decide.
        ranktune.report(score=here.trial % 7 + iteration / 100, checkpoint=save)


def misbehave(fault):
    control = int(os.environ["RANKTUNE_FD"])
    if fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif fault == "abort":
        os.abort()
    elif fault == "exit code":
        print("about to leave with code 3", file=sys.stderr)
        sys.exit(3)
    elif fault == "exception":
        raise ValueError("a mistake of the program")
    elif fault == "hang":
        time.sleep(1000)
    elif fault == "hang without mercy":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(1000)
    elif fault == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif fault == "garbage":
        os.write(control, os.urandom(64).replace(b"\n", b"x") + b"\n")
        time.sleep(1000)
    elif fault == "endless line":
        try:
            while True:
                os.write(control, b"x" * 65536)
        except OSError:
            time.sleep(1000)
    elif fault == "closes":
        os.close(control)
        time.sleep(1000)
    elif fault == "full pipe":
        sys.stdout.write("a line of output\n" * 20000)
        sys.stderr.write("x" * (1 << 19))
    elif fault == "binary output":
        sys.stdout.buffer.write(os.urandom(1 << 16))
        sys.stdout.flush()
    elif fault == "grandchildren":
        subprocess.Popen(["sleep", "1000"])
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
    elif fault == "threads":
        def chatter():
            while True:
                try:
                    os.write(1, b"chatter\n")
                except OSError:
                    return
                time.sleep(0.001)
        threading.Thread(target=chatter, daemon=True).start()


# ---- one study -------------------------------------------------------------------------------------------------------


def start_time():
    """Seconds that a trial's program currently needs to start on this machine."""
    begin = time.monotonic()
    subprocess.run([sys.executable, "-S", str(HERE), "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def study_text(generator, seed, folder, quick):
    """(text, workers)"""
    ranks = generator.choice([1, 1, 2, 2, 3])
    workers = max(ranks, generator.randint(1, 4))
    trials = generator.randint(4, 6) if quick else generator.randint(5, 12)
    scheduler = generator.choice(['type = "asha"', 'type = "asha"', 'type = "asha"\nvariant = "stop"', 'type = "fifo"'])
    if 'type = "asha"' == scheduler and generator.random() < 0.2:
        scheduler += "\nrestart_paused = true"
    python = json.dumps(sys.executable)[1:-1]
    return f"""[study]
name = "s"
metric = "score"
mode = "max"
num_trials = {trials}
max_iterations = {generator.choice([1, 3, 4, 9])}
seed = {seed}
[trainable]
command = "{python} -S {HERE} --victim {folder} {seed}"
[resources]
ranks = {ranks}
[searcher]
type = "random"
[space]
x = "uniform(0, 1)"
[scheduler]
{scheduler}
[failure]
tolerate = 1.0
report_timeout = "{max(REPORT_TIMEOUT, 100 * start_time()):.0f}s"
[run]
abort_grace = "2s"
""", workers


def processes():
    """{pid: parent} of everything that runs or is a zombie."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = pathlib.Path("/proc", entry, "stat").read_text()
                state, parent = text.rsplit(")", 1)[1].split()[:2]
                found[int(entry)] = (int(parent), state)
            except OSError:
                pass
    return found


def marked(run):
    """Processes with the run's mark in the environment that they were started with."""
    needles = [f"{name}={run}".encode() for name in (MARK, CHILD_MARK)]
    found = []
    for pid in processes():
        try:
            variables = pathlib.Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(needle in variables for needle in needles):
            found.append(pid)
    return found


def command_of(pid):
    try:
        return pathlib.Path("/proc", str(pid), "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def shared_memory(run):
    """Files in /dev/shm that a process of this run has mapped."""
    found = set()
    for pid in marked(run):
        try:
            for line in pathlib.Path("/proc", str(pid), "maps").read_text().splitlines():
                if "/dev/shm/" in line:
                    found.add(line.split(None, 5)[5].removesuffix(" (deleted)"))
        except OSError:
            pass
    return found


class Watcher(threading.Thread):
    """Looks at the workers of a running study, and kills a program now and then."""

    def __init__(self, run, generator, notes):
        super().__init__(daemon=True)
        self.run_mark, self.generator, self.notes = run, generator, notes
        self.over = threading.Event()
        self.shared, self.descriptors, self.zombies, self.lasting = set(), {}, {}, set()

    def run(self):
        turn = 0
        while not self.over.wait(0.1):
            turn += 1
            everything = processes()
            mine = marked(self.run_mark)
            workers = [pid for pid in mine if f"{MARK}={self.run_mark}" in environ_of(pid)]
            if turn % 5 == 1:
                self.shared |= shared_memory(self.run_mark)
            for pid in workers:
                try:
                    count = len(os.listdir(f"/proc/{pid}/fd"))
                except OSError:
                    continue
                low, high = self.descriptors.get(pid, (count, count))
                self.descriptors[pid] = (min(low, count), max(high, count))
            now = {pid for pid, (parent, state) in everything.items() if state == "Z" and parent in workers}
            for pid in now:
                self.zombies[pid] = self.zombies.get(pid, 0) + 1
                if self.zombies[pid] > 100:
                    self.lasting.add(pid)
            programs = [pid for pid in mine if pid not in workers and "--victim" in command_of(pid)]
            if programs and self.generator.random() < 0.02:
                pid = self.generator.choice(programs)
                trial = environ_of(pid).get("RANKTUNE_TRIAL")
                attempt = environ_of(pid).get("RANKTUNE_ATTEMPT")
                how = self.generator.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGKILL, signal.SIGSTOP])
                if trial is not None:
                    with open(self.notes, "a") as file:
                        file.write(json.dumps({"trial": int(trial), "attempt": int(attempt), "what": "from outside"}) + "\n")
                    try:
                        os.kill(pid, how)
                    except ProcessLookupError:
                        pass


class Environ(dict):
    def __contains__(self, text):
        name, _, value = text.partition("=")
        return self.get(name) == value if "=" in text else super().__contains__(name)


def environ_of(pid):
    try:
        data = pathlib.Path("/proc", str(pid), "environ").read_bytes()
    except OSError:
        return Environ()
    return Environ(variable.split("=", 1) for variable in data.decode(errors="replace").split("\0") if "=" in variable)


def run_study(program, seed, quick, keep):
    """Messages about what is wrong; a summary."""
    generator = random.Random(seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rt-programs-"))
    temporary = pathlib.Path(tempfile.mkdtemp(prefix="rt-"))  # short: paths of sockets are
    run = f"{os.getpid()}-{seed}-{generator.getrandbits(32)}"
    text, workers = study_text(generator, seed, folder, quick)
    (folder / "s.toml").write_text(text)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPI_COMM", "PMIX_", "RANKTUNE_"))}
    env.update({MARK: run, CHILD_MARK: run, "TMPDIR": str(temporary), "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"})
    watcher = Watcher(run, generator, folder / "notes")
    wrong = []
    watcher.start()
    for _ in range(4):
        process = subprocess.Popen([program, "run", "s.toml", "--local", str(workers)], cwd=folder, env=env, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            out, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            wrong.append(f"the study did not end within {LIMIT} s")
            for pid in marked(run):
                try:
                    os.kill(pid, signal.SIGABRT)
                except ProcessLookupError:
                    pass
            out, _ = process.communicate()
        # What goes wrong while the best trial saves its state at its end ends the study resumably, and it goes on without that state.
        ending = folder / "s/outcome"
        if wrong or process.returncode != 75 or not ending.exists() or "cause=storage" not in ending.read_text():
            break
    watcher.over.set()
    watcher.join()
    (folder / "out").write_text(out)
    if not wrong:
        wrong += check_results(folder, text, process.returncode, out)
    wrong += check_leavings(run, watcher, temporary)
    summary = count_faults(folder / "notes")
    if wrong and keep:
        shutil.copytree(folder, pathlib.Path(keep) / f"seed-{seed}", dirs_exist_ok=True)
    shutil.rmtree(folder)
    shutil.rmtree(temporary, ignore_errors=True)
    return wrong, summary


def read_notes(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def count_faults(path):
    return [note["what"] for note in read_notes(path)]


def check_results(folder, text, code, out):
    wrong = []
    trials = int(re.search(r"num_trials = (\d+)", text).group(1))
    ceiling = int(re.search(r"max_iterations = (\d+)", text).group(1))
    outcome_path = folder / "s/outcome"
    if not outcome_path.exists():
        return [f"no outcome; exit code {code}: {out[-2000:]}"]
    notes = read_notes(folder / "notes")
    # A rank above 0 that falls silent before its first report looks like one that never reports, which is allowed.
    unclear = [note for note in notes if note["what"] in ("from outside", "leaves a rank", "ends early")
               or note["what"] in QUIET and note["silent"]]
    costs = {note["trial"] for note in notes if FAULTS.get(note["what"]) and note not in unclear}
    may_fail = {note["trial"] for note in unclear}
    table = json.loads(subprocess.run([sys.argv[1], "export", "s", "--format", "json"], cwd=folder, check=True,
                                      stdout=subprocess.PIPE, text=True).stdout)["trials"]
    failed = {trial["id"] for trial in table if trial["state"] == "failed"}
    if len(table) != trials and code == 0:
        wrong.append(f"{len(table)} trials instead of {trials}")
    if code not in (0, 4) or (code == 4) != (len(failed) == len(table)):
        wrong.append(f"exit code {code}, {len(failed)} of {len(table)} trials failed: {out[-1500:]}")
    # If rank 0 made all its reports, they count, whatever the silent rank did.
    beside = {note["trial"] for note in notes if note["what"] in QUIET and note["rank"] > 0}
    complete = {trial["id"] for trial in table if trial["state"] == "finished" and trial["iterations"] == ceiling}
    costs -= beside & complete
    if not costs <= failed:
        wrong.append(f"the trials {sorted(costs - failed)} misbehaved and did not fail")
    if not failed <= costs | may_fail:
        messages = [trial.get("message") for trial in table if trial["id"] in failed - costs - may_fail]
        wrong.append(f"the trials {sorted(failed - costs - may_fail)} failed without a reason: {messages}")
    for trial in table:
        if trial["state"] not in ("finished", "stopped", "failed", "paused"):
            wrong.append(f"trial {trial['id']} is {trial['state']}")
        if trial["state"] == "failed" and not trial.get("message"):
            wrong.append(f"trial {trial['id']} failed without a message")
        if (trial.get("iterations") or 0) > ceiling:
            wrong.append(f"trial {trial['id']} made {trial['iterations']} iterations of {ceiling}")
    logs = "".join(path.read_text(errors="replace") for path in (folder / "s/logs").glob("*.log"))
    if re.search(r"\bE lost\b|\blost rank|rank \d+ is lost", logs):
        wrong.append("a rank was lost: " + next(line for line in logs.splitlines() if "lost" in line))
    if (folder / "s/attempts").exists() and any((folder / "s/attempts").iterdir()):
        wrong.append(f"folders of attempts are left: {os.listdir(folder / 's/attempts')}")
    return wrong


def check_leavings(run, watcher, temporary):
    wrong = []
    deadline = time.monotonic() + 10
    while (left := marked(run)) and time.monotonic() < deadline:
        time.sleep(0.1)
    if left:
        wrong.append(f"processes are left: {[(pid, command_of(pid)) for pid in left]}")
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    if watcher.lasting:
        wrong.append(f"{len(watcher.lasting)} zombies stayed for 10 s")
    for pid, (low, high) in watcher.descriptors.items():
        if high - low > 60:
            wrong.append(f"worker {pid} had {low} to {high} descriptors")
    shared = [path for path in watcher.shared if os.path.exists(path)]
    if shared:
        wrong.append(f"left in /dev/shm: {shared}")
    files = [str(path.relative_to(temporary)) for path in temporary.rglob("*") if path.is_file()]
    if files:
        wrong.append(f"left in the temporary directory: {files[:5]}")
    return wrong


def main():
    if "--victim" in sys.argv:
        at = sys.argv.index("--victim")
        names = sorted(FAULTS, key=list(FAULTS).index)
        weights = names + ["none"] * len(names)  # half of the trials do nothing wrong
        return victim(sys.argv[at + 1], int(sys.argv[at + 2]), weights)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("runs", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    sys.argv[1] = arguments.program
    bad, faults, begin = 0, {}, time.monotonic()
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        wrong, summary = run_study(arguments.program, seed, arguments.quick, arguments.keep)
        for what in summary:
            faults[what] = faults.get(what, 0) + 1
        for text in wrong:
            print(f"seed {seed}: {text}", flush=True)
        bad += bool(wrong)
        done = seed - arguments.seed + 1
        if done % 20 == 0:
            print(f"{done} of {arguments.runs} studies, {bad} wrong", flush=True)
    print(f"{arguments.runs} studies, {bad} wrong, {time.monotonic() - begin:.0f} s; faults: "
          + ", ".join(f"{count} {what}" for what, count in sorted(faults.items(), key=lambda item: -item[1])), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
