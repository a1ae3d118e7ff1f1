#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Studies that end early and go on, as a user sees them: resume_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import unittest

from cli_test import PROGRAM, TIMEOUT, Case, environment, sys
from kills import Kills

STUDY = """[study]
name = "long"
metric = "score"
mode = "max"
num_trials = 4
max_iterations = 12
seed = 1
[trainable]
builtin = "curve"
seconds = {seconds}
state_bytes = 1000
[searcher]
type = "random"
[space]
lr = "loguniform(1e-3, 1.0)"
[scheduler]
type = "{scheduler}"
{more}
"""


# Saves after every iteration, and fails in the fourth until somebody mends it.
PROGRAM_STUDY = """[study]
name = "program"
metric = "score"
mode = "max"
num_trials = 2
max_iterations = 6
seed = 1
[trainable]
command = "python3 train.py"
[space]
x = "uniform(0, 1)"
[checkpoint]
interval = 1
"""
TRAIN = """
import json, os, socket, sys
head = socket.socket(fileno=int(os.environ["RANKTUNE_FD"]))
answers = head.makefile("r")
start = os.environ.get("RANKTUNE_CHECKPOINT")
iteration = int(open(start).read()) if start else 0
while True:
    iteration += 1
    if iteration == 4 and not os.path.exists("mended"):
        sys.exit("not mended")
    path = os.path.join(os.environ["RANKTUNE_CHECKPOINT_DIR"], f"state-{iteration}")
    with open(path, "w") as file:
        file.write(str(iteration))
    head.sendall((json.dumps({"report": {"score": iteration}, "checkpoint": path}) + "\\n").encode())
    if json.loads(answers.readline())["decision"] != "continue":
        break
"""


