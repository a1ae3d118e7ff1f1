#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks that die while the study goes on: survival_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import os
import re
import shutil
import signal
import subprocess
import unittest

from cli_test import PROGRAM, TIMEOUT, environment, sys
from supervise_test import MPIRUN, Supervise, open_mpi

PROGRAMS = """[study]
name = "long"
metric = "score"
mode = "max"
num_trials = 1000
max_iterations = 6
[trainable]
command = "sh -c 'setsid sleep 1000 & exec {python} train.py'"
[space]
x = "uniform(0, 1)"
[scheduler]
type = "{scheduler}"
"""
TRAIN = """
import os, ranktune, time
at = int(open(ranktune.checkpoint() + "/at").read()) if ranktune.checkpoint() else 0
assert at == ranktune.context().iteration
for at in range(at + 1, 7):
    time.sleep(0.1)
    ranktune.report(score=ranktune.config().x * at, checkpoint=lambda folder: open(folder + "/at", "w").write(str(at)))
"""


@unittest.skipUnless(open_mpi(), "no mpirun of Open MPI")
class Survival(Supervise):
    def start_alone(self, *command, reports=3):
        """Without `supervise`: nothing would start the study again."""
        variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        process = subprocess.Popen(command, cwd=self.cwd, env=environment(**variables), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.addCleanup(self.end, process)
        self.wait_until(lambda: process.poll() is not None or self.reports() >= reports, "reports")
        return process

    def start_local(self, workers, *arguments, reports=3):
        return self.start_alone(PROGRAM, "run", "long.toml", "--local", str(workers), *arguments, reports=reports)

    def log(self):
        return (self.cwd / "long" / "logs" / "start-1.log").read_text()

    def lost(self):
        """{rank: why} of the lost ranks."""
        return {int(rank): why for rank, why in re.findall(r'E lost rank=(\d+) .*?reason="(.*?)"\n', self.log())}

    def let_it_end(self):
        """The end of an endless study. It is refused, and tried again, when the head has made more trials meanwhile."""
        def is_set():
            trials = self.status()["trials"] + 4
            done = subprocess.run([PROGRAM, "set", "long", f"study.num_trials={trials}"], cwd=self.cwd, env=environment(),
                                  timeout=TIMEOUT, capture_output=True)
            return done.returncode == 0
        self.wait_until(is_set, "the number of trials")

    def go_on_to_the_end(self):
        self.finish(self.start_local(3, f"study.num_trials={self.status()['trials'] + 2}", reports=0))

    def check_lived_on(self, process, ranks):
        self.wait_until(lambda: process.poll() is not None or sorted(self.lost()) == ranks, "the losses")
        self.let_it_end()
        out = self.finish(process)
        self.assertEqual(sorted(self.lost()), ranks, self.log())
        self.assertFalse((self.cwd / "long" / "logs" / "start-2.log").exists())
        self.assertNotIn("PMIX ERROR", out)
        self.check_files()
        self.assertRegex(self.ranktune("replay", "long", "--verify")[0], r"^verified: \d+ records")
        return out

    def test_a_worker_that_is_killed_costs_its_trial_an_attempt_and_nobody_else_anything(self):
        self.endless_study()
        process = self.start_local(3)
        os.kill(self.ranks()[2], signal.SIGKILL)
        out = self.check_lived_on(process, [2])
        self.assertIn("a worker that dies ends nothing", out)
        self.assertEqual(self.lost()[2], "its process has ended")
        attempts = re.findall(r"W attempt trial=(\d+) attempt=1 outcome=lost action=retry", self.log())
        self.assertEqual(len(attempts), 1, self.log())
        trials = self.exported("long")["trials"]
        self.assertEqual({trial["state"] for trial in trials}, {"finished"})

    def test_ranks_of_one_trial_that_die_free_the_others(self):
        self.endless_study(more="[resources]\nranks = 2")
        process = self.start_local(6)
        ranks = self.ranks()
        for rank in (1, 4):  # a leader, and a member of another group
            os.kill(ranks[rank], signal.SIGKILL)
        self.check_lived_on(process, [1, 4])

    def test_a_frozen_worker_is_killed_before_its_trial_goes_on(self):
        self.endless_study(more='[run]\nheartbeat_timeout = "10s"')
        process = self.start_local(3)
        frozen = self.ranks()[1]
        os.kill(frozen, signal.SIGSTOP)
        self.check_lived_on(process, [1])
        self.assertRegex(self.lost()[1], "no sign of life for 10 s; it was killed")

    def test_a_crash_in_user_code_is_charged_to_its_trial(self):
        self.endless_study(seconds=0.2, more="[failure]\nmax_failures = 3")
        process = self.start_local(2)
        self.wait_until(lambda: len(self.reporting()) == 2, "a trial on each rank")
        os.kill(self.ranks()[1], signal.SIGABRT)
        self.check_lived_on(process, [1])
        self.assertRegex(self.log(), r'W attempt trial=\d+ attempt=1 outcome=failed action=retry message=".*SIGABRT')

    def test_programs_of_a_dead_worker_end_with_it(self):
        for scheduler in ("fifo", "asha"):
            self.write("long.toml", PROGRAMS.format(python=sys.executable, scheduler=scheduler))
            self.write("train.py", TRAIN)
            process = self.start_local(2)
            os.kill(self.ranks()[1], signal.SIGKILL)
            self.check_lived_on(process, [1])  # and no process is left
            shutil.rmtree(self.cwd / "long")

    def test_a_study_without_a_head_goes_on_with_the_same_command(self):
        self.endless_study()
        process = self.start_local(3)
        os.kill(self.ranks()[0], signal.SIGKILL)
        self.assertIn("the head died before the study ended; the same command goes on", self.finish(process, code=75))
        self.go_on_to_the_end()

    def test_a_stop_after_a_death_is_a_stop(self):
        for command in ([PROGRAM, "run", "long.toml", "--local", "2"], [*MPIRUN, PROGRAM, "run", "long.toml"]):
            self.endless_study()
            process = self.supervise(*command, reports=self.reports() + 3)
            victim = self.ranks()[1]
            os.kill(victim, signal.SIGKILL)
            self.wait_until(lambda: "lost rank=1" in "".join(p.read_text() for p in (self.cwd / "long" / "logs").glob("start-*.log")), "the loss")
            self.ranktune("stop", "long")
            out = self.finish(process, code=75)
            self.assertNotIn("starting the study again", out)

    def ranks_used(self):
        said = "".join(self.ranktune("explain", "long", str(trial["id"]))[0] for trial in self.exported("long")["trials"])
        return set(re.findall(r"attempt +\d+ .*?, (w[\d,-]+) from", said))

    def test_spares_take_the_places_of_the_dead(self):
        self.study(seconds=0.1, more="[run]\nspares = 1")
        self.assertIn("run.spares, resources.helpers: with 1 of 1 worker kept from trials", self.ranktune("run", "long.toml", "--local", "1", code=2)[1])
        planned = self.ranktune("run", "long.toml", "--dry-run", "--local", "3")[0]
        self.assertIn("group 2: rank 2", planned)
        self.assertNotIn("group 3", planned)
        self.assertRegex(self.finish(self.start_local(3, "-o", "quiet", reports=0)), r"2 groups of 1\W+1 spare")
        shutil.move(self.cwd / "quiet", self.cwd / "long")
        self.assertEqual(self.ranks_used(), {"w1", "w2"})
        shutil.rmtree(self.cwd / "long")
        self.endless_study(more="[run]\nspares = 1")
        process = self.start_local(3)
        os.kill(self.ranks()[1], signal.SIGKILL)
        self.check_lived_on(process, [1])
        self.assertEqual(self.ranks_used(), {"w1", "w2", "w3"})
        self.assertIn("w1 on ", self.ranktune("status", "long")[0])

    def test_ranks_are_killed_on_purpose(self):
        self.study(seconds=0.1)
        self.write("faults.toml", '[trials]\nrate = 0.1\n')
        self.assertIn("ranks.mean_time_to_failure", self.ranktune("run", "long.toml", "--faults", "faults.toml", code=2)[1])
        self.assertIn("faults.tom'", self.ranktune("run", "long.toml", "--faults", "faults.tom", code=2)[1])
        self.write("faults.toml", '[ranks]\nmean_time_to_failure = "1s"\n')
        self.endless_study()
        process = self.start_local(2, "--faults", "faults.toml", reports=0)
        self.assertIn("too few ranks are left", self.finish(process, code=75))
        self.assertEqual(sorted(self.lost()), [1, 2])
        workers = "".join(path.read_text() for path in (self.cwd / "long" / "logs").glob("workers-*"))
        self.assertEqual(workers.count("this rank kills itself"), 2)

    def test_too_few_ranks_end_the_study_resumably(self):
        self.endless_study()
        process = self.start_local(2)
        for rank in (1, 2):
            os.kill(self.ranks()[rank], signal.SIGKILL)
            self.wait_until(lambda: rank in self.lost(), "the loss")
        out = self.finish(process, code=75)
        self.assertIn("too few ranks are left", out)
        self.go_on_to_the_end()


if __name__ == "__main__":
    tests = [name for name in dir(Survival) if name.startswith("test_") and name not in dir(Supervise)]
    wanted = sys.argv[3:] or [f"Survival.{name}" for name in tests]
    unittest.main(argv=sys.argv[:1] + wanted, verbosity=2)
