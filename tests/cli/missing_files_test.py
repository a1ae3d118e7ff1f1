#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Studies whose files are removed, moved or cut short, while they run and between two starts:
missing_files_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from cli_test import PROGRAM, TIMEOUT, environment, sys
from resume_test import STUDY, Resume


class MissingFiles(Resume):
    def end_of(self, process):
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 75, out)
        return " ".join(out.split())

    def test_a_journal_that_is_removed_while_the_study_runs_ends_it(self):
        self.study(seconds=0.6)
        process = self.start()
        shutil.rmtree(self.cwd / "long" / "journal")
        words = self.end_of(process)
        self.assertIn("/journal/000001.h5', which this run writes, was removed, moved or replaced", words)
        self.assertIn("begin again with --fresh", words)
        self.assertEqual({k: self.outcome("long")[k] for k in ("exit", "cause")}, {"exit": "75", "cause": "storage"})
        self.assertFalse((self.cwd / "long" / "journal").exists())

    def test_a_journal_that_is_removed_at_the_very_end_is_no_complete_study(self):
        """Between two looks of the head: the last one comes before it says that all is well."""
        self.write("long.toml", STUDY.format(seconds=0.02, scheduler="fifo", more="").replace("num_trials = 4", "num_trials = 1")
                   .replace("max_iterations = 12", "max_iterations = 8"))
        self.write("away.py", "import os, time\nwhile not os.path.exists('long/journal/000001.h5'): time.sleep(0.002)\n"
                              "os.rename('long/journal', 'journal-away')\n")
        away = subprocess.Popen([sys.executable, "away.py"], cwd=self.cwd)
        self.addCleanup(away.wait)
        self.addCleanup(away.kill)
        out, err = self.ranktune("run", "long.toml", "--local", "1", code=75)
        self.assertIn("was removed, moved or replaced", " ".join((out + err).split()))
        self.assertEqual(self.outcome("long")["exit"], "75")
        os.rename(self.cwd / "journal-away", self.cwd / "long" / "journal")
        out, _ = self.ranktune("run", "long.toml", "--local", "1")
        self.assertEqual(json.loads(self.ranktune("status", "long", "-f", "json")[0])["exit_code"], 0)

    def test_a_study_directory_that_is_moved_while_the_study_runs_is_not_made_again(self):
        self.study(seconds=0.3, more="[checkpoint]\ninterval = 1")
        process = self.start()
        os.rename(self.cwd / "long", self.cwd / "moved")
        self.assertIn("was removed or moved away while the study ran", self.end_of(process))
        self.assertFalse((self.cwd / "long").exists())
        self.assertFalse((self.cwd / "moved" / "outcome").exists())
        os.rename(self.cwd / "moved", self.cwd / "long")
        out, _ = self.ranktune("run", "long.toml", "--local", "2")
        self.assertRegex(out, r"(?m)^resuming long: start 2")
        self.check_files()

    def test_supervise_begins_no_new_study_where_one_was_moved_away(self):
        self.study(seconds=0.3)
        process = subprocess.Popen([PROGRAM, "supervise", "--", PROGRAM, "run", "long.toml", "--local", "2"], cwd=self.cwd,
                                   env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   start_new_session=True)
        self.addCleanup(self.end, process)
        deadline = time.monotonic() + TIMEOUT
        while self.reports() < 3:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        os.rename(self.cwd / "long", self.cwd / "moved")
        words = self.end_of(process)
        self.assertIn("It is not started again, which would begin a new study in its place", words)
        self.assertFalse((self.cwd / "long").exists())

    def test_a_lease_that_is_removed_is_not_another_heads(self):
        self.study(seconds=0.9)
        process = self.start(reports=1)
        (self.cwd / "long" / "lease").unlink()
        words = self.end_of(process)
        self.assertIn("the file 'lease' of the study directory is gone", words)
        self.assertNotIn("another head has taken", words)

    def everything(self, directory="long"):
        return {p: p.read_bytes() for p in (self.cwd / directory).rglob("*") if p.is_file()}

    def refused(self):
        before = self.everything()
        done = subprocess.run([PROGRAM, "run", "long.toml", "--local", "2"], cwd=self.cwd, env=environment(),
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(self.everything(), before)
        return " ".join(done.stderr.split())

    def test_newest_segments_that_are_missing_are_noticed(self):
        self.study(seconds=0.3, more="[checkpoint]\ninterval = 2")
        process = self.start()
        self.wait_for_a_commit()
        self.kill_all()
        process.wait(TIMEOUT)
        process = self.start()
        process.send_signal(signal.SIGINT)
        self.end_of(process)
        segments = sorted((self.cwd / "long" / "journal").glob("0*.h5"))
        self.assertGreater(len(segments), 1)
        away = self.cwd / "away.h5"
        os.rename(segments[-1], away)
        words = self.refused()
        self.assertRegex(words, r"ends with start 1 and \d+ records, but 'outcome' and 'status' in that directory say that it "
                                r"had reached start 2 and \d+ records")
        self.assertIn("restore", words)
        self.assertIn("--fresh", words)
        self.assertIn("newest files are missing", " ".join(self.ranktune("status", "long")[1].split()))
        self.assertIn("newest files are missing", " ".join(self.ranktune("replay", "long")[1].split()))
        out, err = self.ranktune("replay", "long", "--verify", code=1)  # what is there is right, and it is not all
        self.assertRegex(out, r"verified: \d+ records")
        self.assertIn("newest files are missing", " ".join(err.split()))
        # A frame that had reached the disk, cut off at the end of the newest segment.
        os.rename(away, segments[-1])
        path, data, frames = self.frames()
        whole = bytes(data)
        data[frames[-1] + 33:] = bytes(len(data) - frames[-1] - 33)
        path.chmod(0o644)
        path.write_bytes(data)
        self.assertIn("newest files are missing or damaged", self.refused())
        path.write_bytes(whole[:20000])
        self.assertIn(f"is cut short: 20000 of {len(whole)} bytes are there", self.refused())
        path.write_bytes(whole)
        self.ranktune("run", "long.toml", "--local", "2", "-q")
        self.check_files()

    def test_newest_segments_that_are_missing_are_noticed_beside_the_lease_of_a_killed_run(self):
        self.study(seconds=0.3)
        process = self.start()
        process.send_signal(signal.SIGINT)
        self.end_of(process)
        process = self.start()
        deadline = time.monotonic() + TIMEOUT
        while json.loads((self.cwd / "long" / "status").read_text()).get("start") != 2:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        newest = max((self.cwd / "long" / "journal").glob("0*.h5"))
        # What a verb sees of a study whose writer lives may be a little behind: no word about it.
        self.assertNotIn("missing", self.ranktune("status", "long")[1])
        self.kill_all()
        process.wait(TIMEOUT)
        self.assertTrue((self.cwd / "long" / "lease").exists())
        os.rename(newest, self.cwd / "away.h5")
        for verb in (("status", "long"), ("best", "long"), ("replay", "long")):
            self.assertIn("newest files are missing", " ".join(self.ranktune(*verb)[1].split()))
        out, err = self.ranktune("replay", "long", "--verify", code=1)
        self.assertIn("newest files are missing", " ".join(err.split()))
        for form in (("-f", "json"), ("-f", "csv"), ("-f", "csv", "--table", "reports")):
            out, err = self.ranktune("export", "long", *form, code=1)  # what is there, and a word that it is not all
            self.assertTrue(out)
            self.assertIn("newest files are missing", " ".join(err.split()))
        _, err = self.ranktune("report", "long", "-o", "page.html", code=1)
        self.assertIn("newest files are missing", " ".join(err.split()))
        self.assertIn("</html>", (self.cwd / "page.html").read_text())
        os.rename(self.cwd / "away.h5", newest)
        self.assertEqual(self.ranktune("export", "long", "-f", "json")[1], "")

    def test_what_is_missing_can_be_given_up_by_hand(self):
        self.study(seconds=0.3, more='[checkpoint]\ninterval = "none"')  # no checkpoint is replaced meanwhile
        for _ in range(2):
            process = self.start()
            process.send_signal(signal.SIGINT)
            self.end_of(process)
        max((self.cwd / "long" / "journal").glob("0*.h5")).unlink()
        self.assertIn("remove 'outcome' and 'status'", self.refused())
        for name in ("outcome", "status"):
            (self.cwd / "long" / name).unlink()
        self.ranktune("run", "long.toml", "--local", "2", "-q")

    def test_the_best_names_weights_that_are_missing(self):
        self.run_tiny("-q")
        weights = self.cwd / "tiny" / json.loads(self.ranktune("best", "tiny", "-f", "json")[0])["best"]["checkpoint"]
        self.assertNotIn("missing", self.ranktune("best", "tiny")[0])
        self.assertNotIn("checkpoint_missing", self.ranktune("best", "tiny", "-f", "json")[0])
        weights.unlink()
        self.assertRegex(" ".join(self.ranktune("best", "tiny")[0].split()), r"weights tiny/checkpoints/\S+\.h5 \(iteration \d+\) That file is missing")
        self.assertIs(json.loads(self.ranktune("best", "tiny", "-f", "json")[0])["best"]["checkpoint_missing"], True)

    def test_a_study_whose_first_frame_is_damaged_is_not_begun_again(self):
        self.study(seconds=0.4, more='[journal]\ncommit_interval = "1h"')  # nothing but the beginning is synced
        process = self.start(reports=1)
        self.kill_all()
        process.wait(TIMEOUT)
        path, data, frames = self.frames()
        self.assertGreater(len(frames), 1)
        data[frames[0] + 40] ^= 1
        path.chmod(0o644)
        path.write_bytes(data)
        done = subprocess.run([PROGRAM, "run", "long.toml", "--local", "2"], cwd=self.cwd, env=environment(),
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("is damaged at byte", done.stderr)
        self.assertEqual(path.read_bytes(), bytes(data))


if __name__ == "__main__":
    tests = [f"MissingFiles.{name}" for name in vars(MissingFiles) if name.startswith("test_")]
    unittest.main(argv=sys.argv[:1] + (sys.argv[3:] or tests), verbosity=2)