class Long(Kills, Case):
    """A study that takes some seconds."""

    def study(self, seconds=0.1, scheduler="fifo", more=""):
        self.write("long.toml", STUDY.format(seconds=seconds, scheduler=scheduler, more=more))

    def wait_for_a_commit(self, directory="long"):
        """Until the file `status` knows of reports that have reached the disk, and a later report says so, too."""
        def synced():
            file = self.cwd / directory / "status"
            return json.loads(file.read_text())["records_synced"] if file.exists() else 0
        self.wait_until(lambda: synced() > 2, "a commit")
        seen = self.reports(directory)
        self.wait_until(lambda: self.reports(directory) > seen + 1, "reports after it")

    def start(self, *arguments, directory="long", workers=2, reports=3, **changes):
        """Starts the study and waits until it has so many reports of its own."""
        before = self.reports(directory)
        process = subprocess.Popen([PROGRAM, "run", "long.toml", "--local", str(workers), "-o", directory, *arguments],
                                   cwd=self.cwd, env=environment(**changes), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.addCleanup(self.end, process)
        deadline = time.monotonic() + TIMEOUT
        while self.reports(directory) < before + reports:
            self.assertIsNone(process.poll(), "it ended by itself")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        return process

    def end(self, process):
        self.kill_all()
        process.wait()
        process.stdout.close()

    def status(self, directory="long"):
        done = subprocess.run([PROGRAM, "status", directory, "-f", "json"], cwd=self.cwd, env=environment(),
                              capture_output=True, text=True, timeout=TIMEOUT)
        if done.returncode == 0:
            return json.loads(done.stdout)
        return {"reports": 0, "states": {"running": 0}, "stopping": None}  # the study is about to begin

    def reports(self, directory="long"):
        return self.status(directory)["reports"]


class Resume(Long):
    def digest(self, directory):
        return self.ranktune("replay", directory, "--logical-digest")[0]

    def check_files(self, directory="long"):
        """The checkpoints are those that the journal names; no temporary files are left."""
        whole = self.exported(directory)
        named = {c["path"] for t in whole["trials"] for c in t.get("checkpoints", [])} or \
                {t["checkpoint"] for t in whole["trials"] if t.get("checkpoint")}
        there = {str(p.relative_to(self.cwd / directory)) for p in (self.cwd / directory).glob("checkpoints/*/*")}
        self.assertEqual(there, named)
        self.assertEqual(list((self.cwd / directory).rglob("*.tmp")), [])
        self.assertFalse((self.cwd / directory / "lease").exists())

    def test_a_stopped_study_goes_on_with_other_ranks_and_ends_as_if_nothing_had_been(self):
        self.study()
        process = self.start()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 75, out)
        self.assertRegex(out, r"(?m)^next +ranktune run long +# goes on$")
        self.assertEqual(self.outcome("long")["start"], "1")
        orphan = self.cwd / "long" / "checkpoints" / "0" / "99-1.1.h5"
        orphan.parent.mkdir(exist_ok=True)
        orphan.write_bytes(b"written, and never committed")
        out, _ = self.ranktune("run", "long.toml", "--local", "3")
        self.assertRegex(out, r"(?m)^resuming long: start 2; start 1 ended at \S+Z: Ctrl-C")
        self.assertRegex(out, r"(?m)^journal   \d+ records$")
        self.assertRegex(out, r"(?m)^trials    ")
        self.assertRegex(out, r"(?m)^ranks     3 -> 4 \(2 groups -> 3\) on ")
        self.assertRegex(out, r"(?m)^long finished in ")
        self.assertEqual({k: self.outcome("long")[k] for k in ("exit", "start", "progress")},
                         {"exit": "0", "start": "2", "progress": "true"})
        self.assertFalse(orphan.exists())
        self.check_files()
        for name in ("start-1.log", "start-2.log", "start-1.env.json", "start-2.env.json"):
            self.assertTrue((self.cwd / "long" / "logs" / name).is_file(), name)
        self.ranktune("run", "long.toml", "--local", "1", "-o", "undisturbed", "-q")
        self.assertEqual(self.digest("long"), self.digest("undisturbed"))
        for directory in ("long", "undisturbed"):
            self.assertRegex(self.ranktune("replay", directory, "--verify")[0], r"^verified: \d+ records")

    def test_a_killed_study_goes_on(self):
        self.study(seconds=0.3, scheduler="asha", more="first_rung = 2")
        for start in (1, 2):
            process = self.start()
            seen = self.reports()
            self.kill_all()
            process.wait(TIMEOUT)
            self.assertGreaterEqual(self.reports(), seen)
        out, _ = self.ranktune("run", "long", "--local", "2")  # the directory instead of the file
        self.assertRegex(out, r"(?m)^resuming long: start 3; start 2 was cut off without a word")
        self.assertRegex(out, r"(?m)^trials .*\b(was|were) running: #\d+ goes on from it \d+")
        self.assertEqual(self.outcome("long")["exit"], "0")
        self.check_files()
        self.assertRegex(self.ranktune("replay", "long", "--verify")[0], r"^verified: \d+ records")
        for wrong in (["--until", "-3"], ["--until=-3"], ["--until", "few"]):
            self.assertIn("a number of records", self.ranktune("replay", "long", *wrong, code=2)[1])

    def test_a_killed_study_goes_on_without_file_locks(self):
        """As on a Lustre or NFS without locks, where a site sets this variable; the undisturbed run has them."""
        self.study()
        process = self.start(HDF5_USE_FILE_LOCKING="FALSE")
        self.kill_all()
        process.wait(TIMEOUT)
        out, _ = self.ranktune("run", "long.toml", "--local", "2", HDF5_USE_FILE_LOCKING="FALSE")
        self.assertRegex(out, r"(?m)^resuming long: start 2; start 1 was cut off without a word")
        self.check_files()
        facts = json.loads((self.cwd / "long" / "logs" / "start-2.env.json").read_text())
        self.assertIn('"HDF5_USE_FILE_LOCKING": "FALSE"', json.dumps(facts))
        self.ranktune("run", "long.toml", "--local", "1", "-o", "undisturbed", "-q")
        self.assertEqual(self.digest("long"), self.digest("undisturbed"))

    def test_failed_trials_go_on_from_their_last_checkpoint(self):
        self.write("program.toml", PROGRAM_STUDY)
        self.write("train.py", TRAIN)
        self.ranktune("run", "program.toml", "--local", "1", "-q", code=4)
        self.assertEqual(self.status("program")["states"]["failed"], 2)
        (self.cwd / "mended").touch()
        out, _ = self.ranktune("run", "program.toml", "--local", "1", "--resume-errored")
        self.assertIn("2 failed", out)
        whole = self.exported("program")
        for trial in whole["trials"]:
            self.assertEqual([attempt["from_iteration"] for attempt in trial["attempts"]], [0, 3], trial)
            self.assertEqual((trial["state"], trial["iterations"]), ("finished", 6))
        self.ranktune("replay", "program", "--verify")

    def test_a_study_moves_with_its_data_and_other_data_are_refused(self):
        few = ["study.num_trials=2", "study.max_iterations=2", "--local", "2"]
        self.cwd = self.cwd / "here"
        self.cwd.mkdir()
        self.ranktune("init", "digits")
        self.ranktune("run", "digits.toml", *few, "-q")
        self.assertRegex((self.cwd / "digits" / "resolved.toml").read_text(),
                         r'(?m)^\[inputs\]\ndata = "\d+ bytes, XXH64 [0-9a-f]{16}"$')
        self.cwd = self.cwd.rename(self.cwd.parent / "there")
        few[0] = "study.num_trials=3"
        out, _ = self.ranktune("run", "digits.toml", *few)
        self.assertRegex(out, r"(?m)^(changed +|          )trainable\.data \S*here/digits\.h5\S*\s+->\s+\S*there/digits\.h5")
        self.assertEqual(self.status("digits")["trials"], 3)
        data = bytearray((self.cwd / "digits.h5").read_bytes())
        data[len(data) // 2] ^= 1
        (self.cwd / "digits.h5").write_bytes(data)
        few[0] = "study.num_trials=4"
        _, err = self.ranktune("run", "digits.toml", *few, code=2)
        self.assertRegex(err, r"the file of trainable\.data holds something else   .* -> ")
        self.assertNotIn("inputs.data", err)
        self.assertEqual(self.status("digits")["trials"], 3)
        self.ranktune("replay", "digits", "--verify")

    def test_a_finished_study_says_so_and_can_be_extended_or_begun_again(self):
        self.run_tiny("-q")
        before = sorted(self.cwd.rglob("*"))
        out, _ = self.run_tiny()
        self.assertRegex(out, r"^tiny is finished \(6 trials, exit 0\): nothing was started\n")
        self.assertIn("ranktune run tiny study.num_trials=12", out)
        self.assertIn("--fresh", out)
        self.assertEqual(sorted(self.cwd.rglob("*")), before)
        out, _ = self.run_tiny("study.num_trials=9")
        self.assertRegex(out, r"(?m)^changed   study\.num_trials 6 -> 9 \(taken over\)$")
        status = self.status("tiny")
        self.assertEqual((status["trials"], status["exit_code"]), (9, 0))
        self.ranktune("replay", "tiny", "--verify")
        out, _ = self.run_tiny("--fresh")
        self.assertIn("the study that was in tiny is now in tiny~1", out)
        self.assertEqual(self.status("tiny~1")["trials"], 9)
        self.assertEqual(self.status("tiny")["trials"], 6)

    def test_a_changed_study_file_is_compared_key_by_key(self):
        self.run_tiny("-q")
        _, err = self.run_tiny("study.seed=2", "scheduler.eta=4", "failure.tolerate=0.5", code=2)
        self.assertIn("  study.seed   1 -> 2\n", err)
        self.assertIn("  scheduler.eta   3.0 -> 4.0\n", err)
        self.assertNotIn("tolerate", err)
        self.assertIn("--fresh", err)
        _, err = self.run_tiny("study.num_trials=5", code=2)
        self.assertIn("study.num_trials: 6 trials have been created in 'tiny' already, so it cannot be 5. To go on with the study as "
                      "it is: ranktune run tiny; with its study file: num_trials = 6 under [study] there, or study.num_trials=6 on the "
                      "command line (exit 2)\n", err)
        text = (self.cwd / "tiny.toml").read_text()
        self.write(text=text.replace("1e-3, 1.0", "0.9, 1.0"))
        _, err = self.run_tiny(code=2)
        self.assertIn('space.lr   "loguniform(0.001, 1.0)" -> "loguniform(0.9, 1.0)"', err)
        self.assertRegex(err, r"\[space\] can grow, but every configuration so far has to lie in it: trial \d: lr = \S+ is not in")
        self.write(text=text.replace("1e-3, 1.0", "1e-4, 2.0"))
        out, _ = self.run_tiny("study.num_trials=9")
        self.assertIn('space.lr "loguniform(0.001, 1.0)" -> "loguniform(0.0001, 2.0)" (taken over)', " ".join(out.split()))
        self.ranktune("replay", "tiny", "--verify")

    def test_a_study_keeps_its_searcher_when_the_file_names_none(self):
        def searcher():
            return re.search(r'\[searcher\]\ntype = "(\w+)"', (self.cwd / "tiny" / "resolved.toml").read_text())[1]
        self.run_tiny("-q", "searcher.type=sobol", "searcher.avoid_duplicates=true")
        out, _ = self.run_tiny("study.num_trials=8")
        self.assertNotIn("searcher", out.split("num_trials")[0])
        self.assertEqual((self.status("tiny")["trials"], searcher()), (8, "sobol"))
        self.assertIn("avoid_duplicates = true", (self.cwd / "tiny" / "resolved.toml").read_text())
        self.ranktune("replay", "tiny", "--verify")
        _, err = self.run_tiny("searcher.type=auto", code=2)
        self.assertIn('searcher.type   "sobol" -> "auto"', err)
        self.run_tiny("-q", "--fresh")
        self.assertEqual(searcher(), "auto")

    def test_failed_trials_get_another_chance(self):
        failing = ["trainable.fail_rate=0.5", "trainable.fail_iteration=2", "scheduler.type=fifo"]
        self.run_tiny(*failing, "-q", code=3)
        failed = self.status("tiny")["states"]["failed"]
        out, _ = self.run_tiny(*failing, code=3)
        self.assertIn("--restart-errored", out)
        out, _ = self.run_tiny(*failing, "--restart-errored", code=3)  # told to fail, they fail again
        self.assertRegex(out, rf"(?m)^trials .* {failed} failed ones? (is|are) tried again$|\bagain$")
        whole = self.exported("tiny")
        attempts = sorted(len(t["attempts"]) for t in whole["trials"])
        self.assertEqual(attempts, sorted([1] * (6 - failed) + [2] * failed))
        self.ranktune("replay", "tiny", "--verify")

    def test_retries_inside_a_run(self):
        self.run_tiny("trainable.fail_rate=0.5", "trainable.fail_iteration=2", "scheduler.type=fifo",
                      "failure.max_failures=3", "-q", code=3)
        whole = self.exported("tiny")
        # The same error at the same iteration is not tried a third time.
        self.assertEqual({len(t["attempts"]) for t in whole["trials"]}, {1, 2})

    def test_two_runs_on_one_directory(self):
        self.study(seconds=0.6)
        process = self.start(reports=1)
        _, err = self.ranktune("run", "long.toml", "--local", "1", code=2)
        self.assertRegex(err, r"is being run already: host \S+, pid \d+; nothing was started")
        _, err = self.ranktune("run", "long.toml", "--local", "1", "--fresh", code=2, HDF5_USE_FILE_LOCKING="FALSE")
        self.assertIn("is being run already", err)
        self.assertFalse((self.cwd / "long~1").exists())
        out, _ = self.ranktune("stop", "long")
        self.assertRegex(out, r"^asked host \S+, pid \d+ to stop")
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 75, out)
        self.assertIn("nothing runs in 'long'", self.ranktune("stop", "long", code=2)[1])
        self.assertIn("holds no study", self.ranktune("stop", ".", code=2)[1])
        self.assertFalse((self.cwd / "long" / "stop").exists())
        self.ranktune("run", "long.toml", "--local", "2", "-q")
        self.check_files()

    def test_a_stop_that_takes_long_is_seen(self):
        self.study(seconds=20)
        process = self.start(reports=0)
        deadline = time.monotonic() + TIMEOUT
        while self.status()["states"]["running"] < 1:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        self.assertNotIn("stopping", self.ranktune("status", "long")[0])
        self.assertIsNone(self.status()["stopping"])
        self.assertRegex(self.ranktune("stop", "long")[0], r"^asked host \S+, pid \d+ to stop")
        while self.status()["stopping"] is None:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        self.assertEqual(self.status()["stopping"], "ranktune stop")
        self.assertRegex(self.ranktune("status", "long")[0],
                         r"(?m)^stopping for \d+(\.\d)?s \(ranktune stop\): waits until #0(, #1)? (has|have) reported and saved$")
        out, _ = self.ranktune("stop", "long")
        found = re.fullmatch(r"host (\S+), pid (\d+) is stopping for \S+s \(ranktune stop\): waits until #0.*\n"
                             r"at once  kill -INT (\d+) on (\S+)  # what was reported stays, .*\n", out)
        self.assertTrue(found, out)
        self.assertEqual((found[1], found[2]), (found[4], found[3]))
        os.kill(int(found[2]), signal.SIGINT)
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual((process.returncode, self.outcome("long")["resumable"]), (75, "true"), out)

    def test_a_stop_by_a_person_counts_beside_the_signal_before_it(self):
        self.study(seconds=4)
        process = self.start(reports=1)
        process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + TIMEOUT
        while self.status()["stopping"] is None:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        self.assertEqual(self.status()["stopping"], "SIGUSR1")
        self.ranktune("stop", "long")
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual((process.returncode, self.outcome("long")["reason"]), (75, "ranktune stop"), out)
        self.assertIn("verified", self.ranktune("replay", "long", "--verify")[0])

    def lease(self, counter):
        text = ("ranktune lease 1\nhost=elsewhere\nboot=b\npid=7\nnamespace=n\nstarted=1\njob=81234\nrestart=0\n"
                f"nonce=abc\ncounter={counter}\n")
        (self.cwd / "tiny").mkdir(exist_ok=True)
        (self.cwd / "tiny" / "lease.new").write_text(text + f"check={crc32c(text.encode())}\n")
        os.rename(self.cwd / "tiny" / "lease.new", self.cwd / "tiny" / "lease")

    def test_the_lease_of_a_head_on_another_node(self):
        self.lease(0)
        done = threading.Event()

        def renew():
            counter = 1
            while not done.wait(1):
                self.lease(counter)
                counter += 1
        holder = threading.Thread(target=renew)
        holder.start()
        self.write()
        try:
            refused = subprocess.run([PROGRAM, "run", "tiny.toml", "--local", "2"], cwd=self.cwd, env=environment(),
                                     capture_output=True, text=True, timeout=TIMEOUT)
        finally:
            done.set()
            holder.join()
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("is being run already: host elsewhere, pid 7, job 81234", refused.stderr)
        begin = time.monotonic()
        _, err = self.run_tiny()  # the counter stands still now
        self.assertGreater(time.monotonic() - begin, 15)
        self.assertIn("watching for up to 15 s", err)

    def test_what_a_kill_at_the_very_end_left_is_swept_by_the_next_start(self):
        self.study(seconds=0.05)
        self.start()
        lease = (self.cwd / "long" / "lease").read_text()
        self.kill_all()
        self.ranktune("run", "long.toml", "--local", "2", "-q")
        self.check_files()
        study = self.cwd / "long"
        outcome = (study / "outcome").read_bytes()
        kept = next(study.glob("checkpoints/*/*"))
        released = kept.with_name("1-9.9.h5")

        def leave(lease):
            (study / "lease").write_text(lease)
            (study / "outcome.reserve").write_text("\n" * 4096)
            (study / "attempts" / "1-9.9").mkdir(parents=True)
            shutil.copy(kept, released)

        def alive(match):
            return f"pid={os.getpid()}\n"
        # Where another head lives, nothing is touched.
        with open("/proc/self/stat") as stat:
            started = stat.read().rsplit(")", 1)[1].split()[19]
        text = re.sub(r"pid=\d+\n", alive, lease.split("check=")[0])
        text = re.sub(r"started=\d+", f"started={started}", text)
        leave(text + f"check={crc32c(text.encode())}\n")
        before = {p: p.stat().st_mtime_ns for p in study.rglob("*") if p.is_file()}
        self.ranktune("run", "long.toml", "--local", "2")
        self.assertEqual({p: p.stat().st_mtime_ns for p in study.rglob("*") if p.is_file()}, before)
        shutil.rmtree(study / "attempts")
        # The lease of a killed head does not block.
        leave(lease)
        self.ranktune("run", "long.toml", "--local", "2")
        self.assertFalse((study / "attempts").exists())
        self.assertFalse((study / "outcome.reserve").exists())
        self.assertFalse(released.exists())
        self.check_files()
        self.assertEqual((study / "outcome").read_bytes(), outcome)
        # Killed before it could write how it ended.
        for name in ("outcome", "metrics.h5"):
            (study / name).unlink()
        self.ranktune("run", "long.toml", "--local", "2")
        self.assertTrue((study / "metrics.h5").exists())
        self.assertEqual(self.outcome("long")["exit"], "0")

    def test_a_run_that_is_refused_ends_with_2_whatever_the_other_one_writes_meanwhile(self):
        self.study(seconds=0.6)
        winner = self.start(reports=1)
        launcher = self.cwd / "bin" / "mpirun"  # the true one, which ends late
        launcher.parent.mkdir()
        launcher.write_text(f'#!/bin/sh\nPATH=${{PATH#*:}}\nmpirun "$@"; code=$?; touch {self.cwd}/refused\n'
                            f'while [ ! -e {self.cwd}/go ]; do sleep 0.05; done; exit $code\n')
        launcher.chmod(0o755)
        loser = subprocess.Popen([PROGRAM, "run", "long.toml", "--local", "2"], cwd=self.cwd, text=True,
                                 env=environment(PATH=f"{launcher.parent}:{os.environ['PATH']}"),
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(loser.stdout.close)
        deadline = time.monotonic() + TIMEOUT
        while not (self.cwd / "refused").exists():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.ranktune("stop", "long")
        self.assertEqual(winner.wait(TIMEOUT), 75)
        self.assertEqual(self.outcome("long")["exit"], "75")
        (self.cwd / "go").touch()
        out, _ = loser.communicate(timeout=TIMEOUT)
        self.assertEqual(loser.returncode, 2, out)
        self.assertIn("is being run already", out)

    def test_checkpoints_that_cannot_be_written(self):
        """A path that cannot be created stands for all I/O errors: it fails for root, too."""
        for scheduler, more in (("asha", ""), ("fifo", "[checkpoint]\ninterval = 3")):
            with self.subTest(scheduler=scheduler):
                self.study(seconds=0.01, scheduler=scheduler, more=more)
                directory = f"blocked-{scheduler}"
                obstacles = [self.cwd / directory / "checkpoints" / str(trial) for trial in range(4)]
                obstacles[0].parent.mkdir(parents=True)
                for obstacle in obstacles:
                    obstacle.write_text("in the way")
                out, _ = self.ranktune("run", "long.toml", "--local", "2", "-o", directory, code=75)
                self.assertEqual(self.outcome(directory)["exit"], "75")
                self.assertNotIn("a rank ended before", out)
                self.assertIn("checkpoints/", self.outcome(directory)["reason"])
                if more:  # training went on in between
                    logs = "".join(p.read_text() for p in (self.cwd / directory / "logs").glob("workers-*"))
                    self.assertIn("training goes on", logs)
                    self.assertGreaterEqual(self.reports(directory), 12)
                for obstacle in obstacles:
                    obstacle.unlink()
                self.ranktune("run", "long.toml", "--local", "2", "-o", directory)
                self.assertEqual(self.outcome(directory)["exit"], "0")
                self.check_files(directory)

    def test_checkpoints_that_were_moved_are_waited_for(self):
        self.study(seconds=0.3, more='[checkpoint]\ninterval = 2')
        process = self.start(reports=4)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 75, out)
        home, moved = self.cwd / "long" / "checkpoints", self.cwd / "moved"
        kept = {p.relative_to(home): p.read_bytes() for p in home.rglob("*.h5")}
        os.rename(home, moved)
        out, _ = self.ranktune("run", "long.toml", "--local", "2", "failure.max_losses=1", code=75)
        self.assertIn("a checkpoint cannot be read, and is kept", " ".join(out.split()))
        self.assertEqual(self.outcome("long")["cause"], "storage")
        home.rmdir()
        os.rename(moved, home)
        self.assertEqual({p.relative_to(home): p.read_bytes() for p in home.rglob("*.h5")}, kept)
        # A truncated file is damaged, and no reason to wait.
        damaged = home / max(kept, key=lambda p: int(p.name.split("-")[0]))
        damaged.chmod(0o644)
        damaged.write_bytes(kept[damaged.relative_to(home)][:1000])
        out, _ = self.ranktune("run", "long.toml", "--local", "2", "failure.max_losses=1")
        self.assertIn("1 checkpoint was damaged and given up", " ".join(out.split()))
        self.assertEqual(self.outcome("long")["exit"], "0")
        self.assertTrue(damaged.exists())  # whoever looks for the damage needs it

    def frames(self):
        """The newest segment: path, and the position of each frame."""
        path = max((self.cwd / "long" / "journal").glob("0*.h5"))
        data = bytearray(path.read_bytes())
        at = data.index(b"RTJOURNL") + 4096
        found = []
        while data[at:at + 2] == b"RF":
            found.append(at)
            at += (24 + int.from_bytes(data[at + 12:at + 16], "little") + 7) // 8 * 8
        return path, data, found

    def test_whole_records_that_are_lost_are_counted(self):
        self.study(seconds=0.1, more='[journal]\ncommit_interval = "1h"')
        process = self.start(reports=8)
        self.kill_all()
        process.wait(TIMEOUT)
        path, data, frames = self.frames()
        self.assertGreater(len(frames), 4)
        data[frames[-2] + 40] ^= 1
        path.chmod(0o644)
        path.write_bytes(data)
        out, _ = self.ranktune("run", "long.toml", "--local", "2")
        words = " ".join(out.split())
        self.assertRegex(words, r"journal \d+ records; the last \d+ records are lost \(at most 1 ?h")
        self.assertNotIn("nothing acknowledged lost", words)
        self.check_files()

    def test_a_study_without_its_journal_is_not_begun_over(self):
        self.run_tiny("-q")
        tables = (self.cwd / "tiny" / "metrics.h5").read_bytes()
        shutil.rmtree(self.cwd / "tiny" / "journal")
        for what in ("tiny.toml", "tiny"):
            _, err = self.ranktune("run", what, "--local", "2", code=2)
            self.assertIn("whose journal is gone", err)
            self.assertIn("--fresh", err)
        (self.cwd / "tiny" / "journal").mkdir()
        self.assertIn("whose journal is gone", self.run_tiny(code=2)[1])
        self.assertEqual((self.cwd / "tiny" / "metrics.h5").read_bytes(), tables)
        self.run_tiny("--fresh", "-q")
        self.assertEqual((self.cwd / "tiny~1" / "metrics.h5").read_bytes(), tables)
        self.assertEqual(self.outcome("tiny")["start"], "1")

    def test_fresh_from_within_and_through_a_link(self):
        self.run_tiny("-q")
        for number, words in enumerate((["run", ".", "--fresh"], ["run", ".", "-o", "../tiny", "--fresh"],
                                        ["run", "../tiny/", "--fresh"]), 1):
            done = subprocess.run([PROGRAM, *words, "--local", "2", "-v"], cwd=self.cwd / "tiny", env=environment(),
                                  capture_output=True, text=True, timeout=TIMEOUT)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertRegex(done.stdout, r"(?m)^files .* \d\d+ files")
            self.assertTrue((self.cwd / f"tiny~{number}" / "outcome").is_file())
            self.assertEqual(self.outcome("tiny")["exit"], "0")
        os.symlink("tiny", self.cwd / "link")
        self.ranktune("run", "tiny.toml", "--local", "2", "-q", "-o", "link", "--fresh")
        self.assertTrue((self.cwd / "link").is_symlink())
        self.assertTrue((self.cwd / "tiny~4" / "outcome").is_file())
        self.assertEqual(self.outcome("link")["exit"], "0")

    def test_an_unfinished_end_is_cut_and_a_damaged_middle_is_refused(self):
        self.study(seconds=0.4)  # it is not over when it is killed: what the last frame says has not been acted upon
        process = self.start(reports=8)
        self.wait_for_a_commit()
        self.kill_all()
        process.wait(TIMEOUT)
        path, data, frames = self.frames()
        whole = bytes(data)
        data[frames[1] + 40] ^= 1
        path.chmod(0o644)
        path.write_bytes(data)
        done = subprocess.run([PROGRAM, "run", "long.toml", "--local", "2"], cwd=self.cwd, env=environment(),
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("is damaged at byte", done.stderr)
        self.assertIn("Restore the file from a backup", done.stderr)
        (self.cwd / "long" / "status").unlink()  # which may know that the last one had reached the disk
        data = bytearray(whole)
        data[frames[-1] + 33:] = bytes(len(data) - frames[-1] - 33)  # the last write got 33 bytes far
        path.write_bytes(data)
        out, _ = self.ranktune("run", "long.toml", "--local", "2")
        self.assertRegex(out, r"(?m)^journal   \d+ records; \d+ bytes of an unfinished one cut, nothing acknowledged")
        self.assertEqual(self.outcome("long")["exit"], "0")
        self.check_files()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
