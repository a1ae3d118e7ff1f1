#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs in Python that are kept for many tasks: tasks_test.py [TEST...]"""
import unittest

from ranktune_test import STOP, Case, Trial

KEPT = {"RANKTUNE_KEPT": "1", "RANKTUNE_ITERATIONS": "1"}


def row(task, **config):
    return {"task": task, "attempt": 1, "seed": task + 100, "config": config}


class Tasks(Case):
    def test_rows_come_one_by_one_and_their_values_go_back(self):
        trial = Trial(self, """
            import os, ranktune
            for row in ranktune.tasks(scale=2, sgd={"momentum": 0.5}):
                here = ranktune.context()
                print(row.x, row.scale, row.sgd.momentum, here.trial, here.seed, ranktune.config(x=0, z=1))
                ranktune.result(y=1, word=row.x)
                ranktune.result({"y": 2.5, "ok": True})
            print("end", os.environ["RANKTUNE_TRIAL"])
        """, **KEPT)
        trial.says(ready=True)
        trial.answer(row(3, x="0.10")).says(result={"y": 2.5, "word": "0.10", "ok": True}, task=3, attempt=1)
        trial.answer(row(5, x="b", scale=3)).says(result={"y": 2.5, "word": "b", "ok": True}, task=5, attempt=1)
        trial.answer(STOP)
        self.assertEqual(trial.ends()[0].splitlines(), ["0.10 2 0.5 3 103 {'x': '0.10', 'z': 1}", "b 3 0.5 5 105 {'x': 'b', 'z': 1, 'scale': 3}",
                                                        "end 5"])

    def test_a_row_without_a_result_is_done_when_the_next_one_is_asked_for(self):
        trial = Trial(self, "import ranktune\nfor row in ranktune.tasks(): print(row.x)", **KEPT)
        trial.says(ready=True)
        trial.answer(row(0, x=1)).says(result={}, task=0, attempt=1)
        trial.socket.close()  # the worker has died
        self.assertEqual(trial.ends()[0], "1\n")

    def test_an_exception_is_told_with_its_place_and_no_iteration(self):
        trial = Trial(self, """
            import ranktune
            for row in ranktune.tasks():
                ranktune.result(y=1)
                raise ValueError("bad")
        """, in_file=True, **KEPT)
        trial.says(ready=True)
        trial.answer(row(0, x=1)).says(failed="error", log="ValueError: bad (program.py:5)")
        trial.ends(code=1)

    def test_a_row_that_was_left_is_not_waited_for_again(self):
        trial = Trial(self, """
            import ranktune
            for row in ranktune.tasks():
                break
            for row in ranktune.tasks():
                pass
        """, in_file=True, **KEPT)
        trial.says(ready=True)
        trial.answer(row(4, x=1))
        self.assertIn("row 4 was left by `break`", trial.said()["log"])
        trial.ends(code=1)

    def test_a_forked_process_has_no_row(self):
        trial = Trial(self, """
            import os, ranktune
            for row in ranktune.tasks():
                if os.fork() == 0:
                    try:
                        ranktune.result(y=1)
                    except RuntimeError as error:
                        print(error, flush=True)
                    os._exit(0)
                os.wait()
        """, **KEPT)
        trial.says(ready=True)
        trial.answer(row(0, x=1)).says(result={}, task=0, attempt=1)
        trial.answer(STOP)
        self.assertIn("was called in a process that was forked", trial.ends()[0])

    def test_mistakes_are_named(self):
        self.assertIn("within `for row in ranktune.tasks():`", self.alone("ranktune.result(y=1)", code=1))
        self.assertIn("takes values with their names", self.alone("for row in ranktune.tasks(): ranktune.result(1)", code=1))
        self.assertIn("metric 'y' is [], not a number", self.alone("for row in ranktune.tasks(): ranktune.result(y=[])", code=1))
        trial = Trial(self, "import ranktune\nfor row in ranktune.tasks(): pass")
        trial.said()  # the exception
        self.assertIn("ranktune map --kept", trial.ends(code=1)[1])

    def test_outside_of_a_study_there_is_one_row(self):
        out = self.alone("for row in ranktune.tasks(x=2.0):\n    ranktune.result(y=row.x ** 2, n=1)\n")
        self.assertEqual(out, "row: y=4 n=1\n")


if __name__ == "__main__":
    unittest.main()
