#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Studies of programs whose environment fails: surroundings_test.py PROGRAM SOURCE_ROOT [TEST...]

One of the trials does the damage, and no other one runs beside it: a trial that fails before an older one reports is
not in a row of failures. So no test depends on how fast the study runs."""
import os
import subprocess
import unittest

from cli_test import PROGRAM, TIMEOUT, Case, environment, sys

TRIALS = 60
STUDY = """[study]
name = "programs"
metric = "score"
mode = "max"
num_trials = {trials}
max_iterations = 1
seed = 1
[trainable]
command = "./train.sh"
{more}
[space]
x = "uniform(0, 1)"
"""
# $1: what is reported. {damage}: what the eleventh trial does, once.
SCRIPT = """#!/bin/sh
report() { echo "{\\"report\\": {\\"score\\": $1}}" >&"$RANKTUNE_FD"; read -r answer <&"$RANKTUNE_FD"; }
if [ "$RANKTUNE_TRIAL" = 10 ] && mkdir "$RANKTUNE_STUDY_DIR/../done" 2>/dev/null; then
%s
fi
report %s
"""


class Surroundings(Case):
    def script(self, damage=":", value="0.$RANKTUNE_TRIAL"):
        path = self.cwd / "train.sh"
        path.write_text(SCRIPT % (damage, value))
        path.chmod(0o755)

    def study(self, more="", trials=TRIALS):
        self.write("programs.toml", STUDY.format(more=more, trials=trials))

    def run_study(self, *arguments, code, program=(PROGRAM, "run")):
        done = subprocess.run([*program, "programs.toml", "--local", "1", *arguments], cwd=self.cwd, env=environment(),
                              timeout=TIMEOUT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return " ".join((done.stdout + done.stderr).split())

    def states(self):
        states = [trial["state"] for trial in self.exported("programs")["trials"]]
        return {state: states.count(state) for state in states}

    def goes_on(self, trials=TRIALS):
        """With the same command, to its end, and no trial has failed. The journal decides so again."""
        self.assertNotIn("failed", self.states())
        self.assertIn(f"{trials} trials, {trials} ok, 0 failed", self.run_study(code=0))
        self.ranktune("replay", "programs", "--verify")

    def test_a_script_that_is_removed_in_mid_run_costs_no_trial(self):
        self.script("mv train.sh away.sh")
        self.study()
        words = self.run_study(code=75)
        self.assertIn("why 17 trials in a row failed before their first report. They said: cannot start './train.sh': No such "
                      "file or directory. This looks like", words)
        self.assertEqual(words.count("No such file"), 1, words)
        self.assertEqual({k: self.outcome("programs")[k] for k in ("exit", "cause")}, {"exit": "75", "cause": "trials"})
        self.run_study(code=75)  # nothing was mended
        os.rename(self.cwd / "away.sh", self.cwd / "train.sh")
        self.goes_on()

    def test_supervise_does_not_start_such_a_study_again(self):
        self.script("mv train.sh away.sh")
        self.study()
        words = self.run_study(code=75, program=(PROGRAM, "supervise", "--", PROGRAM, "run"))
        self.assertIn("it is not started again before the cause is mended", words)
        self.assertEqual(self.outcome("programs")["start"], "1")

    def test_a_deterministic_study_forgives_them_and_says_that_its_order_was_disturbed(self):
        self.script("mv train.sh away.sh")
        self.study()
        self.run_study("study.deterministic=true", "study.max_concurrent=2", code=75)
        os.rename(self.cwd / "away.sh", self.cwd / "train.sh")
        self.assertNotIn("failed", self.states())
        words = self.run_study("study.deterministic=true", "study.max_concurrent=2", code=0)
        self.assertIn(f"{TRIALS} trials, {TRIALS} ok, 0 failed", words)
        self.ranktune("replay", "programs", "--verify")

    def test_a_study_directory_that_is_away_for_a_moment_costs_no_trial(self):
        self.script('cd ..; mv "$RANKTUNE_STUDY_DIR" "$RANKTUNE_STUDY_DIR.away"')
        self.write("programs.toml", STUDY.format(more='directory = "here"', trials=250))
        (self.cwd / "here").mkdir()
        os.rename(self.cwd / "train.sh", self.cwd / "here" / "train.sh")
        self.run_study(code=75)
        self.assertFalse((self.cwd / "programs").exists())
        os.rename(self.cwd / "programs.away", self.cwd / "programs")
        self.goes_on(250)

    def test_a_folder_of_attempts_that_cannot_be_made_ends_the_study_with_what_the_system_says(self):
        self.script('mv "$RANKTUNE_STUDY_DIR/attempts" away; touch "$RANKTUNE_STUDY_DIR/attempts"')
        self.study()
        words = self.run_study(code=75)
        self.assertRegex(words, r"why trial #\d+ could not be set up on \S+: cannot .*attempts.*: (Not a directory|File exists)\. "
                                r"No trial counts as failed")
        self.assertEqual({k: self.outcome("programs")[k] for k in ("exit", "cause")}, {"exit": "75", "cause": "storage"})
        os.unlink(self.cwd / "programs" / "attempts")
        self.goes_on()

    def test_a_python_module_that_is_gone_ends_the_study_and_comes_back_with_the_next_start(self):
        self.script('rm -r "$RANKTUNE_STUDY_DIR/python"')
        self.study()
        self.assertRegex(self.run_study(code=75), r"could not be set up on \S+: cannot open '.*/python/ranktune\.py': No such")
        self.goes_on()

    def test_a_disk_that_is_full_costs_no_trial(self):
        mount = self.cwd / "programs"
        mount.mkdir()
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "ranktune-test", mount],
                                               capture_output=True).returncode != 0:
            self.skipTest("no file system of its own can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", mount], check=True)
        # What this trial gives back when it ends, the next one could use: it is gone before.
        self.script('rm -r "${RANKTUNE_CONFIG%/*}"; cat /dev/zero >"$RANKTUNE_STUDY_DIR/.filler" 2>/dev/null')
        self.study()
        self.assertRegex(self.run_study(code=75), r"could not be set up on \S+: cannot .*: No space left on device")
        (mount / ".filler").unlink()
        self.goes_on()

    def test_results_that_are_never_finite_are_no_success(self):
        self.script(value="NaN")
        self.study(trials=10)
        words = self.run_study(code=4)
        self.assertIn("10 trials, 10 ok, 0 failed", words)
        self.assertIn("why score was never finite: it was nan or infinite in all 10 reports", words)
        self.assertRegex(words, r"next ranktune logs programs 0 # what one of the trials said")
        self.assertNotIn("--restart-errored", words)
        self.assertIn("nothing was started", self.run_study(code=4))

    def test_a_program_that_gives_no_checkpoints_ends_a_pausing_study_at_the_first_pause(self):
        self.script(value="0.$((9 - RANKTUNE_TRIAL))")  # later ones are worse, so they pause
        text = STUDY.format(more="", trials=9).replace("max_iterations = 1", "max_iterations = 3")
        self.write("programs.toml", text + '[scheduler]\ntype = "asha"\n')
        words = self.run_study(code=2)
        self.assertRegex(words, r"why trial #[01]: it was to pause at iteration 1, but its program gave no checkpoint: pass one "
                                r"with each report, report\(\.\.\., checkpoint=path\); or say checkpoints = false in \[trainable\] "
                                r"and restart_paused = true in \[scheduler\]")
        self.assertLessEqual(sum(self.states().values()), 2)
        self.assertNotIn("failed", self.states())
        self.assertIn("stopped, goes on with", self.ranktune("status", "programs")[0])
        self.run_study(code=2)  # nothing was mended
        mended = STUDY.format(more="checkpoints = false", trials=9).replace("max_iterations = 1", "max_iterations = 3")
        self.write("programs.toml", mended + '[scheduler]\ntype = "asha"\nrestart_paused = true\n')
        (self.cwd / "train.sh").write_text(SCRIPT.replace("%s\nfi", ":\nfi").replace(
            "report %s", 'for i in 1 2 3; do report 0.$RANKTUNE_TRIAL; case $answer in *continue*) ;; *) exit 0 ;; esac; done'))
        words = self.run_study(code=0)
        self.assertIn("trainable.checkpoints true -> false (taken over)", words)
        self.assertIn("scheduler.restart_paused false -> true (taken over)", words)
        self.assertIn("9 ok, 0 failed", words)
        self.ranktune("replay", "programs", "--verify")

    def test_a_program_that_is_mended_goes_on_with_the_same_command(self):
        self.script()
        text = STUDY.format(more="", trials=9).replace("max_iterations = 1", "max_iterations = 3")
        self.write("programs.toml", text + '[scheduler]\ntype = "asha"\n')
        self.run_study(code=2)
        (self.cwd / "train.sh").write_text("""#!/bin/sh
i=$RANKTUNE_ITERATION
while i=$((i + 1)); echo $i >"$RANKTUNE_CHECKPOINT_DIR/state"; do
  echo "{\\"report\\": {\\"score\\": 0.$RANKTUNE_TRIAL}, \\"checkpoint\\": \\"$RANKTUNE_CHECKPOINT_DIR/state\\"}" >&"$RANKTUNE_FD"
  read -r answer <&"$RANKTUNE_FD"
  case $answer in *continue*) ;; *) exit 0 ;; esac
done
""")
        self.assertIn("9 ok, 0 failed", self.run_study(code=0))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
