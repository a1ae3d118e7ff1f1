#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real studies under mpirun or srun, killed with -9 at random moments (the head, a worker, the launcher, or everything),
resumed by the same command until they end. An outside observer reads the journal continuously, with its own reader, and
checks that everything that was once written stays. With h5py it repeatedly opens the journal, metrics.h5 and the
checkpoints, while the study runs and after each kill: each must be readable, and reading must change nothing. Most studies are
deterministic, and use another number of ranks in each start: their results must equal those of a run without a kill.

    kill_runs.py PROGRAM KILLS [SEED] [--survive] [--deterministic] [--srun TESTBED | --mpirun WORDS]
                 [--most-ranks N] [--sweep]

--survive: the launcher is told to outlive ranks, only workers are killed (or frozen, some of which are let go), and each study must end
with its first start. --most-ranks: of a trial in these studies (default 3).

--deterministic: all of them are. --srun: under srun on the Slurm that `tools/slurm-testbed start --directory TESTBED` has
started. --mpirun: the launcher (default "mpirun --quiet --oversubscribe --bind-to none"). --sweep:
removes files that Open MPI leaves behind for killed ranks; they are counted and listed in any case. Ends with a line of figures; the
exit code is 0 when nothing went wrong.
"""
import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

try:
    import h5py
except ImportError:
    h5py = None

STUDY = """[study]
name = "killed"
metric = "score"
mode = "max"
num_trials = {trials}
max_iterations = {iterations}
max_concurrent = {slots}
seed = {seed}
[trainable]
builtin = "curve"
seconds = {seconds}
state_bytes = 20000
[resources]
ranks = {ranks}
[searcher]
type = "random"
[space]
lr = "loguniform(1e-4, 1.0)"
[scheduler]
{scheduler}
[checkpoint]
interval = {interval}
[run]
heartbeat_timeout = "6s"
abort_grace = "2s"
"""
SCHEDULERS = {"promote": 'type = "asha"', "stop": 'type = "asha"\nvariant = "stop"', "fifo": 'type = "fifo"'}
PATIENCE = 120  # seconds for one run to end
KILLS_PER_STUDY = 6


class Wrong(Exception):
    pass


def frames(path):
    """Bytes of the frames of a segment in order, up to the first that does not continue; the reader knows no HDF5."""
    with open(path, "rb") as file:
        data = file.read()
    page = next((at for at in range(0, min(len(data), 69632), 4096) if data[at:at + 8] == b"RTJOURNL"), None)
    if page is None:
        raise Wrong(f"{path} has no header page")
    at, found, chain = page + 4096, [], None
    while data[at:at + 2] == b"RF":
        size = (24 + int.from_bytes(data[at + 12:at + 16], "little") + 7) // 8 * 8
        if chain is not None and data[at + 16:at + 20] != chain:
            break
        chain = data[at + 2:at + 6]
        found.append(data[at:at + size])
        at += size
    return data[page:page + 4096], found


def read_all(group):
    """Every data set and attribute below a group."""
    for value in group.attrs.values():
        del value
    for item in group.values():
        if isinstance(item, h5py.Group):
            read_all(item)
        else:
            item[()]
            for value in item.attrs.values():
                del value


class Observer(threading.Thread):
    """Reads the journal repeatedly. A frame must not change once another one follows or the run has been killed (the newest
    frame may be seen half written)."""

    def __init__(self, directory):
        super().__init__(daemon=True)
        self.directory = directory
        self.journal = os.path.join(directory, "journal")
        self.seen = {}
        self.openings = {"journal": 0, "metrics": 0, "checkpoints": 0}
        self.problems = []
        self.stop = threading.Event()

    def run(self):
        while not self.stop.wait(0.1):
            try:
                self.look()
            except FileNotFoundError:
                pass  # a segment published ahead, and removed at the end
            except (Wrong, OSError) as error:
                self.problems.append(str(error))

    def look(self, final=False):
        if not os.path.isdir(self.journal):
            return
        self.look_at_others()
        for name in sorted(n for n in os.listdir(self.journal) if n.endswith(".h5")):
            path = os.path.join(self.journal, name)
            header, found = frames(path)
            before_header, before = self.seen.get(name, (header, []))
            if before and header != before_header:
                raise Wrong(f"the header of {name} has changed")
            if found[:len(before)] != before:
                raise Wrong(f"{name}: {len(before)} frames were seen, now they differ")
            self.seen[name] = (header, found if final else found[:-1] or before)
            if h5py is not None:
                with h5py.File(path, "r") as file:
                    self.openings["journal"] += int(file["records"].shape[0] > 0)

    def look_at_others(self):
        """Opens metrics.h5 and every checkpoint, and reads everything in them. These files are replaced by rename and never
        changed: if the inode is the same before and after, bytes and modification time must be, too."""
        if h5py is None:
            return
        found = [("metrics", os.path.join(self.directory, "metrics.h5"))]
        for folder, _, names in os.walk(os.path.join(self.directory, "checkpoints")):
            found += [("checkpoints", os.path.join(folder, name)) for name in sorted(names) if name.endswith(".h5")]
        for kind, path in found:
            if self.open_one(path):
                self.openings[kind] += 1

    def open_one(self, path):
        try:
            with open(path, "rb") as whole:  # keeps the inode, whatever happens to the name
                before = os.fstat(whole.fileno())
                digest = hashlib.sha256(whole.read()).digest()
                try:
                    with h5py.File(path, "r") as file:
                        read_all(file)
                except (OSError, RuntimeError, KeyError) as error:
                    if os.path.exists(path):
                        raise Wrong(f"h5py cannot read {path}: {error}") from error
                    return False  # released or replaced in between
                after = os.fstat(whole.fileno())
                whole.seek(0)
                if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size) or \
                        hashlib.sha256(whole.read()).digest() != digest:
                    raise Wrong(f"{path} has changed while it was read")
        except FileNotFoundError:
            return False
        return True

    def check_cuts(self):
        """The valid part of a segment, as a later head states it, may not be shorter than what was seen of it."""
        for name, (header, _) in self.seen.items():
            ahead, segment = (int.from_bytes(header[at:at + 4], "little") for at in (40, 48))
            cut = int.from_bytes(header[56:64], "little")
            _, before = self.seen.get(f"{segment:06}.h5", (b"", []))
            size = 4096 + sum(map(len, before))
            if not ahead and segment and cut < size:
                raise Wrong(f"{name} cuts segment {segment} at {cut}, but {size} bytes of it were seen")


def mpirun_environment():
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "OMPI_", "PMIX_", "PMI_"))}
    environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1",
                       OMPI_MCA_btl_vader_single_copy_mechanism="none")
    return environment


def srun_environment(testbed):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "slurm-testbed")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "OMPI_", "PMIX_", "PMI_"))}
    text = subprocess.run([program, "env", "--directory", testbed], check=True, capture_output=True, text=True).stdout
    for word in text.replace("export ", "").split():
        name, _, value = word.partition("=")
        environment[name] = value
    return environment


def outlive(environment, srun):
    """As `ranktune supervise` tells the launcher."""
    environment.update({"SLURM_KILL_BAD_EXIT": "0", "SLURM_NO_KILL": "set"} if srun else {"OMPI_MCA_orte_enable_recovery": "1"})


def rank_of(pid):
    """Of a process that a launcher started, else None."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            for value in file.read().split(b"\0"):
                if value.startswith((b"OMPI_COMM_WORLD_RANK=", b"SLURM_PROCID=", b"PMI_RANK=")):
                    return int(value.split(b"=")[1])
    except OSError:
        pass
    return None


