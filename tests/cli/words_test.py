#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Messages about options without effect, and about misunderstandings: words_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import os
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import time
import unittest

from cli_test import PROGRAM, SOURCES, TIMEOUT, TINY, Case, environment, sys


class Words(Case):
    def test_second_chances_without_a_failed_trial(self):
        _, err = self.run_tiny("--resume-errored")
        self.assertEqual(err, "--resume-errored has no effect: the study is new, and no trial has failed yet\n")
        out, err = self.run_tiny("--restart-errored")
        self.assertIn("tiny is finished", out)
        self.assertEqual(err, "--restart-errored has no effect: no trial of this study has failed\n")
        self.assertEqual(self.run_tiny("--restart-errored", "-q"), ("", ""))
        self.assertEqual(self.run_tiny()[1], "")

    def test_changes_of_a_finished_study_are_not_dropped_in_silence(self):
        self.run_tiny("-q")
        out, err = self.run_tiny("checkpoint.keep=3", "journal.commit_interval=9s")
        self.assertIn("tiny is finished", out)
        self.assertEqual(err, "not taken over: checkpoint.keep 1 -> 3, journal.commit_interval \"1s\" -> \"9s\", because the study is "
                              "finished and has nothing more to do; it has with study.num_trials above 6\n")
        self.assertEqual(self.run_tiny("checkpoint.keep=3", "study.num_trials=7")[1], "")

    def test_more_trials_for_a_study_whose_time_is_used_up(self):
        slow = ["trainable.seconds=0.2", "scheduler.type=fifo", "study.max_iterations=50"]
        self.run_tiny(*slow, "study.time_budget=1s", "-q")
        out, err = self.run_tiny(*slow, "study.time_budget=1s", "study.num_trials=30")
        self.assertRegex(out, r"^tiny is finished \(\d of 6 trials, exit 0\): nothing was started\n")
        self.assertEqual(err, "not taken over: study.num_trials 6 -> 30, because study.time_budget (1s) is used up; the study "
                              "goes on with a longer one, as in study.time_budget=2s\n")

    def test_an_end_of_the_job_that_is_past_is_no_deadline(self):
        for name in ("squeue", "scontrol"):
            (self.cwd / name).write_text("#!/bin/sh\nexit 1\n")
            (self.cwd / name).chmod(0o755)
        _, err = self.run_tiny(SLURM_JOB_ID="7", SLURM_JOB_END_TIME="1000", PATH=f"{self.cwd}:{os.environ['PATH']}")
        self.assertEqual(err, "SLURM_JOB_END_TIME=1000 is past, and neither squeue nor scontrol says when the job ends (the log has "
                              "why): signals alone end the study before the job ends\n")
        log, = (self.cwd / "tiny" / "logs").glob("*start-1.log")
        self.assertRegex(log.read_text(), r" W deadline left_s=unknown reason=\"SLURM_JOB_END_TIME=1000 is past; squeue: ")
        self.assertEqual(self.outcome()["exit"], "0")

    def test_the_deadline_of_the_job_and_the_last_new_trial(self):
        (self.cwd / "squeue").write_text("#!/bin/sh\necho 2:00:00\n")
        (self.cwd / "squeue").chmod(0o755)
        job = {"SLURM_JOB_ID": "7", "PATH": f"{self.cwd}:{os.environ['PATH']}"}
        slow = ["trainable.seconds=0.2", "study.max_iterations=9", "scheduler.type=fifo"]
        out, _ = self.run_tiny(*slow, **job)
        self.assertRegex(out, r"(?m)^deadline  \d{4}-\d\d-\d\dT\d\d:\d\dZ")
        out, _ = self.run_tiny(*slow, "study.num_trials=10", **job)  # by now it is known what an iteration takes
        shown = re.findall(r"(?m)^deadline  .*$", out)
        self.assertEqual(len(shown), 1, out)
        self.assertRegex(shown[0], r"^deadline  \d{4}-\d\d-\d\dT\d\d:\d\dZ, last new trial about \d\d:\d\dZ$")
        self.assertNotIn("deadline", self.run_tiny(*slow, "study.num_trials=12")[0])

    def test_no_deadline_is_spoken_of_in_a_job_alone(self):
        out, _ = self.run_tiny("--progress", "table")
        self.assertIn(" of about ", out)
        self.assertNotIn("deadline", out)
        for name in ("squeue", "scontrol"):
            (self.cwd / name).write_text("#!/bin/sh\nexit 1\n")
            (self.cwd / name).chmod(0o755)
        out, _ = self.run_tiny("--progress", "table", "-o", "job", "trainable.seconds=0.3", SLURM_JOB_ID="7",
                               PATH=f"{self.cwd}:{os.environ['PATH']}")
        self.assertIn("no deadline", out)

    def test_a_study_of_seconds_shows_lines_without_a_terminal(self):
        slow = ["trainable.seconds=0.5", "scheduler.type=fifo"]
        out, _ = self.run_tiny(*slow, "study.num_trials=8")
        lines = re.findall(r"(?m)^tiny · (\d+\.\d)s · \d+ iterations? · \d/8 trials · running 2 · .*$", out)
        self.assertGreaterEqual(len(lines), 1, out)  # of some 6 s
        times = list(map(float, lines))
        for before, after in zip(times, times[1:]):
            self.assertGreaterEqual(after, before + 3.0)
        self.assertNotIn("running", self.run_tiny(*slow, "--progress", "none", "-o", "none")[0])

    def test_the_values_of_progress_are_in_the_help_and_in_the_reference(self):
        text = " ".join(self.ranktune("run", "--help")[0].split())
        page = (SOURCES / "docs/reference/generated/command-line.md").read_text()
        (row,) = set(re.findall(r"(?m)^\| `--progress HOW` \| (.*) \|$", page))
        for value in ("auto", "table", "lines", "none"):
            self.assertRegex(text, rf"--progress HOW [^-]*\b{value}:")
            self.assertRegex(row, rf"\b{value}:.*\[auto, lines, none, table\]")

    def test_the_end_of_a_job_of_a_chain_names_the_next_one(self):
        self.write()
        (self.cwd / "tiny" / "submit").mkdir(parents=True)
        jobs = self.cwd / "tiny" / "submit" / "jobs"
        for name in ("squeue", "scontrol"):
            (self.cwd / name).write_text("#!/bin/sh\nexit 1\n")
            (self.cwd / name).chmod(0o755)
        more = ["study.num_trials=60", "trainable.seconds=0.3", "slurm.requeue=false"]
        goes_on, again = "next      squeue --jobs=8       # job 8 goes on by itself\n", "next      ranktune submit tiny  # goes on\n"
        for job, sent, noted, steps in (("7", signal.SIGUSR1, "6\n7\n8\n", goes_on), ("8", signal.SIGUSR1, "6\n7\n8\n", again),
                                        ("7", signal.SIGINT, "6\n7\n8\n", again), ("7", signal.SIGINT, "6\n7\nstop\n8\n", goes_on)):
            jobs.write_text(noted)
            env = environment(SLURM_JOB_ID=job, PATH=f"{self.cwd}:{os.environ['PATH']}")
            process = subprocess.Popen([PROGRAM, "run", "tiny.toml", "--local", "2", "--progress", "table", *more], cwd=self.cwd,
                                       env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.addCleanup(process.wait)
            self.addCleanup(lambda process=process: process.poll() is None and process.kill())
            shown = ""
            while "running 2" not in shown:
                line = process.stdout.readline()
                self.assertNotEqual(line, "", shown)
                shown += line
            process.send_signal(sent)
            out, _ = process.communicate(timeout=TIMEOUT)
            self.assertEqual(process.returncode, 75, out)
            self.assertIn(steps, out)
        for answer, said in (("echo 9 8 PENDING", "stopped; job 9 (pending) is in Slurm's queue and goes on with the study"),
                             ("exit 0", "stopped, goes on with: ranktune submit tiny")):
            (self.cwd / "squeue").write_text(f"#!/bin/sh\n{answer}\n")
            text = self.ranktune("status", "tiny", PATH=f"{self.cwd}:{os.environ['PATH']}")[0]
            self.assertIn(said, " ".join(text.split()))

    def test_a_script_that_reports_on_rank_0_alone_is_told_what_that_costs(self):
        (self.cwd / "train.py").write_text("import os, ranktune, time\nif os.environ['RANK'] != '0':\n    time.sleep(1000)\n"
                                           "while True:\n    ranktune.report(score=1.0)\n")
        self.write(text=TINY.replace('builtin = "curve"', f'command = "{sys.executable} train.py"\ncheckpoints = false')
                   .replace('type = "asha"', 'type = "asha"\nvariant = "stop"') + "[resources]\nranks = 2\n")
        out, _ = self.run_tiny("study.num_trials=3")
        said = "waits     rank 0 alone reports. At the end of 3 attempts the other ranks were"
        for text in (out, self.ranktune("status", "tiny")[0]):
            self.assertIn(said, text)
            self.assertIn("\n          else: ranktune.report()\n", text)
        # Of a script that does so it is not said.
        (self.cwd / "train.py").write_text("import ranktune\nwhile True:\n    ranktune.report(score=1.0)\n")
        self.assertNotIn("rank 0 alone", self.run_tiny("study.num_trials=3", "-o", "all")[0])

    def test_stop_names_the_jobs_that_would_start_the_study(self):
        def queue(text):
            (self.cwd / "squeue").write_text(f"#!/bin/sh\n{text}\n")
            (self.cwd / "squeue").chmod(0o755)

        def stop(place="tiny"):
            err = self.ranktune("stop", place, code=2, PATH=f"{self.cwd}:{os.environ['PATH']}")[1]
            return err.removeprefix("ranktune: ")

        nobody = "nothing runs in 'tiny'; what there is: ranktune status tiny (exit 2)\n"
        queue("exit 1")
        self.run_tiny("-q", SLURM_JOB_ID="7")
        self.assertEqual(stop(), nobody)  # no job was submitted for it, and none put back: Slurm is not asked
        outcome = self.cwd / "tiny" / "outcome"
        outcome.write_text(outcome.read_text().replace("requeue=no", "requeue=yes"))
        queue("echo 6 6 RUNNING; echo 7 7 PENDING")
        self.assertEqual(stop(), "nothing runs in 'tiny' now, but job 7 (pending) is in Slurm's queue and goes on with the study. "
                                 "To keep it from that: scancel 7 (exit 2)\n")
        queue("echo 6 6 RUNNING")
        self.assertEqual(stop(), nobody)
        # Those of a chain; one of an array has another number in its environment.
        (self.cwd / "tiny" / "submit").mkdir()
        (self.cwd / "tiny" / "submit" / "jobs").write_text("101\n102\n")
        queue("echo 102 102 PENDING; echo 5_3 7 RUNNING")
        self.assertEqual(stop(), "nothing runs in 'tiny' now, but jobs 102 (pending), 5_3 (running) are in Slurm's queue and go on "
                                 "with the study. To keep them from that: scancel 102 5_3 (exit 2)\n")
        queue("echo slurm_load_jobs error >&2; exit 1")
        self.assertEqual(stop(), "nothing runs in 'tiny' now, but jobs 101, 102, 7 may start it yet: squeue does not say whether they "
                                 "are still in the queue (slurm_load_jobs error). To keep them from that: scancel 101 102 7 (exit 2)\n")
        # A study whose first job has not begun has no journal.
        (self.cwd / "new" / "submit").mkdir(parents=True)
        (self.cwd / "new" / "submit" / "jobs").write_text("103\n")
        queue("echo 103 103 PENDING")
        self.assertIn("job 103 (pending) is in Slurm's queue", stop("new"))

    def test_status_knows_the_jobs_that_would_start_the_study(self):
        def queue(text):
            (self.cwd / "squeue").write_text(f"#!/bin/sh\n{text}\n")
            (self.cwd / "squeue").chmod(0o755)

        slurm = {"PATH": f"{self.cwd}:{os.environ['PATH']}"}
        (self.cwd / "tiny" / "submit").mkdir(parents=True)
        (self.cwd / "tiny" / "submit" / "jobs").write_text("103\n")
        queue("echo 103 103 PENDING")
        waits = "job 103 (pending) is in Slurm's queue and begins the study"
        self.assertEqual(self.ranktune("status", "tiny", **slurm)[0], f"no trial yet: {waits}\n")
        watch = subprocess.Popen([PROGRAM, "status", "--watch", "tiny"], cwd=self.cwd, env=environment(**slurm),
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        self.assertEqual(watch.stdout.readline(), f"no trial yet: {waits}\n")
        self.run_tiny("-q", **slurm)  # what the job does
        rest, _ = watch.communicate(timeout=TIMEOUT)
        self.assertIn("6/6 trials", rest)
        # Of a study that was submitted, the commands are those of jobs.
        out = self.ranktune("run", "tiny", "study.num_trials=4", code=2, **slurm)[1]
        self.assertIn("To go on with the study as it is: ranktune submit ", out)
        out = self.ranktune("run", "tiny", "--local", "1")[0]
        self.assertRegex(" ".join(out.split()), r"ranktune submit tiny study.num_trials=12 # 6 more")
        queue("exit 0")
        self.assertIn("there is no directory 'other'", self.ranktune("status", "other", code=2, **slurm)[1])

    def test_a_rank_that_was_killed_is_not_called_a_signal_to_the_study(self):
        self.write()
        more = ["trainable.seconds=0.1", "scheduler.type=fifo", "study.max_iterations=10"]
        without = {"OMPI_MCA_orte_enable_recovery": "0"}  # else the study would go on
        process = subprocess.Popen([PROGRAM, "run", "tiny.toml", "--local", "2", *more], cwd=self.cwd, env=environment(**without),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        victim = None
        end = time.monotonic() + TIMEOUT
        status = self.cwd / "tiny" / "status"
        while victim is None:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
            victim = self.head() if status.exists() and '"running": 2' in status.read_text() else None
        os.kill(victim, signal.SIGKILL)
        process.wait(TIMEOUT)
        # What the head writes if it has time between mpirun's SIGTERM and SIGKILL.
        (self.cwd / "tiny" / "outcome").write_text("exit=75\nreason=SIGTERM\nresumable=true\nprogress=true\nstart=1\n"
                                                   "time=2026-01-02T03:04:05.678Z\ncause=asked\nasked_by=SIGTERM\nreports=1\n")
        saved = self.cwd / "saved"
        shutil.copytree(self.cwd / "tiny", saved)
        for told, words in ((None, ": SIGTERM, which a launcher sends when a rank was killed or lost"),
                            ("crash", ": SIGTERM from its launcher, after a rank was killed or lost"), ("outside", ": SIGTERM")):
            shutil.rmtree(self.cwd / "tiny")
            shutil.copytree(saved, self.cwd / "tiny")
            out, _ = self.run_tiny(*more, **({"RANKTUNE_LAST_END": told} if told else {}))
            first = " ".join(re.search(r"(?s)resuming .*?\njournal ", out)[0].split())
            self.assertEqual(first, f"resuming tiny: start 2; start 1 ended at 2026-01-02T03:04:05Z{words} journal")

    def head(self):
        """A process of this test that has the rank 0: nobody else could record a death."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/cwd") == str(self.cwd):
                    with open(f"/proc/{pid}/environ", "rb") as file:
                        if b"OMPI_COMM_WORLD_RANK=0" in file.read().split(b"\0"):
                            return int(pid)
            except OSError:
                pass
        return None

    def test_verbs_that_are_given_something_else(self):
        self.write()
        self.run_tiny("-q")
        self.assertIn("1 at least", self.ranktune("replay", "tiny", "--until", "0", code=2)[1])
        self.assertIn("1 records", self.ranktune("replay", "tiny", "--until", "1")[0])

    def test_pages_that_a_new_study_names_are_there(self):
        for kind in ("digits", "program", "printed"):
            self.ranktune("init", f"my-{kind}", "--template", kind)
            named = re.findall(r"\S+\.md", (self.cwd / f"my-{kind}.toml").read_text())
            self.assertTrue(named)
            for page in named:
                self.assertTrue(os.path.isabs(page) and os.path.isfile(page), page)

    def test_an_archive_without_a_study_says_so(self):
        for directory, name in ((".", self.cwd.name), ("/", "ranktune"), ("./-x", "-x")):
            (self.cwd / "-x").mkdir(exist_ok=True)
            out, err = self.ranktune("support", directory, "-o", "archive.tar.gz", TMPDIR=str(self.cwd))
            self.assertIn(f"there is no study in '{directory}'", err)
            with tarfile.open(self.cwd / "archive.tar.gz") as tar:
                self.assertIn(f"{name}-support/doctor.txt", tar.getnames())

    def test_what_killed_runs_left_fits_on_the_screen_and_goes_with_one_command(self):
        sessions = self.cwd / f"ompi.{socket.gethostname()}.{os.geteuid()}"
        for number in range(300):
            (sessions / f"pid.{99_000_000 + number}").mkdir(parents=True)
            os.utime(sessions / f"pid.{99_000_000 + number}", (1, 1))
        (sessions / "pid.99999999").mkdir()  # just made: nobody knows yet
        (sessions / f"pid.{os.getpid()}").mkdir()
        os.utime(sessions / f"pid.{os.getpid()}", (1, 1))
        done = subprocess.run([PROGRAM, "doctor"], cwd=self.cwd, env=environment(TMPDIR=str(self.cwd)), capture_output=True, text=True,
                              timeout=TIMEOUT)
        line, = [line for line in done.stdout.splitlines() if "no process here holds" in line]
        self.assertLess(len(line), 800)
        self.assertRegex(line, r" and \d+ more; ranktune doctor --clean ")
        done = subprocess.run([PROGRAM, "doctor", "--clean"], cwd=self.cwd, env=environment(TMPDIR=str(self.cwd)), capture_output=True,
                              text=True, timeout=TIMEOUT)
        self.assertRegex(done.stderr, r"removed what \d{3,} runs that were killed had left behind\nleft what \d+ others? ")
        self.assertEqual(sorted(path.name for path in sessions.iterdir()), sorted(["pid.99999999", f"pid.{os.getpid()}"]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
