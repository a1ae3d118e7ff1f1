#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The start of studies, and trials that are very fast: start_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time
import unittest

from cli_test import PROGRAM, TIMEOUT, Case, environment, sys


class Start(Case):
    def launcher(self, script):
        """A program called mpirun, first on PATH; {real} is the one that it hides."""
        self.write()
        folder = self.cwd / "bin"
        folder.mkdir()
        (folder / "mpirun").write_text("#!/bin/sh\n" + script.format(real=shutil.which("mpirun")))
        (folder / "mpirun").chmod(0o755)
        (folder / "mpiexec.mpich").symlink_to("mpirun")
        return environment(PATH=f"{folder}:{os.environ['PATH']}")

    def start(self, env, *arguments):
        return subprocess.Popen([PROGRAM, "run", "tiny.toml", "--local", "2", *arguments], cwd=self.cwd, env=env,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def wait_until(self, what, condition):
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.01)

    def wait_for(self, name):
        self.wait_until(name, (self.cwd / name).exists)

    def test_a_signal_that_a_starting_launcher_loses_still_stops_the_study(self):
        env = self.launcher("trap ': >lost' USR1 USR2\n: >starting\nwhile [ ! -e lost ]; do sleep 0.05; done\n"
                            "trap - USR1 USR2\nexec {real} \"$@\"\n")
        for sent, reason in ((signal.SIGTERM, "SIGTERM"), (signal.SIGHUP, "SIGHUP"), (signal.SIGUSR1, "SIGUSR1"),
                             (signal.SIGINT, "Ctrl-C")):
            for name in ("starting", "lost"):
                (self.cwd / name).unlink(missing_ok=True)
            process = self.start(env, "trainable.seconds=0.2", "study.max_iterations=1000", "scheduler.type=fifo",
                                 "-o", reason)
            self.wait_for("starting")
            process.send_signal(sent)
            out, _ = process.communicate(timeout=TIMEOUT)
            self.assertEqual(process.returncode, 75, out)
            self.assertEqual(self.outcome(reason)["reason"], reason)
            self.assertIn("stopped early, resumable", out)

    def test_a_new_study_leaves_alone_what_is_not_its_own(self):
        self.write()
        kept = {"checkpoints/run1/best.pt": "theirs", "attempts/1/notes": "theirs", "train.py": "theirs",
                "python/mine.py": "theirs", "journal/notes.txt": "theirs"}
        for number, name in enumerate(kept):
            folder = self.cwd / f"d{number}"
            (folder / name).parent.mkdir(parents=True)
            (folder / name).write_text("theirs")
            (folder / "logs").mkdir()
            _, err = self.run_tiny("-o", folder.name, code=2)
            shown = "/".join(name.split("/")[:2])
            self.assertIn(f"is not a study directory and not empty (there is '{shown}')", err)
            self.assertIn("-o ", err)
            self.run_tiny("-o", folder.name, "--fresh", code=2)
            self.assertEqual({p.name for p in folder.iterdir()}, {name.split("/")[0], "logs"})
        self.run_tiny("-o", ".", code=2)

    def test_what_was_expected_in_a_directory_is_no_hindrance(self):
        folder = self.cwd / "given"
        for name in ("logs/slurm-1.out", "submit/jobs", ".hidden", "study.toml"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("# theirs\n")
        self.run_tiny("-o", "given", "-q")
        self.assertEqual((folder / "study.toml~1").read_text(), "# theirs\n")
        self.assertEqual((folder / "study.toml").read_text(), (self.cwd / "tiny.toml").read_text())
        # Files that users add later stay, too.
        later = [folder / name for name in ("checkpoints/mine/best.pt", "checkpoints/0/best.pt", "attempts/mine/notes")]
        for path in later:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("theirs")
        orphan = folder / "checkpoints/0/99-1.1.h5"
        orphan.write_text("of a killed rank")
        self.run_tiny("-o", "given", "-q", "study.num_trials=7")
        self.assertFalse(orphan.exists())
        self.assertTrue(all(path.read_text() == "theirs" for path in later))

    def test_ranks_do_not_wait_for_ever_for_one_that_never_comes(self):
        version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
        if "Open MPI" not in version:
            self.skipTest("needs an mpirun that starts two programs as one job")
        self.write()
        env = environment(RANKTUNE_START_TIMEOUT="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                          OMPI_MCA_btl_vader_single_copy_mechanism="none")
        done = subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2", PROGRAM, "run", "tiny.toml", ":",
                               "-n", "1", "sleep", "1000"], cwd=self.cwd, env=env, capture_output=True, text=True,
                              timeout=TIMEOUT)
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertRegex(done.stderr, r"ranktune: a rank on \S+ has waited 1 s for the other ranks to start, and ends \(exit 75\)")
        self.assertFalse((self.cwd / "tiny").exists())
        env["RANKTUNE_START_TIMEOUT"] = "soon"
        done = subprocess.run(["mpirun", "--oversubscribe", "-n", "2", PROGRAM, "run", "tiny.toml"], cwd=self.cwd, env=env,
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("it needs a number of seconds"), 1, done.stderr)

    def test_ranks_whose_launcher_is_killed_while_they_wait_end_by_themselves(self):
        version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
        if "Open MPI" not in version:
            self.skipTest("needs an mpirun that starts two programs as one job")
        self.write()
        env = environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                          OMPI_MCA_btl_vader_single_copy_mechanism="none")
        process = subprocess.Popen(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2", PROGRAM, "run", "tiny.toml", ":",
                                    "-n", "1", "sleep", "1000"], cwd=self.cwd, env=env, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)

        def children(name):
            found = []
            for entry in pathlib.Path("/proc").iterdir():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                except (OSError, ValueError):
                    continue
                if parent == process.pid and words[0] == name.encode():
                    found.append(entry)
            return found

        self.wait_until("both ranks", lambda: len(children(PROGRAM)) == 2 and children("sleep"))
        ranks, sleeper = children(PROGRAM), children("sleep")
        # The first thread that a rank starts watches its launcher, and then the rank goes into MPI_Init.
        self.wait_until("the watch of both", lambda: all(len(list((rank / "task").iterdir())) > 1 for rank in ranks))
        process.kill()
        process.wait()
        os.kill(int(sleeper[0].name), signal.SIGKILL)
        # Its 5 minutes are not up: whoever ends, does so because the launcher is gone.
        self.wait_until("their end", lambda: not any(rank.exists() for rank in ranks))

    def test_a_launcher_that_starts_nothing_is_no_success(self):
        process = self.start(self.launcher("exit 0\n"))
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 1, out)
        self.assertIn("no rank of ranktune has run", out)

    def test_a_trial_that_reports_without_end_is_held_up_and_stopped(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        out, _ = self.run_tiny("study.num_trials=1", "study.max_iterations=2147483647", "scheduler.type=fifo",
                               "study.time_budget=1s", "-o", "fast")
        self.assertRegex(out, r"(?m)^why +the study's time budget of 1 s is used up$")
        self.assertEqual(self.outcome("fast")["exit"], "0")
        if "libasan" not in (out + os.environ.get("ASAN_OPTIONS", "")):
            self.assertLess(max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss), 1_000_000)  # KiB


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
