#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""States that cannot be saved, as a user meets them: last_saves_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import json
import resource
import shutil
import subprocess
import unittest

from cli_test import PROGRAM, TIMEOUT, Case, environment, sys

STUDY = """[study]
name = "s"
metric = "loss"
mode = "min"
num_trials = 3
max_iterations = 3
seed = 1
[trainable]
command = "{python} train.py"
[searcher]
type = "random"
[space]
x = "uniform(0, 1)"
[scheduler]
type = "{scheduler}"
"""
TRAIN = """
import os, ranktune, sys
c, h = ranktune.config(), ranktune.context()
def save(folder):
    if os.path.exists("mended"):
        open(folder + "/state", "w").write(str(h.iteration))
    else:
        {ending}
for e in range(h.iteration, h.iterations):
    ranktune.report(loss=c.x, checkpoint=save)
"""


class LastSaves(Case):
    def train(self, ending, scheduler="fifo"):
        self.write("s.toml", STUDY.format(python=sys.executable, scheduler=scheduler))
        self.write("train.py", TRAIN.format(ending=ending))

    def run_study(self, code, workers=2):
        out, _ = self.ranktune("run", "s.toml", "--local", str(workers), code=code)
        return " ".join(out.split())

    def test_the_weights_of_the_best_trial_are_not_lost_without_a_word(self):
        """Whatever fails in the function that saves, the study ends resumably and names it; the next start goes on."""
        # Any trial may be the first that leads at an end; the others save when they pause, wherever they are.
        for ending, why in (("raise RuntimeError('cannot pickle')", r"while saving at iteration [123]: RuntimeError: cannot pickle \(train.py:8\)"),
                            ("sys.exit('no room')", "while saving at iteration [123]: SystemExit: no room"), ("pass", "saved nothing in"),
                            ("return '/no/such/file'", "saved nothing in"), ("os.kill(os.getpid(), 9)", "killed by signal 9")):
            with self.subTest(ending):
                self.train(ending)
                out = self.run_study(75)
                self.assertRegex(out, why)
                self.assertNotIn("failed", [trial["state"] for trial in self.exported("s")["trials"]])
                self.assertEqual(self.outcome("s")["cause"], "storage")
                self.assertRegex(" ".join(self.ranktune("best", "s")[0].split()), why)
                # Trials that led and have ended stay without weights; a later best one has its own.
                self.write("mended", "")
                self.assertIn("3 trials, 3 ok", self.run_study(0))
                (self.cwd / "mended").unlink()
                shutil.rmtree(self.cwd / "s")

    def test_a_program_that_dies_of_saving_its_best_state_does_not_do_so_at_every_start(self):
        for mode in ("min", "max"):
            for ending in ("os._exit(1)", "os.kill(os.getpid(), 11)"):
                with self.subTest(mode=mode, ending=ending):
                    shutil.rmtree(self.cwd / "s", ignore_errors=True)
                    self.train(ending)
                    for name, was, now in (("s.toml", 'mode = "min"', f'mode = "{mode}"'), ("s.toml", "num_trials = 3", "num_trials = 1"),
                                           ("train.py", "loss=c.x", f"loss=c.x {'-' if mode == 'min' else '+'} e")):
                        self.write(name, (self.cwd / name).read_text().replace(was, now))
                    self.assertIn("while saving at iteration 1", self.run_study(75))
                    self.assertIn("told to save its state and to stop at iteration 3, and ended without having saved it", self.run_study(75))
                    self.assertIn("1 trial, 1 ok", self.run_study(0))

    def test_weights_that_are_lost_are_named_after_each_start(self):
        self.train("raise RuntimeError('cannot pickle')")
        program = (self.cwd / "train.py").read_text()
        self.write("train.py", program.replace("loss=c.x", "loss=float(h.trial)"))
        cause = "while saving at iteration 3: RuntimeError: cannot pickle"
        for code in (75, 0, 0):  # the last one finds a finished study
            out = self.run_study(code, workers=1)  # so that #0 is the only trial that leads at its end
            self.assertRegex(out, "best #0 loss 0.0000 at iteration [1-3] of 3; no weights")
            status = " ".join(self.ranktune("status", "s")[0].split())
            self.assertIn("; no weights", status)
            self.assertIn(cause, out)
            self.assertEqual(status.count(cause), 1, status)  # as the reason of the end, or beside the best trial
            if code == 0:
                self.assertIn("weights of #0 not saved: ", out)
        self.assertIn(cause, json.loads(self.ranktune("best", "s", "--json")[0])["best"]["unsaved"])
        self.ranktune("report", "s", "-o", "s.html")
        self.assertIn("no weights (not saved: ", (self.cwd / "s.html").read_text())

    def test_a_full_disk_is_charged_to_nobody(self):
        for scheduler in ("fifo", "asha"):
            with self.subTest(scheduler):
                self.train("raise ValueError('wrapped') from OSError(122, 'Disk quota exceeded')", scheduler)
                out = self.run_study(75)
                self.assertIn("while saving at iteration", out)
                self.assertEqual(self.outcome("s")["cause"], "storage")
                states = [trial["state"] for trial in self.exported("s")["trials"]]
                self.assertNotIn("failed", states)
                self.write("mended", "")
                self.assertIn("3 trials, 3 ok", self.run_study(0))
                (self.cwd / "mended").unlink()
                shutil.rmtree(self.cwd / "s")

    def test_a_state_that_lacks_the_part_of_one_rank_is_none(self):
        """Also where the program catches what its second rank raises, and goes on."""
        self.write("s.toml", STUDY.format(python=sys.executable, scheduler="fifo") + "[resources]\nranks = 2\n")
        self.write("train.py", """
import os, ranktune
h = ranktune.context()
def save(folder):
    if h.rank == 1 and not os.path.exists("mended"):
        raise OSError(28, "No space left on device")
    open(f"{folder}/part{h.rank}", "w").write("x")
for e in range(h.iteration, h.iterations):
    try:
        ranktune.report(loss=float(h.trial) + abs(e - 1), checkpoint=save)
    except OSError:
        pass
""")
        self.assertIn("rank 1: while saving at iteration", self.run_study(75))
        self.assertEqual(list((self.cwd / "s").glob("checkpoints/*/*/*/part0")), [])
        self.write("mended", "")
        self.run_study(0)
        for folder in (self.cwd / "s").glob("checkpoints/*/*/*/"):
            self.assertEqual(sorted(path.name for path in folder.iterdir()), ["part0", "part1"])


