#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs in Python whose GPU has no memory left: full_device_test.py [TEST...]"""
import textwrap
import unittest

from ranktune_test import CONTINUE, Case, Trial


class FullDevices(Case):
    PROGRAM = """
        import ranktune
        class OutOfMemoryError(RuntimeError):  # as torch.cuda has it
            pass
        ranktune.report(loss=1.0)
        raise {error}
    """

    def fails(self, error, before="", **changes):
        trial = Trial(self, before + textwrap.dedent(self.PROGRAM.format(error=error)), **changes)
        trial.says(report={"loss": 1.0}).answer(CONTINUE)
        message = trial.said()
        if message is not None:
            self.assertIsNone(trial.said())
        self.assertIn(error.split("(")[0], trial.ends(1)[1])
        return message

    def test_a_full_memory_is_told(self):
        for error, text in (("OutOfMemoryError('CUDA out of memory. Tried to allocate 3.00 GiB\\nsee also')",
                             "CUDA out of memory. Tried to allocate 3.00 GiB"),
                            ("RuntimeError('CUDA out of memory. Tried')", "CUDA out of memory. Tried"),
                            ("RuntimeError('CUBLAS_STATUS_ALLOC_FAILED when calling')", "CUBLAS_STATUS_ALLOC_FAILED when calling")):
            self.assertEqual(self.fails(error), {"failed": "device-memory", "log": text})

    def test_other_errors_are_not(self):
        self.assertIsNone(self.fails("RuntimeError('shapes differ')"))
        self.assertIsNone(self.fails("MemoryError('of the host')"))

    def test_before_the_first_report_and_after_a_hook_of_the_program(self):
        trial = Trial(self, """
            import ranktune, sys
            before = sys.excepthook
            sys.excepthook = lambda *error: (print("own"), before(*error))
            raise RuntimeError("CUDA out of memory")
        """)
        trial.says(failed="device-memory", log="CUDA out of memory")
        self.assertEqual(trial.ends(1)[0], "own\n")

    def test_outside_of_a_study_nothing_changes(self):
        self.assertIn("CUDA out of memory", self.alone("raise RuntimeError('CUDA out of memory')", code=1))


if __name__ == "__main__":
    unittest.main()
