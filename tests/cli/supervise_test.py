#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ranktune supervise` as a user meets it: supervise_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

from cli_test import PROGRAM, TIMEOUT, environment, sys
from resume_test import STUDY, Resume

PROGRAMS = """[study]
name = "long"
metric = "score"
mode = "max"
num_trials = 2
max_iterations = 9
[trainable]
command = "sh train.sh"
[space]
x = "uniform(0, 1)"
"""
RESTARTS = {"OMPI_MCA_orte_enable_recovery": "0"}  # mpirun ends the job when a rank dies (survival_test.py: it does not)
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "3"]


def open_mpi():
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True) if shutil.which("mpirun") else None
    return version is not None and "Open" in version.stdout


class Supervise(Resume):
    def supervise(self, *command, options=(), reports=3, **changes):
        """Starts it, and waits until the study has so many reports."""
        variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                     "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
        process = subprocess.Popen([PROGRAM, "supervise", *options, "--", *command], cwd=self.cwd,
                                   env=environment(**variables, **changes), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.addCleanup(self.end, process)
        self.wait_until(lambda: process.poll() is not None or self.reports() >= reports, "reports")
        return process

    def ranks(self):
        """{rank: process id} of this test's study."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    variables = dict(v.split(b"=", 1) for v in file.read().split(b"\0") if b"=" in v)
                with open(f"/proc/{pid}/comm") as file:
                    if file.read().strip() != "ranktune" or not self.is_mine(pid):
                        continue
                rank = variables.get(b"OMPI_COMM_WORLD_RANK", variables.get(b"PMI_RANK"))
                if rank is not None:
                    found[int(rank)] = int(pid)
            except (OSError, ValueError):
                continue
        return found

    def mine(self):
        return [pid for pid in filter(str.isdigit, os.listdir("/proc")) if self.is_mine(pid)]

    def finish(self, process, code=0):
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, code, out)
        self.wait_until(lambda: not self.mine(), f"the end of {self.mine()}")
        return out

    def check_goes_on(self, process, restarts=1):
        out = self.finish(process)
        self.assertEqual(out.count("starting the study again"), restarts, out)
        self.assertIn(f"(restart {restarts})", out)
        self.assertEqual({k: self.outcome("long")[k] for k in ("exit", "start", "cause")},
                         {"exit": "0", "start": str(restarts + 1), "cause": "over"})
        self.check_files()
        self.assertRegex(self.ranktune("replay", "long", "--verify")[0], r"^verified: \d+ records")

    def test_a_study_that_nothing_happens_to_ends_with_its_own_code(self):
        self.write()
        out = self.finish(self.supervise("ranktune", "run", "tiny.toml", "--local", "2", reports=0, PATH=self.path()))
        self.assertIn("tiny finished", out)
        self.assertNotIn("supervise:", out)
        out = self.finish(self.supervise(PROGRAM, "run", "tiny.toml", "--local", "2", reports=0))
        self.assertIn("tiny is finished", out)  # nothing was started, and nothing is tried again
        self.finish(self.supervise(PROGRAM, "run", "tiny.toml", "--local", "2", "--fresh", "trainable.fail_rate=1",
                                   "trainable.fail_iteration=1", reports=0), code=4)

    def reporting(self):
        whole = self.exported("long")
        return {report["trial"] for report in whole["reports"]}

    def path(self):
        return f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"

    def endless_study(self, **settings):
        """It cannot be over before the last of the victims is killed, however slow this test is."""
        self.study(**settings)
        file = self.cwd / "long.toml"
        file.write_text(file.read_text().replace("num_trials = 4", "num_trials = 1000").replace("max_iterations = 12", "max_iterations = 5"))

    def kill_in_turn(self, process, victims):
        for start, victim in enumerate(victims, 1):
            self.wait_until(lambda: (self.cwd / "long" / "logs" / f"start-{start}.log").exists(), f"start {start}")
            seen = self.reports()
            self.wait_until(lambda: self.reports() > seen, "a report")
            if start == len(victims):  # the next start reads how many there are to be
                file = self.cwd / "long.toml"
                file.write_text(file.read_text().replace("num_trials = 1000", f"num_trials = {self.status()['trials'] + 10}"))
            os.kill(victim(), signal.SIGKILL)
        self.check_goes_on(process, restarts=len(victims))

    def test_a_local_run_goes_on_whatever_is_killed(self):
        self.endless_study()
        process = self.supervise(PROGRAM, "run", "long.toml", "--local", "2", reports=0, **RESTARTS)
        self.kill_in_turn(process, [lambda: self.ranks()[2], lambda: self.ranks()[0], self.mpirun])

    def test_a_rank_that_crashes_in_a_local_run_is_charged_to_its_trial(self):
        self.study(seconds=0.2, more="\n[failure]\nmax_failures = 3")
        process = self.supervise(PROGRAM, "run", "long.toml", "--local", "2", reports=3, **RESTARTS)
        self.wait_until(lambda: len(self.reporting()) == 2, "a trial on each rank")
        os.kill(self.ranks()[1], signal.SIGABRT)  # of the others, a sanitizer makes reports of its own
        self.check_goes_on(process)
        logs = self.cwd / "long" / "logs"
        # By the head, if it hears of the death before mpirun ends it, or by the next one.
        said = "".join((logs / f"start-{start}.log").read_text() for start in (1, 2))
        self.assertRegex(said, r" last-end death=yes notes=[1-9]| outcome=failed action=retry message=.*signal 6")
        self.assertRegex("".join(path.read_text() for path in logs.glob("workers-*")), r"(?m)^crash rank=1 trial=\d+ signal=6$")

    def test_trials_that_hang_in_a_local_run_fail_and_the_study_ends(self):
        self.write("long.toml", STUDY.format(seconds=900, scheduler="fifo", more='\n[failure]\nreport_timeout = "2s"'))
        out = self.finish(self.supervise(PROGRAM, "run", "long.toml", "--local", "2", "study.num_trials=2", reports=0), code=4)
        self.assertGreaterEqual(out.count("starting the study again"), 1, out)
        workers = "".join(path.read_text() for path in (self.cwd / "long" / "logs").glob("workers-*"))
        self.assertIn("no report or gradient step for 2s (failure.report_timeout)", workers)
        self.assertIn("the trial does not return; its stack follows", workers)

    @unittest.skipUnless(open_mpi(), "no mpirun of Open MPI")
    def test_a_step_by_mpirun_goes_on_whatever_is_killed(self):
        self.endless_study()
        process = self.supervise(*MPIRUN, PROGRAM, "run", "long.toml", options=("--max-restarts", "9"), **RESTARTS)
        self.kill_in_turn(process, [lambda: self.ranks()[0], lambda: self.ranks()[1], self.mpirun])

    @unittest.skipUnless(open_mpi(), "no mpirun of Open MPI")
    def test_a_launcher_that_outlives_its_study_is_ended(self):
        self.write()
        launcher = self.cwd / "bin" / "mpirun"
        launcher.parent.mkdir()
        launcher.write_text(f"#!/bin/sh\n{shutil.which('mpirun')} \"$@\"\nwhile :; do sleep 0.1; done\n")
        launcher.chmod(0o755)
        out = self.finish(self.supervise(str(launcher), *MPIRUN[1:], PROGRAM, "run", "tiny.toml", reports=0,
                                         options=("--launcher-wait", "1")))
        self.assertIn("tiny finished", out)
        self.assertIn("and mpirun has not: ending it", out)
        self.assertNotIn("starting the study again", out)

    def mpirun(self):
        for pid in self.mine():
            with open(f"/proc/{pid}/comm") as file:
                if file.read().strip() in ("mpirun", "mpirun.openmpi", "orterun"):
                    return int(pid)
        raise AssertionError("no mpirun")

    def check_clean_stop(self, number, *command):
        self.study()
        process = self.supervise(*command, reports=self.reports() + 2)
        process.send_signal(number)
        out = self.finish(process, code=75)
        self.assertNotIn("starting the study again", out)
        self.assertEqual(self.outcome("long")["cause"], "asked")
        # What was received, not what the launcher passed on. The head of a Slurm job goes by it: a signal may put the
        # job back into the queue, Ctrl-C does not.
        words = "Ctrl-C" if number == signal.SIGINT else number.name
        self.assertEqual(self.outcome("long")["reason"], words)
        self.assertIn(words, out)
        logs = sorted((self.cwd / "long" / "logs").glob("start-*.log"), key=lambda log: int(log.stem.split("-")[1]))
        self.assertIn(f"signal name={words} ", logs[-1].read_text())
        self.assertEqual(self.status()["states"].get("running", 0), 0)
        self.assertFalse((self.cwd / "long" / "stop").exists())

    def test_control_c_and_signals_are_clean_stops_of_a_local_run(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            self.check_clean_stop(number, PROGRAM, "run", "long.toml", "--local", "2", "study.num_trials=8")

    @unittest.skipUnless(open_mpi(), "no mpirun of Open MPI")
    def test_control_c_and_signals_are_clean_stops_of_mpirun(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            self.check_clean_stop(number, *MPIRUN, PROGRAM, "run", "long.toml", "study.num_trials=8")

    def test_a_stop_by_file_is_obeyed(self):
        self.study()
        process = self.supervise(PROGRAM, "run", "long.toml", "--local", "2")
        self.ranktune("stop", "long")
        out = self.finish(process, code=75)
        self.assertNotIn("starting the study again", out)
        self.assertNotIn("a rank ended before", out)

    def step_that_waits(self, before="", after=""):
        """A step that waits, before or after the run, while the file `hold` is there."""
        wait = "while [ -e hold ]; do sleep 0.05; done"
        script = (f"echo x >>starts; {wait if before else ':'}; {PROGRAM} run long.toml --local 2; code=$?; >ran; "
                  f"{wait if after else ':'}; exit $code")
        return self.supervise("sh", "-c", script, options=("--dir", "long"))

    def kill_head(self):
        os.kill(self.ranks()[0], signal.SIGKILL)
        self.wait_until(lambda: not self.ranks(), "the end of the ranks")

    def check_stopped_without_a_head(self, process, start):
        self.assertIn("is dead. If `ranktune supervise`", self.ranktune("stop", "long", code=2)[1])
        (self.cwd / "hold").unlink()
        out = self.finish(process, code=75)
        outcome = self.outcome("long")
        self.assertEqual((outcome["exit"], outcome["cause"], outcome["reason"], outcome["start"]),
                         ("75", "asked", "ranktune stop", start), out)
        self.assertFalse((self.cwd / "long" / "stop").exists())
        self.ranktune("run", "long.toml", "--local", "2")
        return out

    def test_a_stop_between_two_starts_is_obeyed(self):
        self.study()
        process = self.step_that_waits(after=True)
        (self.cwd / "hold").touch()
        self.kill_head()
        out = self.check_stopped_without_a_head(process, "1")
        self.assertIn("ranktune stop: the study is not started again", out)
        self.assertNotIn("starting the study again", out)

    def test_a_stop_while_the_next_start_begins_is_obeyed(self):
        self.study()
        process = self.step_that_waits(before=True)
        (self.cwd / "hold").touch()
        self.kill_head()
        self.wait_until(lambda: (self.cwd / "starts").read_text() == "x\nx\n", "the second start")
        self.check_stopped_without_a_head(process, "2")

    def check_not_begun_in_a_new_directory(self, process, hold, code):
        (self.cwd / "long").rename(self.cwd / "moved")
        (self.cwd / "long").mkdir()
        (self.cwd / hold).unlink()
        out = self.finish(process, code=code)
        self.assertIn("another directory is where the study's was", out)
        self.assertIn("Move the directory back", out)
        self.assertEqual(os.listdir(self.cwd / "long"), [])
        (self.cwd / "long").rmdir()
        (self.cwd / "moved").rename(self.cwd / "long")
        self.assertIn("resuming long", self.ranktune("run", "long.toml", "--local", "2")[0])
        return out

    def test_a_directory_that_was_replaced_by_an_empty_one_is_not_begun_in(self):
        self.study()
        process = self.step_that_waits(after=True)
        (self.cwd / "hold").touch()
        self.kill_head()
        self.wait_until((self.cwd / "ran").exists, "the end of the run")
        self.assertNotIn("starting the study again", self.check_not_begun_in_a_new_directory(process, "hold", 76 if open_mpi() else 137))

    def test_a_directory_that_was_replaced_while_a_later_start_began_is_not_begun_in(self):
        """The step ends without having met it."""
        self.endless_study()
        script = (f"echo x >>starts; n=$(grep -c x starts); [ $n = 1 ] && {PROGRAM} run long.toml --local 2; "
                  "while [ -e hold$n ]; do sleep 0.05; done; exit 9")
        (self.cwd / "hold2").touch()
        process = self.supervise("sh", "-c", script, options=("--dir", "long"))
        self.kill_head()
        self.wait_until(lambda: (self.cwd / "starts").read_text() == "x\nx\n", "the second start")
        file = self.cwd / "long.toml"
        file.write_text(file.read_text().replace("num_trials = 1000", f"num_trials = {self.status()['trials'] + 2}"))
        self.check_not_begun_in_a_new_directory(process, "hold2", 9)

    def test_nobody_is_asked_to_stop_where_nobody_runs(self):
        self.study()
        process = self.supervise(PROGRAM, "run", "long.toml", "--local", "2")
        self.kill_all()
        process.wait(TIMEOUT)
        out, err = self.ranktune("stop", "long", code=2)
        self.assertIn("nothing runs in 'long': its head (host ", err)
        self.assertNotIn("asked", out)
        # The request is of no use to whoever goes on later.
        self.assertNotIn("ranktune stop", self.finish(self.supervise(PROGRAM, "run", "long.toml", "--local", "2")))

    def check_at_once(self, *command):
        self.study(seconds=900)
        process = self.supervise(*command, reports=0)
        self.wait_until(lambda: '"running": 2' in self.status_file(), "running trials")
        process.send_signal(signal.SIGINT)
        self.wait_until(lambda: '"draining": true' in self.status_file(), "a clean stop under way")
        process.send_signal(signal.SIGINT)
        self.assertNotIn("starting the study again", self.finish(process, code=75))

    def status_file(self):
        file = self.cwd / "long" / "status"
        return file.read_text() if file.exists() else ""

    def test_a_second_control_c_ends_a_local_run_at_once(self):
        self.check_at_once(PROGRAM, "run", "long.toml", "--local", "2")

    @unittest.skipUnless(open_mpi(), "no mpirun of Open MPI")
    def test_a_second_control_c_ends_mpirun_at_once(self):
        self.check_at_once(*MPIRUN, PROGRAM, "run", "long.toml")

    def test_nothing_stays_behind_when_supervise_is_killed(self):
        for command in ([PROGRAM, "run", "long.toml", "--local", "2", "study.num_trials=8"],
                        ["sh", "-c", f"{PROGRAM} run long.toml --local 2 study.num_trials=8; true"],
                        *([[*MPIRUN, PROGRAM, "run", "long.toml", "study.num_trials=8"]] if open_mpi() else [])):
            self.study()
            process = self.supervise(*command, options=("--dir", "long"), reports=self.reports() + 2)
            process.kill()
            self.wait_until(lambda: not self.mine(), "the end of everything")

    def test_what_programs_have_started_ends_when_supervise_is_killed(self):
        """In a session of its own, where no process group reaches it."""
        self.write("long.toml", PROGRAMS)
        (self.cwd / "train.sh").write_text("setsid sleep 1000 & echo $! >begun; exec sleep 1000\n")
        process = self.supervise(PROGRAM, "run", "long.toml", "--local", "2", reports=0)
        self.wait_until((self.cwd / "begun").exists, "a program that runs")
        children = (pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")).read_text().split()
        step = next(pid for pid in children if os.getpgid(int(pid)) == int(pid) and os.getsid(int(pid)) != int(pid))
        process.kill()
        os.killpg(int(step), signal.SIGKILL)  # as its guardian does when the programs have not ended within the grace
        self.wait_until(lambda: not self.mine(), "the end of everything")

    def test_two_starts_without_a_report_are_enough(self):
        script = 'echo x >>starts; kill -9 $$'
        out = self.finish(self.supervise("sh", "-c", script, options=("--dir", "long"), reports=0), code=1)
        self.assertIn("ended 2 times in a row with nothing new (no trial got further", out)
        self.assertEqual((self.cwd / "starts").read_text(), "x\nx\n")

    def test_mistakes_are_not_supervised(self):
        for options, words in ((["--", "sh", "-c", "true"], "--dir"), (["--", PROGRAM, "run"], "STUDY"),
                               (["--", PROGRAM, "run", "none.toml"], "none.toml"), ([], "COMMAND")):
            self.assertIn(words, self.ranktune("supervise", *options, code=2)[1])
        self.write(text="[study]\n")
        self.assertIn("study.name", self.ranktune("supervise", "--", PROGRAM, "run", "tiny.toml", code=2)[1])
        self.write()
        out = self.finish(self.supervise("no-such-launcher", PROGRAM, "run", "tiny.toml", reports=0), code=1)
        self.assertIn("no-such-launcher", out)


if __name__ == "__main__":
    tests = [name for name in dir(Supervise) if name.startswith("test_") and name not in dir(Resume)]
    wanted = sys.argv[3:] or [f"Supervise.{name}" for name in tests]
    unittest.main(argv=sys.argv[:1] + wanted, verbosity=2)
