#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands before, after each and after all trials: side_tasks_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import csv
import io
import json
import os
import re
import signal
import subprocess
import unittest

from cli_test import PROGRAM, Case, environment, sys
from kills import Kills

STUDY = """[study]
name = "beside"
metric = "score"
mode = "max"
num_trials = 3
max_iterations = 2
seed = 1
[trainable]
{trainable}
[space]
lr = "loguniform(1e-3, 1.0)"
[searcher]
type = "random"
[run]
abort_grace = "2s"
{more}
"""
CURVE = 'builtin = "curve"'
TRAIN = """import os, ranktune
data = open("data").read().strip()
for at in (1, 2):
    ranktune.report(score=ranktune.config().lr * at, checkpoint=lambda folder: open(folder + "/weights", "w").write(data + str(at)))
"""
EVALUATE = """import json, os, sys, ranktune
weights = open(sys.argv[1] + "/weights").read()
assert ranktune.checkpoint() == sys.argv[1] and ranktune.context().trial == int(sys.argv[2])
assert json.load(open(sys.argv[3]))["lr"] == ranktune.config().lr == float(sys.argv[4])
print("evaluating", weights)
ranktune.report(test_accuracy=0.5, test_early=1)
ranktune.report(test_accuracy=0.25 * ranktune.context().trial)
print(json.dumps({"test_loss": ranktune.config().lr}))
"""
# Notes that it has begun, waits for a file, and notes its end.
HELD = "echo {name} >> ran; while ! test -e go-{name}; do sleep 0.05; done; echo {name} done >> ran"


