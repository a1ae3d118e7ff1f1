#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints and failures of training programs: checkpoints_test.py [TEST...]"""
import signal
import textwrap
import unittest

from ranktune_test import CONTINUE, PAUSE, STOP, TIMEOUT, Case, Trial


class Checkpoints(Case):
    def test_a_path_is_sent_absolute(self):
        trial = Trial(self, """
            import os, ranktune, pathlib
            pathlib.Path("state.pt").write_text("x")
            ranktune.report(loss=1.0, checkpoint="state.pt")
            os.makedirs("a/b")
            ranktune.report(loss=1.0, checkpoint=pathlib.Path("a/b/.."))
        """)
        trial.says(report={"loss": 1.0}, checkpoint=str(self.folder / "state.pt")).answer(CONTINUE)
        trial.says(report={"loss": 1.0}, checkpoint=str(self.folder / "a")).answer(PAUSE)
        trial.ends()

    def test_a_path_where_nothing_is_fails_before_the_report(self):
        trial = Trial(self, "import ranktune\nranktune.report(loss=1.0, checkpoint='state.pt')")
        self.assertIn(f"the checkpoint '{self.folder}/state.pt' does not exist; save it before report()",
                      trial.ends(1)[1])

    def test_a_folder_that_holds_more_than_a_checkpoint_is_refused(self):
        works, study = self.folder / "works", self.folder / "works" / "results" / "study"
        study.mkdir(parents=True)
        (works / "link").symlink_to("..")
        cases = (("", "the folder that the program works in"), (".", ""), ("..", ""), ("/", ""), ("link", ""), (str(works), ""),
                 (str(study), "the study directory"), ("results", ""))
        trial = Trial(self, f"""
            import os
            os.chdir("works")
            import ranktune
            for path in {[path for path, _ in cases]}:
                try: ranktune.report(loss=1, checkpoint=path)
                except ValueError as error: print(error)
        """, RANKTUNE_STUDY_DIR=str(study))
        lines = trial.ends()[0].splitlines()
        self.assertIsNone(trial.said())
        self.assertEqual(len(lines), len(cases))
        for line, (path, holds) in zip(lines, cases):
            self.assertIn(f"the checkpoint '{path}' is no file or folder of its own: it is or contains {holds}", line)

    def test_a_program_that_works_in_the_study_directory_may_name_its_own_folder(self):
        own = self.folder / "study" / "work" / "7"
        own.mkdir(parents=True)
        (own / "state").write_text("x")
        program = f"import os\nos.chdir('{own}')\nimport ranktune\nranktune.report(loss=1.0, checkpoint='.')"
        trial = Trial(self, program, RANKTUNE_STUDY_DIR=str(self.folder / "study"))
        trial.says(report={"loss": 1.0}, checkpoint=str(own)).answer(STOP)
        trial.ends()

    SAVES = """
        import os, ranktune
        def save(folder):
            print("saving in", folder)
            with open(os.path.join(folder, "state"), "w") as f: f.write("7")
            {returns}
        ranktune.report(loss=1.0, checkpoint=save)
        ranktune.report(loss=0.5, checkpoint=save)
    """

    def test_a_function_is_called_when_the_state_is_wanted_and_only_then(self):
        for returns, entry in (("", ""), ("return os.path.join(folder, 'state')", "/state")):
            target = self.folder / "new" / f"folder{len(entry)}"
            trial = Trial(self, self.SAVES.format(returns=returns))
            trial.says(report={"loss": 1.0}, can_save=True, can_go_on=True).answer(CONTINUE)
            trial.says(report={"loss": 0.5}, can_save=True, can_go_on=True).answer({**PAUSE, "save_to": str(target)})
            trial.says(checkpoint=str(target) + entry)
            self.assertEqual(trial.ends(), (f"saving in {target}\n", ""))
            self.assertEqual((target / "state").read_text(), "7")
            self.assertIsNone(trial.said())

    def test_a_function_is_called_on_every_rank_before_the_program_goes_on(self):
        for rank, first, second in ((0, {"loss": 1.0}, {"loss": 0.5}), (1, {}, {})):
            target = self.folder / "on the way" / str(rank)
            trial = Trial(self, self.SAVES.format(returns=""), rank=rank)
            trial.says(report=first, can_save=True, can_go_on=True).answer({**CONTINUE, "save_to": str(target)})
            trial.says(checkpoint=str(target))
            self.assertEqual((target / "state").read_text(), "7")
            trial.says(report=second, can_save=True, can_go_on=True).answer(CONTINUE)
            self.assertEqual(trial.ends(), (f"saving in {target}\n", ""))

    def test_it_is_not_called_for_a_stop_that_wants_no_state(self):
        trial = Trial(self, self.SAVES.format(returns=""))
        trial.says(report={"loss": 1.0}, can_save=True, can_go_on=True).answer(STOP)
        self.assertEqual(trial.ends(), ("", ""))

    def test_the_other_ranks_call_it_too_and_say_when_their_part_is_saved(self):
        trial = Trial(self, self.SAVES.format(returns=""), rank=1)
        trial.says(report={}, can_save=True, can_go_on=True).answer({**PAUSE, "save_to": str(self.folder / "shards")})
        trial.says(checkpoint=str(self.folder / "shards"))
        self.assertIn("saving in", trial.ends()[0])
        trial = Trial(self, "import ranktune\nranktune.report(checkpoint=lambda folder: None)", rank=1)
        trial.says(report={}, can_save=True, can_go_on=True).answer({**PAUSE, "save_to": str(self.folder / "empty")})
        trial.ends()

    def test_other_ranks_may_return_the_path_that_rank_0_is_about_to_write(self):
        code = "import os, ranktune\nranktune.report(checkpoint=lambda folder: os.path.join(folder, 'state'))\nranktune.report()"
        trial = Trial(self, code, rank=1)
        trial.says(report={}, can_save=True, can_go_on=True).answer({**CONTINUE, "save_to": str(self.folder / "later")})
        trial.says(checkpoint=str(self.folder / "later"))
        trial.says(report={}).answer(STOP)
        trial.ends()

    def test_what_a_function_returns_is_a_path_that_is_there_or_means_the_folder(self):
        (self.folder / "elsewhere").write_text("x")
        cases = (("len('x')", ""), ("[folder + '/state']", ""), ("True", ""), ("'saved'", ""), ("'/no/such'", ""), ("b'state'", ""),
                 ("''", ""), ("object()", ""), ("pathlib.Path(folder)", ""), ("'state'", "/state"),
                 ("pathlib.Path(folder, 'state')", "/state"), ("'elsewhere'", None))
        trial = Trial(self, "import pathlib, ranktune\n" + "".join(f"""
def save(folder):
    pathlib.Path(folder, "state").write_text("7")
    return {returns}
ranktune.report(loss=1.0, checkpoint=save)
""" for returns, _ in cases))
        for number, (_, entry) in enumerate(cases):
            target = str(self.folder / str(number))
            trial.says(report={"loss": 1.0}, can_save=True, can_go_on=True).answer({**CONTINUE, "save_to": target})
            trial.says(checkpoint=str(self.folder / "elsewhere") if entry is None else target + entry)
        trial.ends()

    def test_why_a_state_was_not_saved_is_told_with_iteration_and_line(self):
        for body, why in (("1 / 0", "ZeroDivisionError: division by zero (program.py:4)"),
                          ("sys.exit('no room')", "SystemExit: no room (program.py:4)"),
                          ("pass", "RuntimeError: the function given to report(checkpoint=...) saved nothing in '{to}' (program.py:5)"),
                          ("return '/no/such'", "RuntimeError: the function given to report(checkpoint=...) saved nothing in '{to}'; "
                                                "it returned '/no/such' (program.py:5)"),
                          ("return '..'", "ValueError: the checkpoint '{up}' is no file or folder of its own: it is or contains the "
                                          "folder that the program works in ('{here}'). Save below "
                                          "ranktune.context().checkpoint_dir, and give report() that path (program.py:5)")):
            trial = Trial(self, f"import json, sys, ranktune\nranktune.report(loss=1)\ndef save(folder):\n    {body}\n"
                                "ranktune.report(loss=1.0, checkpoint=save)", in_file=True, RANKTUNE_ITERATION="3")
            to = self.folder / "empty"
            trial.says(report={"loss": 1}).answer(CONTINUE)
            trial.says(report={"loss": 1.0}, can_save=True, can_go_on=True).answer({**PAUSE, "save_to": str(to)})
            why = why.format(to=to, up=self.folder.parent, here=self.folder)
            trial.says(failed="saving", log="while saving at iteration 5: " + why)
            trial.process.communicate(timeout=TIMEOUT)
            self.assertIsNone(trial.said())

    def test_an_exception_that_a_failed_save_causes_is_told_once(self):
        trial = Trial(self, """
            import ranktune
            def save(folder): raise OSError("no")
            try:
                ranktune.report(loss=1.0, checkpoint=save)
            except OSError as error:
                raise RuntimeError("the trainer failed") from error
        """)
        trial.says(report={"loss": 1.0}, can_save=True, can_go_on=True).answer({**PAUSE, "save_to": str(self.folder / "x")})
        trial.says(failed="saving", log="while saving at iteration 1: OSError: no (<string>:3)")
        self.assertIn("the trainer failed", trial.ends(1)[1])
        self.assertIsNone(trial.said())