class BestWeights(Case):
    """Values that get worse again: what is handed out are the weights of the best value, or every view says whose they are."""
    LOSSES = (9, 4, 2, 1, 3, 5, 6, 7, 8)
    PEAKED = """
import json, os, ranktune
c, h = ranktune.config(), ranktune.context()
losses = {losses}
def save(folder):
    if h.rank == 0:
        open(folder + "/state", "w").write(str(done))
for e in range(h.iteration, h.iterations):
    done = e + 1
    if {path}:
        os.makedirs(here := os.path.join(h.checkpoint_dir, "mine"), exist_ok=True)
        save(here)
    ranktune.report(loss=c.x + losses[e], checkpoint=here if {path} else save)
"""

    def best(self):
        return json.loads(self.ranktune("best", "s", "--json")[0])["best"]

    def run_peaked(self, program, scheduler="fifo", more=""):
        self.write("s.toml", STUDY.format(python=sys.executable, scheduler=scheduler).replace("= 3\nseed", f"= {len(self.LOSSES)}\nseed") + more)
        self.write("train.py", program)
        shutil.rmtree(self.cwd / "s", ignore_errors=True)
        return self.ranktune("run", "s.toml", "--local", "2")[0]

    def test_programs_have_the_weights_of_the_best_iteration(self):
        for scheduler, path, more in (("fifo", False, ""), ("fifo", True, ""), ("asha", False, ""), ("fifo", False, "[resources]\nranks = 2\n")):
            with self.subTest(scheduler=scheduler, path=path, more=more):
                out = self.run_peaked(self.PEAKED.format(losses=self.LOSSES, path=path), scheduler, more)
                best = self.best()
                self.assertEqual(best["iteration"], 4)
                self.assertEqual(best["checkpoint_iteration"], 4)
                self.assertEqual(best["checkpoint_value"], best["value"])
                state, = (self.cwd / "s" / best["checkpoint"]).rglob("state")
                self.assertEqual(state.read_text(), "4")
                self.assertNotIn("weights of", out + self.ranktune("best", "s")[0] + self.ranktune("status", "s")[0])

    def test_a_class_has_the_weights_of_the_best_iteration(self):
        self.write("s.toml", FileSizes.STUDY.replace("seconds = 0.01\nstate_bytes = 30000000", "noise = 1.0").replace("= 4", "= 20")
                   .replace('"asha"', '"fifo"'))
        self.ranktune("run", "s.toml", "--local", "2")
        best = self.best()
        self.assertLess(best["iteration"], 20)
        self.assertEqual((best["checkpoint_iteration"], best["checkpoint_value"]), (best["iteration"], best["value"]))
        self.assertEqual(self.ranktune("checkpoint", "s", "best", "--all")[0],
                         f"trial #{best['trial']} at iteration {best['iteration']}: s-{best['trial']}-{best['iteration']}.safetensors\n")

    def test_a_program_that_saves_only_when_it_ends_is_spoken_of_beside_its_value(self):
        text = self.PEAKED.format(losses=self.LOSSES, path=False).replace(
            "import json", "import ranktune as r\nr._Link.decide_ = r._Link.decide\n"
            "r._Link.decide = lambda self, message, *rest: self.decide_({k: v for k, v in message.items() if k != 'can_go_on'}, *rest)\nimport json")
        out = self.run_peaked(text)
        best = self.best()
        self.assertEqual((best["iteration"], best["checkpoint_iteration"]), (4, 9))
        aside = f"at iteration 4 of 9; weights of iteration 9 ({best['checkpoint_value']:.4f})"
        for shown in (out, self.ranktune("best", "s")[0], self.ranktune("status", "s")[0]):
            self.assertIn(f"weights of iteration 9 ({best['checkpoint_value']:.4f})", " ".join(shown.split()))
        self.assertIn(aside, " ".join(out.split()))
        trial = self.exported("s")["trials"][best["trial"]]
        self.assertEqual(trial["best"]["checkpoint_iteration"], 9)
        self.assertEqual(trial["checkpoints"][0]["value"], best["checkpoint_value"])
        self.ranktune("report", "s", "-o", "s.html")
        self.assertIn(f"weights of iteration 9 ({best['checkpoint_value']:.4f})", (self.cwd / "s.html").read_text())

    def test_without_checkpoints_on_the_way_a_trial_saves_at_its_end(self):
        self.run_peaked(self.PEAKED.format(losses=self.LOSSES, path=False), more='[checkpoint]\ninterval = "none"\n')
        self.assertEqual(self.best()["checkpoint_iteration"], 9)
        self.assertIn('with checkpoint.interval = "none"', self.ranktune("best", "s")[0])


