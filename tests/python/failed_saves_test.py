#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs in Python that cannot save their state: failed_saves_test.py [TEST...]"""
import unittest

from ranktune_test import CONTINUE, PAUSE, Case, Trial


class FailedSaves(Case):
    def test_a_file_that_cannot_be_written_is_told_as_storage_however_a_library_wraps_it(self):
        full = "OSError(errno.ENOSPC, 'No space left on device', 'state.pt')"
        for error, kind in (
                (full, "storage"), ("OSError(errno.EDQUOT, 'over')", "storage"), ("OSError(errno.EIO, 'bad')", "storage"),
                ("OSError(errno.EROFS, 'ro')", "storage"), ("OSError(errno.ESTALE, 'gone')", "storage"),
                ("OSError(errno.EFBIG, 'large')", "storage"), ("OSError(errno.EACCES, 'not yours')", "saving"),
                (f"ValueError('unreadable') from {full}", "storage"),
                ("RuntimeError('[enforce fail at inline_container.cc:626] . unexpected pos 64 vs 0') from RuntimeError("
                 "'[enforce fail at inline_container.cc:424] . PytorchStreamWriter failed writing file data/0: file write failed')",
                 "saving"),
                ("group(" + full + ")", "storage"), ("subprocess.CalledProcessError(1, 'cp', stderr=b'No space left on device')", "saving")):
            trial = Trial(self, f"""
                import errno, ranktune, subprocess
                class group(Exception):
                    exceptions = property(lambda self: self.args)
                def save(folder):
                    raise {error}
                ranktune.report(loss=1.0, checkpoint=save)
            """)
            trial.said()
            trial.answer({**PAUSE, "save_to": str(self.folder / "state")})
            said = trial.said()
            self.assertEqual(said["failed"], kind, error)
            if kind == "saving" and "EACCES" not in error:  # ranktune knows these words, wherever they are
                self.assertRegex(said["log"], "PytorchStreamWriter failed writing|No space left on device")
            self.assertIsNone(trial.said())
            trial.ends(1)

    def test_a_full_disk_is_told_wherever_it_was_met_and_a_failed_read_is_not(self):
        for code, kind in (("ENOSPC", "storage"), ("EIO", "error")):
            trial = Trial(self, f"""
                import errno, os, ranktune
                ranktune.report(loss=1.0)
                raise OSError(errno.{code}, os.strerror(errno.{code}), "data.bin")
            """)
            trial.said()
            trial.answer(CONTINUE)
            self.assertEqual(trial.said()["failed"], kind)
            trial.ends(1)

    def test_a_program_that_trains_alone_goes_on_without_a_state_that_it_cannot_save(self):
        program = """
            import ranktune, sys
            def save(folder):
                {ending}
            for iteration in range(2):
                ranktune.report(loss=1.0, checkpoint=save)
            print("trained on")
        """
        for ending in ("raise ValueError('no')", "sys.exit('no')"):
            for ranks in ("1", "2"):
                trial = Trial(self, program.format(ending=ending), WORLD_SIZE=ranks)
                trial.said()
                trial.answer({**CONTINUE, "save_to": str(self.folder / "state")})
                self.assertEqual(trial.said()["failed"], "saving")
                if ranks == "1":
                    trial.says(report={"loss": 1.0}, can_save=True, can_go_on=True).answer(CONTINUE)
                self.assertEqual("trained on" in trial.ends(0 if ranks == "1" else 1)[0], ranks == "1")

    def test_what_was_saved_as_a_hard_link_does_not_change_when_the_program_goes_on(self):
        trial = Trial(self, """
            import os, ranktune
            open("last.txt", "w").write("iteration 1")
            ranktune.report(loss=1.0, checkpoint=lambda folder: os.link("last.txt", folder + "/model.txt"))
            open("last.txt", "w").write("iteration 2")
        """)
        trial.said()
        trial.answer({**CONTINUE, "save_to": str(self.folder / "state")})
        trial.says(checkpoint=str(self.folder / "state"))
        trial.ends()
        self.assertEqual([(path.name, path.read_text()) for path in (self.folder / "state").iterdir()], [("model.txt", "iteration 1")])

    def test_a_report_whose_state_was_not_saved_counts_when_the_program_catches_the_error(self):
        trial = Trial(self, """
            import ranktune
            def save(folder):
                raise ValueError('no')
            try:
                ranktune.report(loss=1.0, checkpoint=save)
            except ValueError:
                print("completed", ranktune.context().iteration)
        """, WORLD_SIZE="2")
        trial.said()
        trial.answer({**CONTINUE, "save_to": str(self.folder / "state")})
        self.assertEqual(trial.said()["failed"], "saving")
        self.assertIn("completed 1", trial.ends()[0])


if __name__ == "__main__":
    unittest.main()
