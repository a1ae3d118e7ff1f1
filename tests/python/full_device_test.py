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
        self.assertEqual(self.fails("RuntimeError('shapes differ')")["failed"], "error")
        self.assertEqual(self.fails("MemoryError('of the host')")["failed"], "error")

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


class SharedDevices(Case):
    TORCH = """
        import sys, types
        TOTAL = 16
        calls = []
        torch = types.ModuleType("torch")
        torch.cuda = types.SimpleNamespace(_lazy_call=lambda call: calls.append(call), current_device=lambda: 0,
                                           get_device_properties=lambda device: types.SimpleNamespace(total_memory=TOTAL << 30),
                                           set_per_process_memory_fraction=lambda share: print("share", share))
    """

    def prints(self, program, **changes):
        trial = Trial(self, textwrap.dedent(self.TORCH) + textwrap.dedent(program), **changes)
        self.assertIsNone(trial.said())
        return trial.ends(0)[0].split("\n")[:-1]

    def test_pytorch_is_told_its_share_when_it_first_uses_the_gpu(self):
        early = "sys.modules['torch'] = torch\nimport ranktune\nprint(len(calls))\ncalls[0]()\n"
        self.assertEqual(self.prints(early, RANKTUNE_GPU_SHARE="0.25"), ["1", "share 0.21875"])  # 4 GiB less 512 MiB
        small = early.replace("calls[0]()", "TOTAL = 1; calls[0]()")
        self.assertEqual(self.prints(small, RANKTUNE_GPU_SHARE="0.25"), ["1", "share 0.1875"])  # at most a quarter less
        late = ("import ranktune\nsys.modules['torch'] = torch\nprint(len(calls))\nranktune.config()\nranktune.config()\n"
                "print(len(calls))\n")
        self.assertEqual(self.prints(late, RANKTUNE_GPU_SHARE="0.25"), ["0", "1"])

    def test_whole_devices_and_programs_without_pytorch_are_left_alone(self):
        self.assertEqual(self.prints("sys.modules['torch'] = torch\nimport ranktune\nprint(len(calls))\n"), ["0"])
        self.assertEqual(self.prints("import ranktune\nprint(len(calls))\n", RANKTUNE_GPU_SHARE="0.25"), ["0"])


if __name__ == "__main__":
    unittest.main()
