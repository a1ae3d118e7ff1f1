#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands at the end of trials and of the study: hooks_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import time
import unittest

from cli_test import TINY, Case, sys


class Hooks(Case):
    def hooks(self, text):
        self.write(text=TINY + "[hooks]\n" + text)

    def test_commands_get_the_facts_of_trials_and_of_the_study(self):
        self.hooks("""on_trial_end = 'echo "$RANKTUNE_TRIAL $RANKTUNE_STATE $RANKTUNE_CONFIGURATION $RANKTUNE_REASON" >> "$RANKTUNE_STUDY_DIR/ends"'
on_study_end = 'echo "$RANKTUNE_HOOK $RANKTUNE_STUDY $RANKTUNE_EXIT $RANKTUNE_TRIALS $RANKTUNE_METRIC" > "$RANKTUNE_STUDY_DIR/end"'
""")
        self.run_tiny()
        lines = (self.cwd / "tiny/ends").read_text().splitlines()
        self.assertEqual(sorted(int(line.split()[0]) for line in lines), list(range(6)))
        for line in lines:
            self.assertRegex(line, r"^\d (finished|stopped) lr=\S+ \S")
        self.assertEqual((self.cwd / "tiny/end").read_text(), "on_study_end tiny 0 6 score\n")
        self.assertRegex((self.cwd / "tiny/resolved.toml").read_text(), r"\[hooks\]\non_trial_end = ")

    def test_commands_that_fail_or_hang_never_harm_the_study_and_are_told_once(self):
        self.hooks("on_trial_end = 'echo no mail here >&2; exit 3'\non_study_end = 'sleep 60'\ntimeout = \"1s\"\n")
        begin = time.monotonic()
        out, err = self.run_tiny()
        self.assertLess(time.monotonic() - begin, 50)
        self.assertEqual((out + err).count("hooks.on_trial_end failed (exit code 3: no mail here)"), 1, out + err)
        log = (self.cwd / "tiny/logs/start-1.log").read_text()
        self.assertEqual(log.count("key=hooks.on_trial_end"), 6, log)
        self.assertRegex(log, r"key=hooks.on_study_end .*no answer within 1 s")
        self.assertEqual(self.outcome()["exit"], "0")

    def test_simulations_and_replays_run_no_commands_and_hooks_may_change(self):
        self.hooks("on_trial_end = 'touch ended'\non_study_end = 'touch ended'\n")
        self.ranktune("simulate", "tiny.toml", "--groups", "2")
        self.write()
        self.run_tiny()
        self.ranktune("replay", "tiny", "--verify")
        self.assertFalse(list(self.cwd.rglob("ended")))
        self.hooks("on_study_end = 'touch \"$RANKTUNE_STUDY_DIR/ended\"'\n")
        out, _ = self.run_tiny("study.num_trials=7")
        self.assertTrue((self.cwd / "tiny/ended").exists(), out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