def processes_in(folder):
    """The living processes that work in this folder: {pid: rank}, without a rank those that a launcher did not start."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd") != folder:
                continue
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] not in "ZX":
                    found[int(pid)] = rank_of(pid)
        except OSError:
            continue
    return found


def send(pid, number):
    """This signal, if the process is still there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Study:
    VICTIMS = ["head", "worker", "launcher", "all"]

    def __init__(self, program, number, rng, launch):
        self.program = program
        self.rng = rng
        self.launch = launch
        self.base = tempfile.mkdtemp(prefix="ranktune-kill-")
        self.directory = os.path.join(self.base, "study")
        self.file = os.path.join(self.base, "study.toml")
        text = self.draw(number)
        with open(self.file, "w") as file:
            file.write(text)
        self.observer = Observer(self.directory)
        self.compared = False

    def draw(self, number):
        """Draws what kind of study this is; returns its file."""
        rng = self.rng
        self.kind = rng.choice(["promote", "stop"] if self.launch.deterministic else sorted(SCHEDULERS))
        self.deterministic = self.launch.deterministic or (self.kind != "fifo" and rng.random() < 0.75)
        self.ranks = rng.choice([1, 1, 2])
        return STUDY.format(trials=rng.choice([8, 16]), iterations=9, seed=number, ranks=self.ranks,
                            slots=rng.choice([1, 2, 3, 5]), interval=rng.choice([1, 3]),
                            seconds=rng.choice([0.01, 0.03]), scheduler=SCHEDULERS[self.kind])

    def name(self):
        return self.kind + (", deterministic" if self.deterministic else "")

    def workers(self):
        return self.ranks * self.rng.choice([1, 2, 3] if self.deterministic else [1, 2])

    def start(self, directory=None):
        workers = self.workers()
        command = [self.program, "run", self.file, "-o", directory or self.directory, "-q"]
        if self.deterministic:
            command.append("--deterministic")
        if self.launch.srun:
            launcher = ["srun", "--mpi=pmix", "-n", str(workers + 1), "--time=10", "--wait=60", "-Q", "-J", os.path.basename(self.base)]
        else:
            launcher = [*self.launch.mpirun.split(), "-n", str(workers + 1)]
        return subprocess.Popen(launcher + command, cwd=self.base, env=self.launch.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def processes(self):
        """Process ids of this study: {"launcher": [...], "head": [...], "worker": [...]}."""
        found = {"launcher": [], "head": [], "worker": []}
        for pid, rank in processes_in(self.base).items():
            found[{None: "launcher", 0: "head"}.get(rank, "worker")].append(pid)
        return found

    def targets(self, whom):
        processes = self.processes()
        if whom == "all":
            return sum(processes.values(), [])
        return processes[whom] if whom != "worker" or not processes[whom] else [self.rng.choice(processes[whom])]

    def kill(self, whom):
        targets = self.targets(whom)
        for pid in targets:
            send(pid, signal.SIGKILL)
        return bool(targets)

    def ended(self, process):
        """Waits for mpirun, and for every process of the study: none may stay behind. Returns mpirun's exit code."""
        try:
            output, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            left = self.processes()
            self.kill("all")
            output, _ = process.communicate()
            if left["head"] or left["worker"] or self.launch.srun:
                raise Wrong(f"it hung for {PATIENCE} s: {left}") from None
            self.launch.locked_up += 1  # all ranks have ended; `ranktune supervise` would have killed the launcher
        if self.launch.srun:  # a killed srun leaves its job behind, which would block the nodes for the next one
            subprocess.run(["scancel", "--name", os.path.basename(self.base)], env=self.launch.environment, timeout=PATIENCE)
        deadline = time.monotonic() + 60
        while any(self.processes().values()):
            if time.monotonic() > deadline:
                left = self.processes()
                self.kill("all")
                raise Wrong(f"processes stayed behind: {left}")
            time.sleep(0.05)
        return process.returncode, output.decode(errors="replace")

    def verb(self, *arguments):
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True, timeout=PATIENCE, cwd=self.base)
        if done.returncode != 0:
            raise Wrong(f"ranktune {' '.join(arguments)}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def run(self, kills, tally):
        self.observer.start()
        for n in range(kills):
            process = self.start()
            whom = self.rng.choice(self.VICTIMS)
            deadline = time.monotonic() + self.rng.uniform(0.05, 2.5)
            while time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.01)
            hit = process.poll() is None and self.kill(whom)
            code, output = self.ended(process)
            if hit:
                self.look_after_a_kill()
                tally[whom] = tally.get(whom, 0) + 1
            elif code != 0:
                raise Wrong(f"start {n + 1} ended by itself with exit code {code}: {output}")
            else:
                break  # it was finished before it could be killed
        code, output = self.ended(self.start())
        self.observer.stop.set()
        self.observer.join()
        if code != 0:
            raise Wrong(f"the last start ended with exit code {code}: {output}")
        self.observer.look()
        self.observer.check_cuts()
        if self.observer.problems:
            raise Wrong("; ".join(self.observer.problems[:3]))
        self.check()

    def export(self):
        return json.loads(self.verb("export", "study", "--format", "json"))

    def look_after_a_kill(self):
        """The files must be readable right after a kill, before any clean-up."""
        try:
            self.observer.look_at_others()
        except Wrong as error:
            self.observer.problems.append(f"after a kill: {error}")

    def check(self):
        self.verb("replay", "study", "--verify")
        whole = self.export()
        open_trials = [t["id"] for t in whole["trials"] if t["state"] not in ("finished", "stopped", "failed")]
        if open_trials:
            raise Wrong(f"trials {open_trials} never ended")
        for file in ("lease", "stop"):
            if os.path.exists(os.path.join(self.directory, file)):
                raise Wrong(f"the file {file} is left")
        if self.kind != "fifo" and not self.deterministic:
            return
        # Without decisions that depend on the order of arrival, the result must be that of an undisturbed run.
        self.compared = True
        code, output = self.ended(self.start(os.path.join(self.base, "undisturbed")))
        if code != 0:
            raise Wrong(f"the undisturbed run ended with exit code {code}: {output}")
        if self.verb("replay", "study", "--logical-digest") != self.verb("replay", "undisturbed", "--logical-digest"):
            raise Wrong("the result is not that of an undisturbed run")


