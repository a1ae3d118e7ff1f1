#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Population-based training, as a user sees it: population_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import json
import os
import random
import shutil
import signal
import subprocess
import time
import tomllib
import unittest

from cli_test import PROGRAM, SOURCES, TIMEOUT, Case, environment
from kills import Kills

STUDY = """[study]
name = "population"
metric = "score"
mode = "max"
num_trials = 6
max_iterations = 12
seed = 1
[trainable]
command = "python3 train.py {{args}}"
[resources]
ranks = {ranks}
[space]
lr = "loguniform(1e-3, 1.0)"
width = {width}
[scheduler]
type = "pbt"
interval = 2
{mode}
[scheduler.explore]
lr = [0.5, 2.0]
"""

# Its state is the list of everything that it was trained with, so that a state of one member that went on with the
# hyper-parameters of another one would show.
TRAIN = """
import argparse, json, os, time
import ranktune
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--width", type=int)
args = parser.parse_args()
me = ranktune.context()
history = json.load(open(ranktune.checkpoint())) if ranktune.checkpoint() else []
def save(folder):
    path = os.path.join(folder, "state.json")
    if me.rank == 0:
        json.dump(history, open(path, "w"))
    return path
while True:
    time.sleep(0.05)
    history.append(args.lr)
    if me.rank == 0:
        path = os.path.join(os.environ["TRACES"], os.environ["RANKTUNE_TRIAL"])
        json.dump(history, open(path + ".new", "w"))
        os.replace(path + ".new", path)
    score = sum(min(lr, 0.1 * 0.1 / lr) for lr in history)
    ranktune.report(score=score, checkpoint=save)
"""

# The same, but told to exploit it goes on in its process.
STAYS = """
import argparse, json, os, time
import ranktune
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--width", type=int)
lr = parser.parse_args().lr
me = ranktune.context()
history = json.load(open(ranktune.checkpoint())) if ranktune.checkpoint() else []
traces = os.environ["TRACES"]
if me.rank == 0:
    print(os.getpid(), me.trial, file=open(os.path.join(traces, "starts"), "a"))
state = os.path.join(me.checkpoint_dir, "state.json")
while True:
    time.sleep(0.05)
    history.append(lr)
    if me.rank == 0:
        for path in (os.path.join(traces, str(me.trial)), state):
            json.dump(history, open(path + ".new", "w"))
            os.replace(path + ".new", path)
    score = sum(min(lr, 0.1 * 0.1 / lr) for lr in history)
    told = ranktune.report(score=score, checkpoint=state, exploits=True)
    if isinstance(told, ranktune.Exploit):
        lr = told.config.lr
        history = json.load(open(told.checkpoint))
"""


