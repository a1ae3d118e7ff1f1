#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ask and tell: loops of the user's drive a study: asking_test.py SOURCE_ROOT PROGRAM [TEST...]"""
import concurrent.futures
import contextlib
import gc
import json
import multiprocessing
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

FOLDER = pathlib.Path(sys.argv[1]).resolve() / "tools/python"
PROGRAM = os.path.abspath(sys.argv[2])
sys.path.insert(0, str(FOLDER))
sys.dont_write_bytecode = True

import ranktune  # noqa: E402
import ranktune_studies  # noqa: E402
from ranktune_studies import RanktuneError  # noqa: E402

SPACE = {"lr": "loguniform(1e-4, 1)", "net": {"units": [32, 64]}}
RANDOM = {"metric": "loss", "mode": "min", "searcher": "random", "space": SPACE}
STOPS_EARLY = {"type": "asha", "variant": "stop", "eta": 3}
SECONDS = 120  # a guard against waiting for ever


def loss_of(config):
    return config.lr


class Asking(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ranktune-asking-")
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        os.environ["RANKTUNE_PROGRAM"] = PROGRAM

    def create(self, name="digits", num_trials=6, **keys):
        study = ranktune_studies.create(name, num_trials=num_trials, **{**RANDOM, **keys})
        self.addCleanup(study.close)
        return study

    def verify(self, directory="digits"):
        """Every decision of the journal is made again."""
        return subprocess.run([PROGRAM, "replay", directory, "--verify"], capture_output=True, text=True, check=True).stdout

    def records(self, text):
        done = subprocess.run([PROGRAM, *text.split()], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_a_loop_drives_a_study_to_its_end(self):
        told = {}
        with self.create(max_iterations=1) as study:
            self.assertEqual((study.name, study.objectives, study.max_iterations), ("digits", [("loss", "min")], 1))
            while trial := study.ask():
                self.assertEqual((trial.number, trial.attempt, trial.iteration), (len(told), 1, 0))
                self.assertIn(trial.config.net.units, (32, 64))
                told[trial.number] = trial.config["lr"]
                study.tell(trial, {"loss": trial.config["lr"], "seconds": 3})
                self.assertEqual(len(study.trials), len(told))  # no trial begins that nobody asked for
            self.assertTrue(study.ended)
            self.assertIsNone(study.ask())
            self.assertEqual(study.best.best, min(told.values()))
            with self.assertRaisesRegex(RanktuneError, "the study is over|told already"):  # its process is ending, or has ended
                study.tell(0, 1.0)
        read = ranktune.Study("digits")
        self.assertEqual([trial.best for trial in read.trials], [told[number] for number in range(6)])
        self.assertEqual({report["metrics"]["seconds"] for report in read.reports}, {3.0})
        self.assertEqual(read.exit_code, 0)
        self.assertIn("verified", self.verify())
        self.assertTrue(pathlib.Path("digits/metrics.h5").exists())
        for verb in ("status digits", "best digits", "explain digits best", "report digits", "validate digits/study.toml"):
            code, text = self.records(verb)
            self.assertEqual(code, 0, text)
        with ranktune_studies.open_study("digits") as again:  # a study that is over
            self.assertIsNone(again.ask())
        with self.create(num_trials=7) as longer:
            trial = longer.ask()
            self.assertEqual(trial.number, 6)
            longer.tell(trial, 0.5)
            self.assertIsNone(longer.ask())
        with ranktune_studies.open_study("digits", "study.num_trials=8") as longer:
            self.assertEqual(longer.ask().number, 7)
        _, text = self.records("status digits")
        self.assertIn("""python3 -ic 'import ranktune; study = ranktune.open_study("digits")'""", " ".join(text.split()))

    def test_with_every_searcher(self):
        for searcher in ("auto", "tpe", "gp", "sobol", "cmaes", "grid"):
            space = {"x": [1, 2, 3]} if searcher == "grid" else {"x": "uniform(-1, 1)", "y": "uniform(-1, 1)"}
            keys = {} if searcher == "grid" else {"num_trials": 12}
            with self.subTest(searcher), ranktune_studies.create(searcher, metric="loss", mode="min", searcher=searcher,
                                                                 space=space, **keys) as study:
                while trial := study.ask():
                    study.tell(trial, trial.config["x"] ** 2)
                self.assertEqual(len(study.trials), 3 if searcher == "grid" else 12)
                self.assertNotIn("stopgap", {trial.origin["kind"] for trial in study.trials})
            self.assertIn("verified", self.verify(searcher))

    def test_several_are_asked_for_at_once(self):
        with self.create(num_trials=10) as study:
            out = [study.ask() for _ in range(4)]
            self.assertEqual([trial.number for trial in out], [0, 1, 2, 3])
            for trial in reversed(out):
                study.tell(trial, float(trial.number))
            self.assertEqual(len(study.trials), 4)
            rest = [study.ask() for _ in range(6)]
            self.assertEqual([trial.number for trial in rest], [4, 5, 6, 7, 8, 9])
            self.assertIsNone(study.ask())  # all are out
            self.assertFalse(study.ended)
            for trial in rest:
                study.tell(trial.number, float(trial.number))
            self.assertTrue(study.ended)
        self.assertIn("verified", self.verify())

    def test_threads_share_a_study(self):
        numbers = []
        with self.create(num_trials=40) as study:
            def work():
                while trial := study.ask():
                    study.tell(trial, trial.config["lr"])
                    numbers.append(trial.number)
            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(sorted(numbers), list(range(40)))
            self.assertTrue(study.ended)
        self.assertIn("verified", self.verify())

    def test_processes_run_the_trials(self):
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
            with self.create(num_trials=7) as study:
                while batch := [trial for trial in (study.ask(), study.ask()) if trial is not None]:
                    for trial, loss in zip(batch, pool.map(loss_of, [trial.config for trial in batch])):
                        study.tell(trial, loss)
            self.assertTrue(ranktune.Study("digits").ended)  # although the pool holds the study's pipe
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
            with self.create("unfinished") as study:
                study.tell(study.ask(), pool.submit(float, 1).result())

    def test_reports_stop_trials_early(self):
        with self.create(num_trials=27, max_iterations=9, scheduler=STOPS_EARLY) as study:
            lengths = []
            while trial := study.ask():
                for step in range(1, 10):
                    loss = trial.number + 1 / step
                    self.assertFalse(trial.should_stop())
                    if trial.report(loss, iteration=step):
                        break
                self.assertTrue(trial.should_stop())
                lengths.append(trial.iteration)
                with self.assertRaisesRegex(RanktuneError, "its last report is its result"):
                    study.tell(trial, 0.0)
                study.tell(trial, loss)
            self.assertEqual(lengths[0], 9)
            self.assertEqual(set(lengths[3:]), {1})  # they become worse and worse
            self.assertEqual([trial.iterations for trial in study.trials], lengths)
        self.assertIn("verified", self.verify())
        with self.create("middle", num_trials=3, max_iterations=9, scheduler="median") as study:
            trial = study.ask()
            self.assertFalse(trial.report({"loss": 3.0, "accuracy": 0.5}))
            study.tell(trial)  # before the ceiling
            trial = study.ask()
            study.tell(trial, 2.0)  # a report of its own
            self.assertEqual([(each.state, each.iterations) for each in study.trials[:2]], [("finished", 1), ("finished", 1)])

    def test_schedulers_that_need_a_saved_state_are_refused(self):
        with self.assertRaisesRegex(RanktuneError, 'the trainable \'outside\' cannot save checkpoints; .*"stop"'):
            self.create(max_iterations=9, scheduler="asha")
        with self.assertRaisesRegex(RanktuneError, "study.max_concurrent: the loop decides(.|\n)*failure: nobody waits"):
            self.create(max_concurrent=4, failure={"report_timeout": "1m"})
        self.assertFalse(pathlib.Path("digits").exists())

    def test_trials_that_fail(self):
        with self.create(num_trials=3, failure={"max_failures": 1, "tolerate": 1.0}) as study:
            study.tell(study.ask(), error=ValueError("the loss is NaN"))
            again = study.ask()
            self.assertEqual((again.number, again.attempt), (0, 2))
            study.tell(again, failed=True)
            study.tell(study.ask(), error="out of memory")
            self.assertEqual(study.trials[0].message, "it failed")
            again = study.ask()
            self.assertEqual((again.number, again.attempt), (1, 2))
            study.tell(again, 1.0)
            study.tell(study.ask(), 2.0)
            self.assertIsNone(study.ask())
            self.assertEqual([trial.state for trial in study.trials], ["failed", "finished", "finished"])
        self.assertIn("verified", self.verify())

    def test_several_objectives_and_constraints(self):
        keys = {"metric": ["loss", "seconds"], "mode": ["min", "min"], "constraints": ["memory <= 8"]}
        with self.create(num_trials=4, **keys) as study:
            for loss, seconds in ((1, 4), (4, 1), (2, 2), (5, 5)):
                trial = study.ask()
                with self.assertRaisesRegex(RanktuneError, "lacks 'memory'"):
                    study.tell(trial, (loss, seconds))
                study.tell(trial, {"loss": loss, "seconds": seconds, "memory": 9 if loss == 4 else 3})
            self.assertEqual({trial.id for trial in study.results().front}, {0, 2})
        self.assertIn("verified", self.verify())

    def test_mistakes_are_told_and_change_nothing(self):
        with self.assertRaisesRegex(RanktuneError, r"space.lr: loguniform needs low > 0"):
            self.create(space={"lr": "loguniform(0, 1)"})
        with self.create(max_iterations=3) as study:
            trial = study.ask()
            for wrong, words in ((float("nan"), "loss is nan"), (float("inf"), "loss is inf"), ("much", "no number"),
                                 ({"los": 1.0}, "lacks 'loss'; the study needs loss, and was given los"), ({}, "lacks 'loss'"),
                                 ((1.0, 2.0), "loss is .*no number"), (None, "has reported nothing")):
                with self.subTest(wrong), self.assertRaisesRegex(RanktuneError, words):
                    study.tell(trial, wrong)
            with self.assertRaisesRegex(RanktuneError, "there is no trial 7; so far 1 trial began"):
                study.tell(7, 1.0)
            with self.assertRaisesRegex(RanktuneError, "not both"):
                study.tell(trial, 1.0, failed=True)
            with self.assertRaisesRegex(RanktuneError, "the next is 1, not 5"):
                trial.report(1.0, iteration=5)
            study.tell(trial, 1.0)
            with self.assertRaisesRegex(RanktuneError, "trial 0 was told already: it is finished"):
                study.tell(trial, 1.0)
            self.assertEqual(len(study.results().reports), 1)
        with self.assertRaisesRegex(RanktuneError, "the study is closed"):
            study.ask()
        with self.assertRaisesRegex(RanktuneError, "there is no directory 'nowhere'"):
            ranktune_studies.open_study("nowhere")
        for verb in ("run digits", "run --dry-run digits.toml", "submit digits -t 1h --print"):
            code, text = self.records(verb)
            self.assertEqual(code, 2, text)
            self.assertIn('open_study(', text)

    def test_another_loop_is_refused_while_one_runs(self):
        study = self.create()
        trial = study.ask()
        with self.assertRaisesRegex(RanktuneError, "is being run already.* It is open in this process: close"):
            ranktune_studies.open_study("digits")
        study.tell(trial, 1.0)
        study.close()
        with ranktune_studies.open_study("digits") as again:
            self.assertEqual(again.ask().number, 1)

    def test_what_is_out_when_a_loop_ends_is_handed_out_again(self):
        with self.create(num_trials=5, max_iterations=3) as study:
            first, second, third = study.ask(), study.ask(), study.ask()
            second.report(2.0)
            study.tell(third, 3.0)
        with ranktune_studies.open_study("digits") as study:
            with self.assertRaisesRegex(RanktuneError, r"trial 0 is not asked for \(it is"):
                study.tell(0, 1.0)
            asked = [study.ask(), study.ask()]
            self.assertEqual([(trial.number, trial.config) for trial in asked], [(0, first.config), (1, second.config)])
            self.assertEqual([trial.attempt for trial in asked], [2, 2])
            for trial in asked:
                study.tell(trial, 1.0)
            self.assertEqual(study.trials[1].best, 1.0)  # not the report of its first attempt
            while trial := study.ask():
                study.tell(trial, 1.0)
            self.assertTrue(study.ended)
        self.assertIn("verified", self.verify())

    def test_nothing_that_was_told_is_lost_when_the_child_is_killed(self):
        study = self.create(num_trials=4)
        for round in range(4):  # one more than failure.max_losses: a kill is no fault of the trial
            trial = study.ask()
            self.assertEqual((trial.number, trial.attempt), (0, round + 1))
            study._child.send_signal(signal.SIGKILL)
            with self.assertRaisesRegex(RanktuneError, "ended with signal 9; what was told is recorded: go on with"):
                study.tell(trial, 1.0)
            study.close()
            study = ranktune_studies.open_study("digits")
            self.addCleanup(study.close)
        study.tell(study.ask(), 7.0)
        study._child.send_signal(signal.SIGKILL)
        study._child.wait()
        study.close()
        with ranktune_studies.open_study("digits") as study:
            self.assertEqual(study.trials[0].best, 7.0)
            numbers = []
            while trial := study.ask():
                numbers.append(trial.number)
                study.tell(trial, 1.0)
            self.assertEqual(numbers, [1, 2, 3])
        self.assertIn("verified", self.verify())

    def loop(self, text):
        """A loop in a process of its own, and the lines that it prints."""
        program = ("import sys, ranktune_studies\n"
                   "study = ranktune_studies.create('digits', num_trials=5, metric='loss', mode='min', searcher='random',\n"
                   "                                space={'lr': 'uniform(0, 1)'})\n"
                   "print(study._child.pid, flush=True)\n" + text)
        return subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(FOLDER)},
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def test_a_loop_that_is_killed_goes_on(self):
        loop = self.loop("study.tell(study.ask(), 1.0)\n"
                         "trial = study.ask()\n"
                         "print(trial.number, flush=True)\n"
                         "sys.stdin.readline()\n")
        child = os.pidfd_open(int(loop.stdout.readline()))
        self.assertEqual(loop.stdout.readline(), "1\n")
        loop.kill()
        loop.wait()
        self.wait_for(child)  # it ends by itself: its input is closed
        with ranktune_studies.open_study("digits") as study:
            self.assertEqual(study.trials[0].best, 1.0)
            trial = study.ask()
            self.assertEqual((trial.number, trial.attempt), (1, 2))
        loop.stdin.close()
        loop.stdout.close()

    def test_a_study_whose_loop_was_killed_is_waited_for(self):
        loop = self.loop("sys.stdin.readline()\n")
        child = int(loop.stdout.readline())
        os.kill(child, signal.SIGSTOP)  # it is slow
        loop.kill()
        loop.wait()
        sleep = time.sleep

        def go_on(seconds=0.0):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGCONT)
            sleep(seconds)

        self.addCleanup(go_on)
        with mock.patch.object(time, "sleep", side_effect=go_on) as waits, ranktune_studies.open_study("digits") as study:
            self.assertEqual(study.ask().number, 0)
            waits.assert_called()
        loop.stdin.close()
        loop.stdout.close()

    def test_a_fork_of_the_loop_does_not_keep_the_study(self):
        loop = self.loop("import os\n"
                         "trial = study.ask()\n"
                         "if os.fork() == 0:\n"
                         "    try:\n"
                         "        study.tell(trial, 1.0)\n"
                         "    except ranktune_studies.RanktuneError as error:\n"
                         "        print(error, flush=True)\n"
                         "    sys.stdin.readline()\n"
                         "    os._exit(0)\n"
                         "sys.stdin.readline()\n")
        child = os.pidfd_open(int(loop.stdout.readline()))
        self.assertIn("opened by another process", loop.stdout.readline())
        loop.kill()
        loop.wait()
        self.wait_for(child)
        with ranktune_studies.open_study("digits") as study:
            self.assertEqual(study.ask().number, 0)
        loop.stdin.close()
        loop.stdout.close()

    def wait_for(self, process):
        """Until it has ended."""
        self.assertEqual(select.select([process], [], [], SECONDS)[0], [process])
        os.close(process)

    def test_a_study_that_is_stopped_hands_out_nothing_more(self):
        with self.create(num_trials=1_000_000, max_iterations=1_000_000) as study:
            trial, other, untold = study.ask(), study.ask(), study.ask()
            code, text = self.records("stop digits")
            self.assertEqual(code, 0, text)
            while not trial.report(1.0):  # the request is looked for once a second
                pass
            self.assertIn("asked to stop", trial.stop_reason)
            self.assertIsNone(study.ask())
            study.tell(trial)
            study.tell(other, 2.0)
            self.assertIsNone(study.ask())
            self.assertEqual([each.state for each in study.trials], ["finished", "finished", "running"])
        with ranktune_studies.open_study("digits") as study:
            self.assertEqual(study.ask().number, untold.number)

    def test_a_study_that_fails_is_no_study_that_ends(self):
        with self.create(num_trials=1_000_000) as study:
            os.rename("digits", "elsewhere")
            with self.assertRaises(RanktuneError):
                while trial := study.ask():
                    study.tell(trial, 1.0)
            self.head_ends(study)
            with self.assertRaises(RanktuneError):
                study.ask()

    def head_ends(self, study):
        """Until its results are written, and only requests are answered."""
        said = ""
        while "the study is over" not in said:
            with self.assertRaises(RanktuneError) as refused:
                study.tell(0, 1.0)
            said = str(refused.exception)

    def test_what_no_request_can_hold_is_told_at_once(self):
        with self.create(num_trials=9, max_iterations=3, failure={"tolerate": 1.0}) as study:
            for error, message in ((ValueError("cannot read \udcff.png"), "ValueError: cannot read ?.png"),
                                   ("x" * (1 << 21), "x" * 10_000)):
                trial = study.ask()
                study.tell(trial, error=error)
                self.assertEqual(study.trials[trial.number].message, message)
            trial = study.ask()
            with self.assertRaises(TypeError):
                trial.report(1.0, iteration=float("nan"))
            with self.assertRaisesRegex(RanktuneError, "bytes, of at most 1048576"):
                trial.report({"loss": 1.0, **{f"{i:0>99}": 1.0 for i in range(10_000)}})
            self.assertFalse(trial.report({"loss": 1.0, "\udcff": 2.0}, iteration=1))
            self.assertEqual(study.results().reports[-1]["metrics"], {"loss": 1.0, "?": 2.0})

    def interrupt(self, study, call):
        """As Ctrl-C does while the answer is awaited."""
        with mock.patch.object(study, "_receive", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            call()

    def test_calls_that_were_interrupted_count_once(self):
        with self.create(max_iterations=3) as study:
            self.interrupt(study, study.ask)
            first = study.ask()
            self.interrupt(study, study.ask)
            self.assertFalse(first.report(4.0))
            second = study.ask()
            self.assertEqual((first.number, second.number, len(study.trials)), (0, 1, 2))
            self.interrupt(study, lambda: first.report(3.0))
            self.assertFalse(first.report(3.0))  # once more
            self.assertEqual(first.iteration, 2)
            self.interrupt(study, lambda: second.report(3.0))
            self.assertTrue(first.report(2.0))
            self.assertEqual((first.iteration, second.iteration), (3, 1))
            self.interrupt(study, lambda: study.tell(first))
            study.tell(first)
            self.assertEqual([(trial.state, trial.iterations) for trial in study.trials], [("finished", 3), ("running", 1)])

    def test_an_interrupted_close_is_a_close(self):
        study = self.create()
        with mock.patch.object(study._child, "wait", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            study.close()
        with self.assertRaisesRegex(RanktuneError, "the study is closed"):
            study.ask()
        study.close()
        with ranktune_studies.open_study("digits") as again:
            self.assertEqual(again.ask().number, 0)

    def test_a_study_that_is_dropped_is_closed(self):
        study = ranktune_studies.create("digits", num_trials=3, **RANDOM)
        self.assertEqual(study.ask().number, 0)
        del study
        gc.collect()
        with self.create(num_trials=3) as study:
            self.assertEqual(study.ask().number, 0)

    def test_an_old_note_does_not_hide_how_the_program_ended(self):
        study = self.create()
        study._errors.write(b"a hook failed\n")
        study._errors.flush()
        study._child.send_signal(signal.SIGKILL)
        with self.assertRaisesRegex(RanktuneError, "ended with signal 9: a hook failed; what was told"):
            study.ask()

    def test_a_signal_ends_the_program_of_a_study_that_is_over(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            study = self.create(f"study{number:d}", num_trials=1)
            study.tell(study.ask(), 1.0)
            self.head_ends(study)
            study._child.send_signal(number)
            study._child.wait(SECONDS)

    def test_no_override_chooses_the_places(self):
        self.create().close()
        with self.assertRaisesRegex(RanktuneError, "study.max_concurrent: the loop decides"):
            ranktune_studies.open_study("digits", "study.max_concurrent=3")
        with ranktune_studies.open_study("digits", "study.num_trials=9") as study:
            self.assertEqual([study.ask().number for _ in range(3)], [0, 1, 2])
        with ranktune_studies.open_study("digits") as study:  # whose own now says 3
            self.assertEqual(study.ask().number, 0)

    def test_the_lines_of_the_program(self):
        study = self.create()
        study.close()
        loop = subprocess.Popen([PROGRAM, "ask", "digits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        lines = ['{"id": 1, "ask": true}', "nonsense", '{"id": "x", "dance": 1}', '{"id": 2, "tell": 0, "metrics": {"loss": 1}}',
                 '{"id": 3, "tell": -1, "metrics": {"loss": 1}}', '{"id": 4, "fail": 0}', "[" * 100]
        answers, _ = loop.communicate("\n".join(lines) + "\n")
        ready, asked, nonsense, dance, told, negative, fail, deep = map(json.loads, answers.splitlines())
        self.assertEqual(ready["ready"]["name"], "digits")
        self.assertEqual((asked["id"], asked["trial"]), (1, 0))
        self.assertIn("an object of JSON", nonsense["error"])
        self.assertEqual((dance["id"], dance["error"]), ("x", "unknown request; there are ask, report, tell, fail and close"))
        self.assertEqual(told, {"id": 2})
        self.assertIn("needs the number of a trial", negative["error"])
        self.assertIn("told already", fail["error"])
        self.assertIn("inside each other", deep["error"])
        loop = subprocess.Popen([PROGRAM, "ask", "digits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        answers, _ = loop.communicate('{"id": 1, "ask": true}\n' + "x" * (1 << 21))
        ready, asked, long = map(json.loads, answers.splitlines())
        self.assertEqual(asked["trial"], 1)
        self.assertIn("line", long["error"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