class Survivor:
    """Before a kind of study: its workers are killed, frozen, or frozen and let go, one or two at once, while it runs; nothing starts it
    again, and each costs at most one attempt of one trial."""
    FATES = ["killed"] * 8 + ["frozen", "thawed"]

    def draw(self, number):
        text = super().draw(number)
        self.ranks = self.rng.randint(1, self.launch.most_ranks)
        other = {"ranks": self.ranks, "num_trials": 40, "seconds": 0.03}
        lines = [f"{key} = {other[key]}" if (key := line.split(" = ")[0]) in other else line for line in text.splitlines()]
        return "\n".join(lines) + "\n"

    def workers(self):
        return 2 * self.ranks + 2  # whichever two die, a group is left

    def strike(self, tally):
        workers = self.processes()["worker"]
        if not workers:
            return
        fate = self.rng.choice(self.FATES)
        victim = self.rng.choice(workers)
        send(victim, signal.SIGKILL if fate == "killed" else signal.SIGSTOP)
        if fate == "thawed":
            timer = threading.Timer(self.rng.uniform(0.5, 8.0), send, [victim, signal.SIGCONT])
            timer.daemon = True
            timer.start()
        self.struck += 1
        tally[fate] = tally.get(fate, 0) + 1

    def run(self, kills, tally):
        self.struck = 0
        self.observer.start()
        process = self.start()
        while process.poll() is None and not os.path.exists(os.path.join(self.directory, "status")):
            time.sleep(0.01)
        at_once = self.rng.random() < 0.3
        for victim in range(min(2, kills)):
            if victim == 0 or not at_once:
                time.sleep(self.rng.uniform(0.0, 1.0))
            if process.poll() is None:
                self.strike(tally)
        code, output = self.ended(process)
        self.observer.stop.set()
        self.observer.join()
        # The code of such a launcher; what counts is the file. (That of Open MPI 5 trips over descriptors of the dead.)
        of_the_dead = self.launch.srun or any(word in self.launch.mpirun for word in ("I_MPI_FAULT_CONTINUE", "--with-ft"))
        if code != 0 and not of_the_dead:
            raise Wrong(f"it ended with exit code {code}: {output}")
        starts = [name for name in os.listdir(os.path.join(self.directory, "logs")) if name.endswith(".log") and "start" in name]
        outcome = dict(line.split("=", 1) for line in open(os.path.join(self.directory, "outcome")).read().splitlines())
        if outcome["exit"] != "0" or len(starts) != 1:
            raise Wrong(f"outcome {outcome}, starts {starts}: {output}")
        with open(os.path.join(self.directory, "logs", starts[0])) as file:
            lost = file.read().count(" outcome=lost ")
        if lost > self.struck:
            raise Wrong(f"{self.struck} workers were struck, but {lost} attempts were lost")
        if self.observer.problems:
            raise Wrong("; ".join(self.observer.problems[:3]))
        self.check()