class SideTasks(Kills, Case):
    def study(self, more, trainable=CURVE):
        self.write("beside.toml", STUDY.format(trainable=trainable, more=more))

    def run_it(self, *arguments, workers=2, code=0):
        return self.ranktune("run", "beside.toml", "--local", str(workers), *arguments, code=code)

    def start_it(self, *arguments, workers=2):
        variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        process = subprocess.Popen([PROGRAM, "run", "beside.toml", "--local", str(workers), *arguments], cwd=self.cwd,
                                   env=environment(**variables), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.addCleanup(self.kill_all)
        self.addCleanup(process.stdout.close)
        return process

    def ran(self):
        path = self.cwd / "ran"
        return path.read_text().splitlines() if path.exists() else []

    def until_it_ran(self, process, line, times=1):
        self.wait_until(lambda: process.poll() is not None or self.ran().count(line) >= times, line)
        self.assertIsNone(process.poll(), self.ran())

    def verified(self):
        self.assertRegex(self.ranktune("replay", "beside", "--verify")[0], r"^verified: \d+ records")

    def test_programs_prepare_evaluate_and_plot(self):
        (self.cwd / "train.py").write_text(TRAIN)
        (self.cwd / "evaluate.py").write_text(EVALUATE)
        python = sys.executable
        self.study(f"""[before]
command = "env > before.env && echo rows > data && echo prepared"
[after_trial]
command = "{python} evaluate.py {{checkpoint}} {{trial}} {{config}} {{lr}}"
[after]
command = "ls beside/checkpoints > left && echo plotted"
""", trainable=f'command = "{python} train.py"')
        out, _ = self.run_it()
        self.assertRegex(out, r"(?m)^ +after_trial:\s+\S+ evaluate.py \{checkpoint\}")
        self.assertRegex(out, r"(?m)^beside +before: done after [^;]+; after_trial: 3 done; after: done after ")
        variables = dict(line.split("=", 1) for line in (self.cwd / "before.env").read_text().splitlines() if "=" in line)
        self.assertEqual(variables["RANKTUNE_STUDY"], "beside")
        self.assertNotIn("RANKTUNE_TRIAL", variables)
        self.assertNotIn("RANKTUNE_CHECKPOINT", variables)
        exported = self.exported("beside")
        self.assertEqual(exported["study"]["before"]["state"], "done")
        self.assertEqual(exported["study"]["after"]["state"], "done")
        best = exported["study"]["best_trial"]
        for trial in exported["trials"]:
            after = trial["after_trial"]
            self.assertEqual((after["state"], after["attempts"]), ("done", 1))
            self.assertEqual(after["metrics"], {"test_accuracy": 0.25 * trial["id"], "test_early": 1.0,
                                                "test_loss": trial["configuration"]["lr"]})
            self.assertEqual(bool(trial["checkpoints"]), trial["id"] == best)  # the others had theirs until the task was over
        for report in exported["reports"]:
            self.assertEqual(list(report["metrics"]), ["score"])
        rows = list(csv.DictReader(io.StringIO(self.ranktune("export", "beside", "--format", "csv")[0])))
        self.assertEqual([row["test_accuracy"] for row in rows], ["0.0", "0.25", "0.5"])
        self.assertRegex(self.ranktune("best", "beside")[0], rf"(?m)^after +test_accuracy {0.25 * best:g}, test_early 1, test_loss ")
        summary = json.loads(self.ranktune("best", "beside", "--json")[0])
        self.assertEqual(summary["best"]["after_trial"]["test_accuracy"], 0.25 * best)
        self.assertEqual(json.loads(self.ranktune("status", "beside", "--json")[0])["side_tasks"], {"over": 5, "running": 0, "waiting": 0})
        status = self.ranktune("status", "beside", "--columns", "trial,test_accuracy", "--sort", "test_accuracy:desc")[0]
        self.assertRegex(status, r"(?m)^beside before: done")
        self.assertLess(status.index("0.5000"), status.index("0.2500"))
        self.assertRegex(self.ranktune("explain", "beside", "1")[0], r"(?m)^after +test_accuracy 0.25")
        self.assertRegex(self.ranktune("explain", "beside")[0], r"(?m)^beside +before: done after ")
        self.assertIn("| evaluating rows2", self.ranktune("logs", "beside", "1")[0])
        self.assertIn("| prepared", self.ranktune("logs", "beside", "before")[0])
        self.assertIn("| plotted", self.ranktune("logs", "beside", "after")[0])
        self.assertEqual(list((self.cwd / "beside/attempts").glob("*")), [])
        self.ranktune("report", "beside", "-o", "page.html")
        self.assertIn("after the trial: test_accuracy", (self.cwd / "page.html").read_text())
        self.verified()
        (self.cwd / "data").unlink()
        self.run_it()  # a finished study does nothing again
        self.assertFalse((self.cwd / "data").exists())

    def test_before_makes_the_data_that_is_staged(self):
        (self.cwd / "make.py").write_text("open('made.bin', 'w').write('7'); open('tries', 'a').write('x')\n"
                                          "raise SystemExit(open('tries').read() == 'x')\n")
        (self.cwd / "read.py").write_text("import sys, ranktune\n"
                                          "ranktune.report(score=float(open(sys.argv[1]).read()), staged=sys.argv[1] != sys.argv[2])\n")
        (self.cwd / "copies").mkdir()
        self.study(f"""[before]
command = "{sys.executable} make.py"
[failure]
max_failures = 0
[data]
made = "made.bin"
stage = true
directory = "{self.cwd}/copies"
""", trainable=f'command = "{sys.executable} read.py {{data.made}} {self.cwd}/made.bin"')
        self.assertIn("data.made is copied when [before] has made it", " ".join(self.run_it("study.max_iterations=1", "--dry-run")[0].split()))
        (self.cwd / "made.bin").write_text("old")
        self.run_it("study.max_iterations=1", code=4)  # made in part, and of that nothing is remembered
        (self.cwd / "made.bin").write_text("half")
        self.run_it("study.max_iterations=1")
        for report in self.exported("beside")["reports"]:
            self.assertEqual(report["metrics"], {"score": 7.0, "staged": 1.0})
        self.run_it("study.max_iterations=1", "study.num_trials=4")
        (self.cwd / "made.bin").write_text("another")
        refusal = self.run_it("study.max_iterations=1", "study.num_trials=5", code=2)[1]
        self.assertIn("the file of data.made holds something else", " ".join(refusal.split()))

    def test_after_kill_9_what_was_under_way_runs_again_and_what_had_ended_does_not(self):
        names = ("before", "trial1", "after")
        self.study(f"""[before]
command = "{HELD.format(name="before")}"
[after_trial]
command = "test -s {{checkpoint}} && if test {{trial}} = 1; then {HELD.format(name="trial1")}; else echo trial{{trial}} >> ran; fi"
[after]
command = "{HELD.format(name="after")}"
""")
        for name in names:
            process = self.start_it()
            self.until_it_ran(process, name)
            if name == "trial1":  # a trial that is killed while it saves its last state has none for its task
                self.until_it_ran(process, "trial0")
                self.until_it_ran(process, "trial2")
            self.kill_all()
            process.wait()
            (self.cwd / f"go-{name}").write_text("")
        logs = self.cwd / "beside/logs"
        (logs / f"crash-{len(names)}-1").write_text(f"{2**32 - 2} 1 device the GPU failed\n")  # as a rank leaves it: of `after`
        self.run_it()
        self.assertRegex((logs / f"start-{len(names) + 1}.log").read_text(), r" device-lost +trial=after ")
        ran = self.ran()
        for name in names:
            self.assertEqual((ran.count(name), ran.count(f"{name} done")), (2, 1), ran)
        for trial in (0, 2):
            self.assertIn(ran.count(f"trial{trial}"), (1, 2), ran)  # perhaps killed before its end was recorded
        self.assertEqual([line for line in ran if line.endswith("done")], [f"{name} done" for name in names])
        self.verified()

    def test_a_study_that_stops_gives_up_what_runs_and_does_it_in_the_next_start(self):
        self.study(f"[after_trial]\ncommand = \"if test {{trial}} = 0; then {HELD.format(name='trial0')}; fi\"\n")
        process = self.start_it()
        self.until_it_ran(process, "trial0")
        self.wait_until(lambda: len(re.findall("finished", self.ranktune("status", "beside")[0])) >= 3, "the trials")
        self.ranktune("stop", "beside")
        out = process.communicate()[0]
        self.assertEqual(process.returncode, 75, out)
        self.assertRegex(out, r"(?m)^beside +after_trial: 2 done, 1 waiting")
        (self.cwd / "go-trial0").write_text("")
        self.run_it()
        self.assertEqual(self.ran(), ["trial0", "trial0", "trial0 done"])

    def test_a_worker_that_dies_gives_its_side_task_to_another(self):
        self.study("[before]\ncommand = \"echo $PPID >> ran; if test $(wc -l < ran) = 1; then sleep 1000; fi\"\n")
        process = self.start_it(workers=3)
        self.wait_until(lambda: process.poll() is not None or self.ran(), "the first attempt")
        os.kill(int(self.ran()[0]), signal.SIGKILL)
        out = process.communicate()[0]
        if process.returncode != 0:  # a launcher that ends with its rank
            out = self.run_it()[0]
        self.assertEqual(len(self.ran()), 2, out)
        self.assertEqual({trial["state"] for trial in self.exported("beside")["trials"]}, {"finished"})

    def test_helpers_do_side_tasks_while_all_others_train(self):
        # The next trial waits for the task that follows the one before: there is one worker for trials.
        (self.cwd / "train.py").write_text("""import os, ranktune, time
trial = ranktune.context().trial
while trial > 0 and not os.path.exists(f"evaluated-{trial - 1}"):
    time.sleep(0.05)
ranktune.report(score=1)
""")
        self.study("[resources]\nhelpers = 1\n[after_trial]\ncommand = \"touch evaluated-{trial}\"\n",
                   trainable=f'command = "{sys.executable} train.py"\ncheckpoints = false')
        out, _ = self.run_it()
        self.assertIn("after_trial: 3 done", out)
        self.assertIn("1 worker for them alone (resources.helpers)", out)
        self.assertTrue((self.cwd / "evaluated-2").exists())
        _, err = self.run_it("-o", "other", workers=1, code=2)
        self.assertIn("resources.helpers: with 1 of 1 worker kept from trials, no trial of 1 rank fits", err)

    def test_failures(self):
        self.study("""[before]
command = "test -e data"
[after_trial]
command = "test {trial} != 1 || (echo no such class >&2; exit 3)"
[after]
command = "test -e data/plots"
""")
        out, _ = self.run_it(code=4)
        self.assertRegex(out, r"(?s)why +\[before\] failed, so no trial has begun: .*exit code 1.*the same\s+command tries it again")
        self.assertEqual(self.exported("beside")["trials"], [])
        self.assertRegex(self.ranktune("status", "beside")[0], r"(?m)^beside before: failed")
        (self.cwd / "data").mkdir()
        out, _ = self.run_it(code=1)
        self.assertRegex(out, r"(?s)why +all trials are done, but \[after\] failed: .*exit code 1")
        exported = self.exported("beside")
        self.assertEqual([trial["state"] for trial in exported["trials"]], ["finished"] * 3)
        self.assertEqual([trial["after_trial"]["state"] for trial in exported["trials"]], ["done", "failed", "done"])
        self.assertRegex(exported["trials"][1]["after_trial"]["message"], "exit code 3: no such class")
        self.assertRegex(out, r"after_trial 1: exit code 3: no such class")
        (self.cwd / "data/plots").write_text("")
        out, _ = self.run_it()
        self.assertRegex(out, r"after_trial: 2 done, 1 failed; after: done")
        self.assertEqual(len(self.exported("beside")["trials"]), 3)
        self.verified()

    def test_a_failed_task_keeps_its_checkpoint_and_runs_again_alone(self):
        self.study("""[after_trial]
command = "test -s {checkpoint} && echo {trial} >> ran && (test -e mended || test {trial} != 1)"
[after]
command = "echo after >> ran"
""")
        out, _ = self.run_it()
        self.assertRegex(out, r"(?m)^ +ranktune run beside --restart-errored +# 1 failed \[after_trial\], again")
        self.assertEqual(len(self.exported("beside")["trials"][1]["checkpoints"]), 1)
        self.assertEqual(sorted(self.ran()), ["0", "1", "2", "after"])
        out, _ = self.run_it()
        self.assertRegex(out, r"ranktune run beside --restart-errored")
        for mended in (False, True):
            if mended:
                (self.cwd / "mended").touch()
            (self.cwd / "ran").unlink()
            out, _ = self.run_it("--restart-errored")
            self.assertIn("1 failed [after_trial] is tried again", " ".join(out.split()))
            self.assertEqual(self.ran(), ["1", "after"])  # which may read what the task reported
        exported = self.exported("beside")
        self.assertEqual(exported["trials"][1]["after_trial"]["state"], "done")
        self.assertEqual([bool(trial["checkpoints"]) for trial in exported["trials"]],
                         [trial["id"] == exported["study"]["best_trial"] for trial in exported["trials"]])
        self.assertEqual([len(trial["attempts"]) for trial in exported["trials"]], [1, 1, 1])
        self.verified()
        self.assertIn("--restart-errored has no effect: no trial of this study has failed, and no [after_trial]",
                      " ".join(self.run_it("--restart-errored")[1].split()))

    def test_a_start_that_ends_some_of_the_tasks_that_it_tries_again_makes_progress(self):
        self.study(f"[after_trial]\ncommand = \"test -e mended && if test {{trial}} = 2; then {HELD.format(name='trial2')}; fi\"\n")
        self.run_it()
        (self.cwd / "mended").touch()
        process = self.start_it("--restart-errored")
        self.until_it_ran(process, "trial2")
        self.wait_until(lambda: "2 done" in self.ranktune("status", "beside")[0], "the other two")
        self.ranktune("stop", "beside")
        out = process.communicate()[0]
        self.assertEqual(process.returncode, 75, out)
        self.assertEqual(self.outcome("beside")["progress"], "true")

    def test_the_results_are_there_when_the_last_command_begins(self):
        self.study("[after]\ncommand = \"cp beside/metrics.h5 seen.h5\"\n")
        self.run_it()
        self.assertTrue((self.cwd / "seen.h5").exists())
        (self.cwd / "rows.csv").write_text("x\n1\n2\n")
        self.ranktune("map", "--input", "rows.csv", "--local", "2", "after.command=cp map/results.csv seen.csv", "--",
                      "echo '{{\"y\": {x}}}'; test {x} = 1", code=3)
        self.assertEqual((self.cwd / "seen.csv").read_bytes(), (self.cwd / "map/results.csv").read_bytes())

    def test_a_task_that_takes_too_long_and_one_that_is_tried_again(self):
        self.study("""[failure]
max_failures = 1
[before]
command = "echo try >> ran; if test $(wc -l < ran) = 1; then sleep 1000; fi"
timeout = "1s"
""")
        self.run_it()
        self.assertEqual(self.ran(), ["try", "try"])
        log = (self.cwd / "beside/logs/start-1.log").read_text()
        self.assertRegex(log, r'W task task=before outcome=failed action=retry message=".*the task took longer than 1s \(before.timeout\)')

    def test_tables_that_go_leave_the_results(self):
        self.study("[before]\ncommand = \"true\"\n[after_trial]\ncommand = \"true\"\n[after]\ncommand = \"true\"\n")
        self.run_it()
        self.study("")
        self.run_it("study.num_trials=4")
        self.assertTrue((self.cwd / "beside" / "metrics.h5").exists())
        self.verified()
        # One that comes later runs although all trials have ended.
        self.study("[after]\ncommand = \"echo later >> ran\"\n")
        self.run_it("study.num_trials=4")
        self.assertEqual(self.ran(), ["later"])

    def test_variables_of_the_program_are_those_of_the_trial(self):
        (self.cwd / "train.py").write_text("import ranktune\nfor at in (1, 2):\n    ranktune.report(score=at)\n")
        show = """echo "{name} $LR $PLACE $SAME" >> said"""
        self.study(f"""[before]
command = '{show.format(name="before")}'
[after_trial]
command = 'test -d "$PLACE" && {show.format(name="trial {trial}")}'
[after]
command = '{show.format(name="after")}'
""", trainable=f"""command = "{sys.executable} train.py"
env = {{ LR = "{{lr}}", PLACE = "{{folder}}", SAME = "same" }}""")
        self.run_it()
        of_trials = [f"trial {each['id']} {each['configuration']['lr']} {self.cwd}/beside/trials/{each['id']} same"
                     for each in self.exported("beside")["trials"]]
        # Those that differ between trials are left out where there is no trial.
        self.assertEqual(sorted((self.cwd / "said").read_text().splitlines()), sorted([*of_trials, "after   same", "before   same"]))

    def test_mistakes(self):
        self.study("""[resources]
helpers = 1
""")
        _, err = self.run_it(code=2)
        self.assertIn("resources.helpers: keeps workers for [before], [after_trial] and [after], and the study has none", err)
        self.study("""[before]
command = "prepare {trial}"
[after_trial]
command = "evaluate {chekpoint}"
[after]
directory = "nowhere"
""")
        _, err = self.run_it(code=2)
        self.assertRegex(err, r"before.command: unknown placeholder \{trial\}; known: \{iterations\}")
        self.assertRegex(err, r"after_trial.command: unknown placeholder \{chekpoint\}; did you mean 'checkpoint'\?")
        self.assertRegex(err, r"after.command: missing")
        self.assertRegex(err, r"after.directory: ")
        self.study('[after_trial]\ncommand = "evaluate {checkpoint}"\n', trainable='command = "true"\ncheckpoints = false')
        _, err = self.run_it(code=2)
        self.assertIn("after_trial.command: has {checkpoint}, and the trainable saves no checkpoints", err)

    def test_simulations_have_no_side_tasks(self):
        self.study('[before]\ncommand = "touch here"\n[after]\ncommand = "touch here"\n')
        self.ranktune("simulate", "beside.toml", "--groups", "2")
        self.assertIn("trial #0", self.ranktune("run", "beside.toml", "--dry-run", "--local", "2")[0].replace("#0", "trial #0", 1))
        self.assertFalse((self.cwd / "here").exists())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