class FileSizes(Case):
    """ulimit -f, which Slurm passes on."""
    STUDY = """[study]
name = "s"
metric = "score"
mode = "max"
num_trials = 6
max_iterations = 4
seed = 1
[trainable]
builtin = "curve"
seconds = 0.01
state_bytes = 30000000
[space]
lr = "loguniform(1e-4, 1)"
[scheduler]
type = "asha"
"""

    def run_limited(self, megabytes, code):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (megabytes << 20, resource.RLIM_INFINITY))
        done = subprocess.run([PROGRAM, "run", "s.toml", "--local", "2"], cwd=self.cwd, env=environment(), timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, preexec_fn=limit)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return " ".join((done.stdout + done.stderr).split())

    def test_a_state_beyond_the_limit_of_file_sizes_is_a_file_that_cannot_be_written(self):
        self.write("s.toml", self.STUDY)
        out = self.run_limited(12, 75)
        self.assertIn("File too large", out)
        self.assertNotIn("killed", out)
        self.assertEqual(self.outcome("s")["cause"], "storage")
        self.assertIn("6 trials, 6 ok", self.ranktune("run", "s.toml", "--local", "2")[0])

    def test_a_program_gets_the_default_action(self):
        self.write("train.sh", "grep SigIgn /proc/self/status\n"
                   'echo "{\\"report\\": {\\"score\\": 1}}" >&"$RANKTUNE_FD"; read -r answer <&"$RANKTUNE_FD"\n')
        self.write("s.toml", self.STUDY.replace('builtin = "curve"\nseconds = 0.01\nstate_bytes = 30000000', 'command = "sh train.sh"')
                   .replace('type = "asha"', 'type = "fifo"') + '[hooks]\non_trial_end = \'grep SigIgn /proc/self/status > "$RANKTUNE_STUDY_DIR/hook"\'\n')
        self.ranktune("run", "s.toml", "--local", "2")
        logs = "".join(path.read_text() for path in (self.cwd / "s" / "logs").glob("workers-*.log"))
        self.assertRegex(logs, r"SigIgn:\s+0{16}\b")
        self.assertRegex((self.cwd / "s" / "hook").read_text(), r"SigIgn:\s+0{16}\b")


if __name__ == "__main__":
    tests = [f"{case.__name__}.{name}" for case in (LastSaves, BestWeights, FileSizes) for name in dir(case) if name.startswith("test_")]
    unittest.main(argv=sys.argv[:1] + (sys.argv[3:] or tests), verbosity=2)