def shared_memory():
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def dead_sessions():
    """Session folders of mpirun, of this user on this machine, whose process is gone."""
    folder = os.path.join(tempfile.gettempdir(), f"ompi.{socket.gethostname()}.{os.geteuid()}")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return {os.path.join(folder, name) for name in names
            if name.startswith("pid.") and not os.path.exists("/proc/" + name.removeprefix("pid."))}


def unused(names):
    """Those that no living process has mapped."""
    mapped = ""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/maps") as file:
                mapped += file.read()
        except OSError:
            pass
    return sorted(n for n in names if f"/dev/shm/{n}" not in mapped)


def left_for_good(names, patience=20):
    """Those that stay for a while: files of another run that is starting or ending do not count."""
    end = time.monotonic() + patience
    while names and time.monotonic() < end:
        time.sleep(0.5)
        names = [name for name in unused(names) if os.path.exists(f"/dev/shm/{name}")]
    return names


def main(description=__doc__, study_class=Study):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("kills", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--survive", action="store_true")
    parser.add_argument("--deterministic", action="store_true")
    parser.add_argument("--srun", metavar="TESTBED")
    parser.add_argument("--mpirun", default="mpirun --quiet --oversubscribe --bind-to none", metavar="WORDS")
    parser.add_argument("--most-ranks", type=int, default=3, metavar="N")
    parser.add_argument("--sweep", action="store_true", help="remove what Open MPI leaves")
    launch = parser.parse_args()
    launch.environment = srun_environment(launch.srun) if launch.srun else mpirun_environment()
    if launch.survive:
        outlive(launch.environment, launch.srun)
        study_class = type("Survivor", (Survivor, study_class), {})
    launch.environment["RANKTUNE_LAST_END"] = "outside"  # no trial is at fault
    launch.locked_up = 0  # number of launchers that did not end after all their ranks: a rank that dies in MPI_Init may cause that
    program, kills, seed = os.path.abspath(launch.program), launch.kills, launch.seed
    before, sessions = shared_memory(), dead_sessions()
    tally, wrong, studies, compared, begin = {}, 0, 0, 0, time.monotonic()
    openings = {"journal": 0, "metrics": 0, "checkpoints": 0}
    while sum(tally.values()) < kills:
        studies += 1
        study = study_class(program, seed + studies, random.Random(seed + studies), launch)
        try:
            study.run(min(KILLS_PER_STUDY, kills - sum(tally.values())), tally)
            shutil.rmtree(study.base)
        except Exception as error:  # report the failure, keep the files, go on with the next study
            wrong += 1
            print(f"study {seed + studies} ({study.name()}, {study.base}): {error}", flush=True)
            study.observer.stop.set()
            study.kill("all")
            if wrong >= 5:
                break
        compared += study.compared
        for kind, count in study.observer.openings.items():
            openings[kind] += count
    new = shared_memory() - before
    left = left_for_good([n for n in unused(new) if "ranktune" in n])
    if left:
        print(f"left in /dev/shm: {left}")
    # Open MPI cannot remove its segments and session folders when all its processes are killed.
    foreign = [f"/dev/shm/{name}" for name in unused(n for n in new if n.startswith("vader_segment"))]
    foreign += sorted(dead_sessions() - sessions)
    if foreign and launch.sweep:
        for path in foreign:
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    elif foreign:
        print(f"left by Open MPI (--sweep removes it): rm -rf {' '.join(foreign)}")
    figures = ", ".join(f"{who} {count}" for who, count in sorted(tally.items()))
    opened = "no h5py" if h5py is None else \
        f"{sum(openings.values())} openings by h5py (" + ", ".join(f"{kind} {count}" for kind, count in openings.items()) + ")"
    print(f"{sum(tally.values())} kills ({figures}) of {studies} studies under {'srun' if launch.srun else 'mpirun'}, {wrong} wrong, "
          f"{compared} compared with an undisturbed run, {len(left)} files left in /dev/shm, "
          f"{launch.locked_up} mpiruns locked up after the end of all ranks, {len(foreign)} segments and session folders left by Open MPI{' and removed' if launch.sweep else ''}, {opened}; "
          f"seed {seed}; {time.monotonic() - begin:.0f} s")
    return 1 if wrong or left else 0


if __name__ == "__main__":
    sys.exit(main())