class Members(Kills, Case):
    """What the tests of a population share."""
    members = 6
    ceiling = 12
    program = TRAIN

    def study(self, ranks="1", width="1", mode='compare = "latest"'):
        self.write("population.toml", STUDY.format(ranks=ranks, width=width, mode=mode))
        self.write("train.py", self.program)
        self.traces = self.cwd / "traces"
        self.traces.mkdir()
        os.environ["TRACES"] = str(self.traces)

    def command(self, workers=3):
        return [PROGRAM, "run", "population.toml", "--local", str(workers)]

    def check(self):
        """Every member was trained to the end, with what the journal says and nothing else."""
        whole = self.exported("population")
        self.assertEqual([trial["state"] for trial in whole["trials"]], ["finished"] * self.members)
        takeovers = 0
        for trial in whole["trials"]:
            self.assertEqual(trial["iterations"], self.ceiling)
            schedule = trial.get("schedule",
                                 [{"from": 0, "to": self.ceiling, "configuration": trial["configuration"]}])
            told = [stretch["configuration"]["lr"] for stretch in schedule
                    for _ in range(stretch["from"], stretch["to"])]
            self.assertEqual(json.loads((self.traces / str(trial["id"])).read_text()), told, trial["id"])
            takeovers += len(trial.get("takeovers", []))
        out, _ = self.ranktune("replay", "population", "--verify")
        self.assertIn("verified", out)
        return whole, takeovers

    def take_over_between_sizes(self):
        self.study(ranks='"{width}"', width="[1, 2]")
        self.ranktune(*self.command(4)[1:])
        whole, _ = self.check()
        widths = {trial["id"]: trial["configuration"]["width"] for trial in whole["trials"]}
        self.assertEqual(set(widths.values()), {1, 2})
        pairs = {(widths[trial["id"]], widths[taken["donor"]])
                 for trial in whole["trials"] for taken in trial.get("takeovers", [])}
        self.assertTrue(pairs & {(1, 2), (2, 1)}, pairs)

    def kill_at_random(self, **study):
        self.study(**study)
        dice = random.Random(1)
        for _ in range(5):
            process = self.started(self.command())
            time.sleep(dice.uniform(0.2, 1.0))  # any moment serves
            self.kill_all()
            process.wait(TIMEOUT)
        self.ranktune(*self.command()[1:])
        self.check()

    def started(self, command):
        """A run in which a trial has reported. (A trial that never reports between two deaths counts as the one that
        kills the job.)"""
        began = time.time()
        process = subprocess.Popen(command, cwd=self.cwd, env=environment(TRACES=str(self.traces)),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.wait_until(lambda: process.poll() is not None or
                        any(each.stat().st_mtime > began for each in self.traces.glob("[0-9]")), "a report")
        return process


class Population(Members):
    """Programs that are started again, and trainables."""

    def test_members_take_over_from_each_other_and_every_view_says_so(self):
        self.study()
        out, _ = self.ranktune(*self.command()[1:])
        self.assertRegex(out, r"(?m)^plan +6 trials · population-based training$")
        whole, takeovers = self.check()
        self.assertGreater(takeovers, 0)
        out, _ = self.ranktune("status", "population")
        self.assertRegex(out, r"took over")
        self.assertRegex(out, r"#\d@\d+ \(\d\)")
        taken = next(trial for trial in whole["trials"] if trial.get("takeovers"))
        out, _ = self.ranktune("logs", "population", str(taken["id"]))
        self.assertRegex(out, r"takes over iteration \d+ of #\d, lr \S+ -> \S+")
        self.assertRegex(out, r"started .*from iteration \d+ of #\d")
        out, _ = self.ranktune("best", "population")
        best = max(whole["trials"], key=lambda trial: trial["best"]["value"])
        self.assertIn(f"#{best['id']}", out)
        if best.get("takeovers"):
            self.assertRegex(out, r"(?m)^schedule +0-\d+ as #\d +lr=")

    def test_the_job_differs_from_its_baseline_in_the_scheduler_alone(self):
        folder = SOURCES / "jobs" / "digits-pbt"
        pbt, baseline = (tomllib.loads((folder / f"{name}.toml").read_text()) for name in ("digits-pbt", "random"))
        self.assertEqual(baseline["searcher"], {"type": "random"})
        self.assertEqual([pbt["study"].pop("name"), baseline["study"].pop("name")], ["digits-pbt", "digits-random"])
        self.assertIn("scheduler", pbt)
        del pbt["scheduler"]
        self.assertEqual(pbt, baseline)

    def test_groups_of_different_sizes_take_over_from_each_other(self):
        self.take_over_between_sizes()

    def test_states_of_trainables_come_from_memory(self):
        job = SOURCES / "jobs" / "digits-pbt"
        self.ranktune("run", str(job / "digits-pbt.toml"), "--local", "4", "study.num_trials=8", "study.max_iterations=24",
                      "scheduler.interval=4", "checkpoint.interval=none", "study.name=memory")
        whole = self.exported("memory")
        takeovers = sum(len(trial.get("takeovers", [])) for trial in whole["trials"])
        self.assertGreater(takeovers, 0)
        lines = "".join(path.read_text() for path in (self.cwd / "memory" / "logs").iterdir())
        from_memory = lines.count("comes from the memory of rank")
        self.assertGreater(from_memory, 0)
        self.assertGreaterEqual(from_memory + lines.count("is read from disk"), takeovers)
        out, _ = self.ranktune("replay", "memory", "--verify")
        self.assertIn("verified", out)

    def test_members_wait_for_each_other_at_barriers(self):
        self.study(mode="synchronous = true")
        out, _ = self.ranktune(*self.command()[1:])
        self.assertRegex(out, r"(?m)^plan +6 trials · synchronous population-based training$")
        whole, takeovers = self.check()
        self.assertGreater(takeovers, 0)
        for trial in whole["trials"]:
            for taken in trial.get("takeovers", []):  # the state that the donor had at the same barrier
                self.assertEqual(taken["donor_iteration"], taken["iteration"], trial["id"])

    def test_a_member_is_repeated_from_scratch_with_its_schedule(self):
        self.study()
        self.ranktune(*self.command()[1:])
        whole, _ = self.check()
        trial = next(trial for trial in whole["trials"] if trial.get("takeovers"))["id"]
        trace = json.loads((self.traces / str(trial)).read_text())
        again, _ = self.ranktune("replay", "population", "--schedule", str(trial))
        self.assertIn("[scheduler.schedule]", again)
        self.write("again.toml", again)
        self.ranktune("run", "again.toml", "--local", "1")
        self.assertEqual(json.loads((self.traces / "0").read_text()), trace)
        out, _ = self.ranktune("replay", f"population-trial-{trial}", "--verify")
        self.assertIn("verified", out)

    def test_a_schedule_is_what_the_weights_saw_when_there_is_no_room_for_all_states(self):
        self.study(mode="")
        out, _ = self.ranktune(*self.command(2)[1:], "checkpoint.max_bytes=500")  # of two or three states
        self.assertRegex(" ".join(out.split()), r"room .*needs 8 checkpoints and more at one time, so that "
                         r"checkpoint\.max_bytes \(500 B\) has room for states of up to 62 B each")
        whole, takeovers = self.check()
        self.assertGreater(takeovers, 0)
        trained = len(whole["reports"])  # nobody trains from the beginning what it had trained
        self.assertLess(trained, 2 * self.members * self.ceiling)
        for trial in whole["trials"]:
            last = trial["attempts"][-1]
            if trial.get("takeovers"):
                self.assertFalse(last["from_iteration"] == 0 and last.get("from_trial") is None, trial)
        best = whole["study"]["best_trial"]
        again, _ = self.ranktune("replay", "population", "--schedule", "best")
        self.write("again.toml", again)
        self.ranktune("run", "again.toml", "--local", "1")
        value = next(trial for trial in whole["trials"] if trial["id"] == best)["best"]["value"]
        repeated = self.exported(f"population-trial-{best}")["trials"][0]["best"]["value"]
        self.assertAlmostEqual(repeated, value, 9)

    def test_a_member_that_begins_from_scratch_begins_with_its_first_configuration(self):
        self.program = TRAIN.replace("while True:", '''fatal = os.path.join(os.environ["TRACES"], f"fatal-{me.trial}")
while True:
    if len(history) == 9 and not os.path.exists(fatal):
        open(fatal, "w").close()
        raise RuntimeError("once")''')
        self.study()
        subprocess.run([*self.command(), "failure.in_a_row=100"], cwd=self.cwd, env=environment(), timeout=TIMEOUT,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        failed = [trial["id"] for trial in self.exported("population")["trials"] if trial["state"] == "failed"]
        self.assertTrue(failed)
        self.ranktune(*self.command()[1:], "--restart-errored")
        whole, _ = self.check()
        for trial in whole["trials"]:
            if trial["id"] in failed:
                self.assertIn((0, None), [(attempt["from_iteration"], attempt.get("from_trial"))
                                          for attempt in trial["attempts"][1:]], trial)

    def test_no_kill_leaves_a_mixture_of_two_members(self):
        self.kill_at_random()

    def test_no_kill_at_a_barrier_leaves_a_mixture_of_two_members(self):
        self.kill_at_random(mode="synchronous = true")


class Stayers(Members):
    """Programs that take over the state of others without being started again. Four members, that exploit often."""
    members = 4
    program = STAYS

    def command(self, workers=4):
        return super().command(workers) + [f"study.num_trials={self.members}", f"study.max_iterations={self.ceiling}",
                                           "scheduler.interval=1", "failure.max_failures=100"]

    def starts(self):
        """(pid, trial) of every start of a program."""
        path = self.traces / "starts"
        lines = path.read_text().splitlines() if path.exists() else []
        return [tuple(map(int, line.split())) for line in lines if len(line.split()) == 2]

    def test_members_take_over_from_each_other_and_every_view_says_so(self):
        for ranks, self.members in ((1, 4), (2, 2)):
            with self.subTest(ranks=ranks):
                self.study(str(ranks))
                self.ranktune(*self.command(4)[1:])
                _, takeovers = self.check()
                self.assertGreater(takeovers, 0)  # how many depends on who reports first
                self.assertEqual(sorted(trial for _, trial in self.starts()), list(range(self.members)))
                for path in (self.cwd / "population", self.traces):
                    shutil.rmtree(path)

    def test_groups_of_different_sizes_take_over_from_each_other(self):
        self.members = 6
        self.take_over_between_sizes()

    def test_no_kill_leaves_a_mixture_of_two_members(self):
        self.kill_at_random()

    def test_no_kill_of_a_program_or_of_a_worker_leaves_a_mixture_of_two_members(self):
        self.ceiling = 60
        self.study()
        dice = random.Random(2)
        killed = 0
        while killed < 8:
            process = self.started(self.command())
            while process.poll() is None and killed < 8:
                time.sleep(dice.uniform(0.02, 0.3))
                programs = [pid for pid, _ in self.starts() if self.is_mine(pid)]
                victims = programs if dice.random() < 0.8 else self.workers_of(programs)
                if victims:
                    os.kill(dice.choice(victims), signal.SIGKILL)
                    killed += 1
            self.assertNotEqual(process.poll(), 0, "the study is too short for this test")
            self.kill_all()
            process.wait(TIMEOUT)
        # (A trial whose program was killed twice at the same iteration has failed.)
        self.ranktune(*self.command()[1:], "--resume-errored")
        self.check()

    def workers_of(self, programs):
        """The processes that have started these."""
        workers = set()
        for pid in programs:
            try:
                with open(f"/proc/{pid}/stat") as file:
                    workers.add(int(file.read().rsplit(")", 1)[1].split()[1]))
            except (FileNotFoundError, ProcessLookupError):
                pass
        return [pid for pid in sorted(workers) if self.is_mine(pid)]


if __name__ == "__main__":
    import sys
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