class Futures(Case):
    """Checkpoints that are still being written when they are reported."""
    START = """
        import concurrent.futures, os, ranktune, time
        pool = concurrent.futures.ThreadPoolExecutor()
        def later(flag):
            def wait():
                while not os.path.exists(flag): time.sleep(0.005)
                if os.path.getsize(flag): raise OSError(open(flag).read())
            return pool.submit(wait)
    """

    def test_a_future_is_told_when_it_is_done_also_while_the_report_waits(self):
        for rank, report in ((0, {"report": {"loss": 1.0}, "checkpoint": str(self.folder / "1")}), (1, {"report": {}})):
            trial = Trial(self, self.START + f"""
        ranktune.report(loss=1.0, checkpoint=later("a{rank}"), path="1")
        ranktune.report(loss=2.0)
            """, rank=rank)
            trial.says(**report, pending=1)
            (self.folder / f"a{rank}").touch()  # the answer waits for it
            trial.says(checkpoint_done=1).answer(CONTINUE)
            trial.says(report={"loss": 2.0} if rank == 0 else {}).answer(STOP)
            trial.ends()

    def test_a_program_goes_on_and_tells_with_a_later_report(self):
        trial = Trial(self, self.START + """
        ranktune.report(loss=1.0, checkpoint=later("a"), path="1")
        ranktune.report(loss=2.0, checkpoint=later("b"), path="2")
        while not os.path.exists("go"): time.sleep(0.005)
        ranktune.report(loss=3.0)
        """)
        trial.says(report={"loss": 1.0}, checkpoint=str(self.folder / "1"), pending=1).answer(CONTINUE)
        trial.says(report={"loss": 2.0}, checkpoint=str(self.folder / "2"), pending=2).answer(CONTINUE)
        (self.folder / "b.new").write_text("no room")
        (self.folder / "b.new").rename(self.folder / "b")  # the program must not see it empty
        (self.folder / "go").touch()
        first, second = trial.said(), trial.said()  # (the second may be done only while the third report waits)
        self.assertCountEqual([first, second], [{"checkpoint_done": 2, "error": "OSError: no room (<string>:7)"}, {"report": {"loss": 3.0}}])
        trial.answer(STOP)
        (self.folder / "a").touch()
        trial.ends()

    def test_what_async_save_of_newer_pytorch_returns_is_one(self):
        trial = Trial(self, self.START + """
        class AsyncSaveResponse: upload_completion = pool.submit(lambda: None)
        concurrent.futures.wait([AsyncSaveResponse.upload_completion])
        ranktune.report(loss=1.0, checkpoint=AsyncSaveResponse(), path="1")
        """)
        trial.says(report={"loss": 1.0}, checkpoint=str(self.folder / "1"), pending=1)
        trial.says(checkpoint_done=1).answer(STOP)
        trial.ends()

    def test_a_future_needs_its_path_and_path_alone_is_a_metric(self):
        trial = Trial(self, self.START + """
        ranktune.report(loss=1.0, path=2.0)
        ranktune.report(loss=1.0, checkpoint=later("a"))
        """)
        trial.says(report={"loss": 1.0, "path": 2.0}).answer(CONTINUE)
        self.assertIn("needs path=..., where the future saves", trial.said()["log"])
        (self.folder / "a").touch()
        trial.ends(1)
        trial = Trial(self, self.START + "\n        ranktune.report(loss=1.0, checkpoint=pool.submit(len, ''), path='.')")
        self.assertIn("contains the folder that the program works in", trial.said()["log"])
        trial.ends(1)

    def test_a_signal_while_a_report_waits_for_a_future_does_no_harm(self):
        trial = Trial(self, self.START + """
        import signal
        class Interrupt(Exception): pass
        def interrupt(*_): raise Interrupt
        signal.signal(signal.SIGUSR1, interrupt)
        try:
            print("waits", flush=True)
            ranktune.report(loss=1.0, checkpoint=later("a"), path="1")
        except Interrupt:
            print("interrupted")
        ranktune.report(loss=2.0)
        """)
        trial.says(report={"loss": 1.0}, checkpoint=str(self.folder / "1"), pending=1)
        trial.process.send_signal(signal.SIGUSR1)
        (self.folder / "a").touch()
        trial.says(checkpoint_done=1).answer(CONTINUE)
        trial.says(report={"loss": 2.0}).answer(STOP)
        trial.ends()


class Failures(Case):
    def test_an_exception_is_told_with_iteration_and_the_line_of_the_users_file(self):
        (self.folder / "model").mkdir()
        (self.folder / "model" / "step.py").write_text("import json\ndef step():\n    json.loads('x')\n")
        trial = Trial(self, "import ranktune\nfrom model import step\nranktune.report(loss=1)\nstep.step()", in_file=True)
        trial.says(report={"loss": 1}).answer(CONTINUE)
        trial.says(failed="error", log="at iteration 2: JSONDecodeError: Expecting value: line 1 column 1 (char 0) (model/step.py:3)")
        trial.ends(1)


if __name__ == "__main__":
    unittest.main(verbosity=1)
