#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arguments of the verbs: accepted, refused, and warned about before any trial fails: verbs_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import json
import os
import re
import shlex
import subprocess
import unittest

from cli_test import PROGRAM, SOURCES, TIMEOUT, TINY, Case, environment, sys

WIDE = TINY + "[resources]\nranks = 3\n"
COMMAND = """[study]
name = "tiny"
metric = "score"
mode = "max"
num_trials = 3
max_iterations = 1
[trainable]
command = '{command}'
{more}
[space]
x = "uniform(0, 1)"
"""
REPORT = 'echo "{\\"report\\": {\\"score\\": 1}}" >&"$RANKTUNE_FD"\n'


def in_one_line(text):
    """The text of a screen, or of the comments of a dry run, without line breaks."""
    return " ".join(re.sub(r"(?m)^# ?", "", text).split())


class Ranks(Case):
    """On one hardware thread, whatever this machine has."""

    def ranktune(self, *arguments, **options):
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(allowed)})
        try:
            return super().ranktune(*arguments, **options)
        finally:
            os.sched_setaffinity(0, allowed)

    def test_more_ranks_than_hardware_threads_are_refused_unless_local_says_so(self):
        self.write("wide.toml", WIDE)
        words = ("resources.ranks: a trial may ask for 3 ranks, but ranktune may use 1 hardware thread here; let it ask for fewer, or "
                 "say --local 3, which starts 4 processes here all the same")
        for verb in (["run"], ["run", "--dry-run"]):
            err = self.ranktune(*verb, "wide.toml", code=2)[1]
            self.assertEqual(err, f"ranktune: 1 mistake in wide.toml, nothing was started (exit 2)\n  15:9  {words}\n")
            self.write()
            self.assertIn(f"\n  -  {words}", self.ranktune(*verb, "tiny.toml", "resources.ranks=3", code=2)[1])
            self.assertIn(f"\n  -  {words}", self.ranktune(*verb, "tiny.toml", "resources.ranks={n}", "space.n=[1,3]", code=2)[1])
        # With all other mistakes.
        self.write("wrong.toml", WIDE.replace("1e-3", "2.0"))
        self.assertRegex(self.ranktune("run", "wrong.toml", code=2)[1], r"2 mistakes in wrong.toml, (.*\n)+.* space.lr: (.*\n)*"
                         r".*resources.ranks: a trial may ask for 3 ranks, but")
        self.assertEqual(sorted(path.name for path in self.cwd.iterdir()), ["tiny.toml", "wide.toml", "wrong.toml"])

        out, _ = self.ranktune("run", "wide.toml", "--dry-run", "--local", "3")
        self.assertIn("3 workers 4 processes take turns on 1 hardware thread group 1: ranks 1 to 3", in_one_line(out))
        out, _ = self.ranktune("run", "wide.toml", "--local", "3", "study.max_iterations=1")
        self.assertIn("6 trials, 6 ok", out)
        # Of a study that is finished nothing is started.
        self.assertIn("tiny is finished", self.ranktune("run", "wide.toml", "study.max_iterations=1")[0])

    def test_more_workers_than_the_machine_carries_or_the_study_uses_are_refused(self):
        # With no launcher on PATH, so that this test never starts them.
        self.write()  # 6 trials of one rank each
        for verb in (["run"], ["run", "--dry-run"]):
            err = self.ranktune(*verb, "tiny.toml", "--local", "5000", "study.num_trials=9000", code=2, PATH="/nowhere")[1]
            self.assertRegex(err, r"--local 5000 would start 5001 processes on a machine with 1 hardware thread and \S+ \S+ of memory; "
                             r"use --local 16 at most\. To start them all the same, use the launcher yourself: `mpirun.* -n 5001 "
                             r"ranktune run tiny\.toml study\.num_trials=9000`")
            self.assertIn("use --local 6 at most", self.ranktune(*verb, "tiny.toml", "--local", "5000", code=2, PATH="/nowhere")[1])
            self.assertIn("--local 12 starts more workers than the study can use: 6 trials at one time, with 1 rank each; use --local 6",
                          self.ranktune(*verb, "tiny.toml", "--local", "12", code=2, PATH="/nowhere")[1])
            self.assertIn("2 trials at one time, with 3 ranks each; use --local 6", self.ranktune(
                *verb, "tiny.toml", "--local", "12", "study.max_concurrent=2", "resources.ranks=3", code=2, PATH="/nowhere")[1])
            self.assertRegex(self.ranktune(*verb, "tiny.toml", "resources.ranks=500", code=2, PATH="/nowhere")[1],
                             r"let it ask for fewer, or use the launcher yourself: `mpirun.* -n 501 ranktune run tiny\.toml "
                             r"resources\.ranks=500`")
            self.assertIn("use fewer ranks in a trial, 16 at most",
                          self.ranktune(*verb, "tiny.toml", "--local", "500", "resources.ranks=500", code=2, PATH="/nowhere")[1])
        self.assertFalse((self.cwd / "tiny").exists())
        self.ranktune("run", "tiny.toml", "--dry-run", "--local", "16", "study.num_trials=20")
        self.run_tiny("-q")
        self.assertIn("tiny is finished", self.ranktune("run", "tiny.toml", "--local", "5000", PATH="/nowhere")[0])

    def test_a_dry_run_tells_of_other_ranks_than_those_here_as_before(self):
        self.write("wide.toml", WIDE)
        out, _ = self.ranktune("run", "wide.toml", "--dry-run", SLURM_JOB_ID="7", SLURM_NTASKS="7")
        self.assertIn("one for each of the 7 tasks of this job", in_one_line(out))
        out, _ = self.ranktune("run", "wide.toml", "--dry-run", SLURM_JOB_ID="7", SLURM_NTASKS="1")
        self.assertIn("assumed, as this job has one task", in_one_line(out))
        self.assertNotIn("hardware thread", out)
        out, _ = self.ranktune("run", "wide.toml", "--dry-run", "--local", "1", "resources.ranks=1")
        self.assertNotIn("hardware thread", out)


class Commands(Case):
    def study(self, command, more="", shell=False):
        self.write(text=COMMAND.format(command=command, more=more + ("\nshell = true" if shell else "")))

    def everywhere(self, code=None):
        """The output of validate, of a dry run and (with its exit code) of a run, each in one line."""
        shown = [self.ranktune("validate", "tiny.toml")[0], self.ranktune("run", "tiny.toml", "--dry-run")[0]]
        if code is not None:
            shown.append(self.ranktune("run", "tiny.toml", "--local", "1", "--fresh", code=code)[0])
        return [in_one_line(text) for text in shown]

    def test_a_launcher_in_the_command_is_warned_of(self):
        (self.cwd / "torchrun").write_text('#!/bin/sh\nwhile [ "${1%.py}" = "$1" ]; do shift; done\nexec python3 "$@"\n')
        (self.cwd / "torchrun").chmod(0o755)
        (self.cwd / "train.py").write_text("import ranktune\nranktune.report(score=1)\n")
        self.study("torchrun --nproc_per_node=4 train.py --epochs={iterations} {args}", f'env = {{ PATH = "{self.cwd}:{os.environ["PATH"]}" }}')
        for shown in self.everywhere(code=0):
            self.assertEqual(shown.count("warning trainable.command starts 'torchrun', but ranktune is the launcher"), 1, shown)
            self.assertIn("Write the program alone, and the number of processes as ranks under [resources]", shown)
            self.assertEqual(shown.count("warning"), 1, shown)
        self.assertEqual(self.ranktune("run", "tiny.toml", "--local", "1", "-q", "--fresh"), ("", ""))
        self.study("mpirun simulate {x}", 'env = { PATH = "/nowhere" }')  # one warning is enough
        shown = in_one_line(self.ranktune("validate", "tiny.toml", "--elsewhere")[0])
        self.assertEqual(shown.count("warning"), 1, shown)

    def refused(self, *words):
        """validate, a dry run and a run refuse the study with these words, and nothing is started."""
        for verb in (["validate"], ["run", "--dry-run"], ["run", "--local", "1"]):
            err = in_one_line(self.ranktune(verb[0], "tiny.toml", *verb[1:], code=2)[1])
            for word in words:
                self.assertIn(word, err)
            self.assertEqual("validate --elsewhere" in err, verb == ["validate"], err)
        self.assertFalse((self.cwd / "tiny").exists())
        for shown in (in_one_line(self.ranktune("validate", "tiny.toml", "--elsewhere")[0]), in_one_line(
                self.ranktune("run", "tiny.toml", "--dry-run", SLURM_JOB_ID="7", SLURM_NTASKS="7")[0])):
            self.assertIn("warning trainable.command: ", shown)
            self.assertIn("without it every trial fails (the nodes of a job may differ)", shown)

    def accepted(self):
        self.assertNotIn("warning", self.ranktune("validate", "tiny.toml")[0])

    def test_a_program_or_script_that_is_not_here_is_refused_before_anything_starts(self):
        self.study("pyhton3 train.py {args}")
        self.refused("1 mistake in tiny.toml, nothing was started", "8:11 trainable.command: there is no program 'pyhton3' on PATH "
                     "on this machine; load its module, activate its environment, or write its path")
        self.study("sh -eu lost.sh")  # whose options may have values
        self.accepted()
        for command in ("sh lost.sh {args}", "python3 -u lost.sh", "./lost.sh"):
            self.study(command)
            self.refused(f"lost.sh' on this machine; a relative path counts from {self.cwd} (directory)")
        lost = self.cwd / "lost.sh"
        lost.write_text("#!/bin/sh\n" + REPORT)
        lost.chmod(0o644)
        self.refused(f"may not be executed: chmod +x {self.cwd}/./lost.sh")
        lost.chmod(0o755)
        for command in ("./lost.sh", "sh lost.sh", f"{self.cwd}/lost.sh", "./{x}", "sh {x}.sh", "python3 -m lost", 'sh -c "true"'):
            self.study(command)
            self.accepted()
        self.study("cd sub && ./away.sh", shell=True)  # a shell may go anywhere
        self.accepted()
        self.study("lost.sh")
        self.refused("there is no program 'lost.sh' on PATH on this machine; the file of that name beside the study file is ./lost.sh")
        self.study("found", f'env = {{ PATH = "{self.cwd}/bin" }}')
        self.refused("no program 'found'")
        (self.cwd / "bin").mkdir()
        os.link(lost, self.cwd / "bin" / "found")
        self.accepted()
        self.study("./bin")
        self.refused("/bin' is a directory, not a program")

    def test_a_script_whose_first_line_names_no_program_is_refused(self):
        script = self.cwd / "train"
        for line, word in (("#!/usr/bin/env pyhton3\n", "names 'pyhton3', which is not on PATH"),
                           ("#!/opt/python -u\n", "names '/opt/python', which is no program"),
                           ("#!/bin/sh\r\n", "lines that end as on Windows"), ("", "needs a first line that names what runs it")):
            script.write_bytes(line.encode() + b"exit 0\n")
            script.chmod(0o755)
            self.study("./train")
            self.refused(word)
        for line in ("#!/usr/bin/env -S python3 -u\n", "#! /bin/sh -e\n", "\x7fELF"):
            script.write_text(line)
            self.accepted()

    def test_a_study_that_has_begun_is_started_whose_program_is_gone(self):
        script = self.cwd / "train.sh"
        script.write_text("#!/bin/sh\n" + REPORT)
        script.chmod(0o755)
        self.study("./train.sh")
        self.ranktune("run", "tiny.toml", "--local", "1", "-q")
        script.rename(self.cwd / "away.sh")
        self.assertIn("tiny is finished", self.ranktune("run", "tiny.toml")[0])
        out = self.ranktune("run", "tiny.toml", "--local", "1", "study.num_trials=30", code=75)[0]
        self.assertIn("without it every trial fails", in_one_line(out))
        script.symlink_to("away.sh")
        self.assertIn("30 trials, 30 ok, 0 failed", self.ranktune("run", "tiny.toml", "--local", "1", "study.num_trials=30")[0])

    def test_a_home_directory_is_flagged_where_no_shell_expands_it(self):
        for command in ("~/venv/bin/python train.py", "python3 ~/train.py", "python3 train.py --data=~/x.h5", "~alice/train"):
            self.study(command)
            for verb in (["validate"], ["run", "--dry-run"], ["run"]):
                self.assertIn("  8:11  trainable.command: '~' is the home directory to a shell, but the command is run without one; "
                              "write the whole path", self.ranktune(*verb, "tiny.toml", code=2)[1])
        self.assertFalse((self.cwd / "tiny").exists())
        for command in ("sh a~b ~", "sh x~/y --bound=~5", 'sh "~/x"', "sh {x}~/y"):
            self.study(command.replace(" ~", ""))
            self.assertIn("no mistakes", self.ranktune("validate", "tiny.toml", "--elsewhere")[0])
        self.study("~/venv/bin/python train.py", shell=True)
        self.assertIn("no mistakes", self.ranktune("validate", "tiny.toml")[0])
        self.study("sh train.sh", 'directory = "~/work"')
        self.assertIn("'~' stays as it is in a study file; write the whole path", self.ranktune("validate", "tiny.toml", code=2)[1])
        self.ranktune("init", "digits")
        self.assertIn("'~' stays as it is in a study file; write the whole path",
                      self.ranktune("validate", "digits.toml", "trainable.data=~/digits.h5", code=2)[1])
        self.assertNotIn("'~'", self.ranktune("validate", "digits.toml", "trainable.data=digits.h6", code=2)[1])


class Taken(Case):
    """Every verb takes a study as its file or as its directory, and a trial as its number or as `best`."""

    def same(self, verb, *more, code=0, by_file="tiny.toml"):
        first = self.ranktune(verb, "tiny", *more, code=code)
        second = self.ranktune(verb, by_file, *more, code=code)
        self.assertEqual(*(tuple(text.replace("tiny.toml", "tiny") for text in said) for said in (first, second)), verb)
        return first[0]

    def test_every_verb_takes_the_study_file_and_the_directory(self):
        self.run_tiny("-q")
        self.assertIn("finished, exit 0", self.same("status"))
        self.assertIn('"schema": 1', self.same("status", "-f", "json"))
        self.assertIn("best", self.same("best"))
        self.assertIn("trial #3", self.same("logs", "3"))
        self.assertIn("trial,state,", self.same("export", "-f", "csv"))
        self.assertIn("#3: ", self.same("explain", "3"))
        told = " ".join(self.same("explain", "3", "--records").split())
        self.assertRegex(told, r"attempt 1 from scratch.*\[records \d+, \d+\].* records counted from 0")
        self.assertIn("--records is for one trial", self.ranktune("explain", "tiny", "--records", code=2)[1])
        self.assertIn("page.html", self.same("report", "-o", "page.html"))
        self.assertIn("verified: ", self.same("replay", "--verify"))
        self.assertIn("safetensors", self.same("checkpoint", "best"))
        self.assertIn("tiny is finished", self.same("run"))
        self.assertIn("6 trials", self.same("validate"))
        self.assertIn("finished, so nothing was submitted", self.same("submit", "--time", "1h"))
        for place in ("tiny", "tiny.toml"):
            self.assertIn("nothing runs in 'tiny'; what there is: ranktune status tiny", self.ranktune("stop", place, code=2)[1])
            self.assertIn("tiny-support.tar.gz: ", self.ranktune("support", place, TMPDIR=str(self.cwd))[0])
            done = subprocess.run([PROGRAM, "doctor", place], cwd=self.cwd, env=environment(), capture_output=True, text=True,
                                  timeout=TIMEOUT)
            self.assertNotIn("tiny.toml", done.stdout)
            out, _ = self.ranktune("supervise", "--dir", place, "--", "true")
        (self.cwd / "elsewhere").mkdir()
        os.rename(self.cwd / "tiny.toml", self.cwd / "elsewhere" / "tiny.toml")  # the directory is where `run` would make it
        self.same("best", by_file="elsewhere/tiny.toml")
        # A mistake in the file, or data that are gone, hide no results: the name alone counts.
        self.write(text=TINY.replace("loguniform", "lgouniform").replace('builtin = "curve"', 'builtin = "mlp"\ndata = "lost.h5"'))
        self.same("best")

    def test_a_study_file_whose_directory_is_not_there_says_where_it_was_looked_for(self):
        self.write()
        for verb in (["status"], ["best"], ["logs"], ["export", "-f", "csv"], ["report"], ["replay"], ["checkpoint"], ["stop"]):
            words = ["best"] if verb[0] in ("logs", "checkpoint") else []
            err = self.ranktune(verb[0], "tiny.toml", *words, *verb[1:], code=2)[1]
            self.assertIn("there is no directory 'tiny'", err)
            self.assertIn("give the directory that `ranktune run` made", err)
        self.write("list.csv", "a,b\n1,2\n")
        self.assertIn("'list.csv' is no study file: not valid TOML", self.ranktune("status", "list.csv", code=2)[1])
        self.write("other.toml", "[study]\nmetric = 'x'\n")
        self.assertIn("'other.toml' is no study file: it has no study.name", self.ranktune("best", "other.toml", code=2)[1])
        self.write("up.toml", "[study]\nname = '../up'\n")
        self.assertIn("is no study file", self.ranktune("best", "up.toml", code=2)[1])

    def test_best_names_a_trial_wherever_a_number_does(self):
        self.run_tiny("-q")
        number = re.search(r'"trial": (\d+)', self.ranktune("best", "tiny", "-f", "json")[0])[1]
        self.assertEqual(self.ranktune("logs", "tiny", "best"), self.ranktune("logs", "tiny", f"#{number}"))
        self.assertEqual(self.ranktune("checkpoint", "tiny", "best"), self.ranktune("checkpoint", "tiny", number))
        self.assertIn("needs the number of a trial, best, before, or after, not 'bset'", self.ranktune("logs", "tiny", "bset", code=2)[1])
        self.run_tiny("-q", "-o", "none", "trainable.fail_rate=1.0", "trainable.fail_iteration=1", code=4)
        for verb in ("logs", "checkpoint"):
            self.assertIn("'none' has no best trial: none has reported", self.ranktune(verb, "none", "best", code=4)[1])


class Codes(Case):
    def test_help_of_an_unknown_verb_is_no_success(self):
        for words in (["bogus", "--help"], ["bogus", "-h"], ["bogus", "--version"], ["--help", "bogus"]):
            out, err = self.ranktune(*words, code=2)
            self.assertEqual(out, "")
            self.assertRegex(err, r"unknown verb 'bogus'; did you mean 'logs'\? \(init, validate, keys, algorithms, run, ")
        self.assertIn("did you mean 'status'?", self.ranktune("stat", "--help", code=2)[1])
        for words in (["--help"], ["-h"], ["--version"], ["status", "--help"], ["hosts", "--help"]):
            self.assertEqual(self.ranktune(*words)[1], "")

    def test_a_directory_that_may_not_be_used_is_one_code_whoever_meets_it(self):
        if os.geteuid() == 0 and subprocess.run([PROGRAM, "--version"], user=65534, group=65534, extra_groups=[], cwd="/",
                                                capture_output=True, check=False).returncode != 0:
            self.skipTest("no other user may run this program")
        self.write()
        self.cwd.chmod(0o755)
        (self.cwd / "closed").mkdir(mode=0o555)
        (self.cwd / "hidden").mkdir(mode=0o000)
        self.addCleanup((self.cwd / "hidden").chmod, 0o700)
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}

        def told(*words):
            done = subprocess.run([PROGRAM, *words], cwd=self.cwd, env=environment(HOME="/"), timeout=TIMEOUT, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, **user)
            return done.returncode, done.stderr

        job = ["--time", "1h"]
        for place in ("closed/x", "hidden/x", "hidden"):
            for words in (["run", "tiny.toml", "--local", "1", "-o", place], ["submit", "tiny.toml", *job, "-o", place],
                          ["supervise", "--", PROGRAM, "run", "tiny.toml", "--local", "1", "-o", place]):
                code, err = told(*words)
                self.assertEqual(code, 2, err)  # there is no study yet that could lose something
                self.assertRegex(err, r"may not write to '.*' \(Permission denied\); give another directory with -o \(exit 2\)")
        for words in (["run", "hidden", "--local", "1"], ["submit", "hidden", *job]):
            code, err = told(*words)
            self.assertEqual(code, 75, err)
        for verb in (["run"], ["run", "--dry-run"], ["validate"], ["submit", *job], ["status"], ["best"], ["stop"]):
            code, err = told(verb[0], "hidden/tiny.toml", *verb[1:])
            self.assertIn("'hidden/tiny.toml'", err)
            self.assertIn("Permission denied", err)
            self.assertNotIn("filesystem error", err)
            self.assertEqual(code, 2 if verb[0] in ("run", "validate", "submit") else 1, err)

    def test_a_job_that_is_too_short_is_told_the_least_time(self):
        self.write()
        site = self.cwd / "site.toml"
        site.write_text("")
        said = lambda time: self.ranktune("submit", "tiny.toml", "--print", "--time", time, code=2, RANKTUNE_SITE=str(site))[1]
        for time in ("3m", "30s", "239s"):
            self.assertIn(f"--time {time} is too short: 4m is the least. The last 2m of a job are for checkpoints, and training gets at "
                          "least as long (exit 2)", said(time))
        self.ranktune("submit", "tiny.toml", "--print", "--time", "4m", RANKTUNE_SITE=str(site))
        site.write_text('[slurm]\nlead_time = "10m"\n')
        self.assertIn(f"--time 4m is too short: 20m is the least. The last 10m of a job are for checkpoints ({site}:2), and training gets",
                      said("4m"))


class Algorithms(Case):
    def test_with_another_searcher_and_scheduler(self):
        self.ranktune("init", "mine", "--searcher", "sobol", "--scheduler", "median")
        text = (self.cwd / "mine.toml").read_text()
        self.assertIn('[searcher]\ntype = "sobol"\n', text)
        self.assertIn("# scramble = true\n", text)
        self.assertIn('[scheduler]\ntype = "median"\n', text)
        self.assertIn("# min_samples = 3\n", text)
        plan, _ = self.ranktune("validate", "mine.toml")
        self.assertIn("median stopping", plan)
        self.ranktune("init", "theirs", "--template", "program", "--scheduler", "fifo")
        self.assertNotIn("asha", (self.cwd / "theirs.toml").read_text())
        self.assertIn("did you mean 'sobol'?", self.ranktune("init", "x", "--searcher", "sobl", code=2)[1])
        self.assertIn("needs a finite space", " ".join(self.ranktune("init", "x", "--searcher", "grid", code=2)[1].split()))
        self.assertIn("needs a number for every parameter", " ".join(self.ranktune("init", "x", "--searcher", "cmaes", code=2)[1].split()))
        self.assertFalse((self.cwd / "x.toml").exists())

    def test_the_algorithms_and_their_options(self):
        text, _ = self.ranktune("algorithms")
        for begin in ('[searcher] type = "auto"  (the default)', '[scheduler] type = "asha"', "  eta: number > 1"):
            self.assertIn("\n" + begin, "\n" + text)
        page, _ = self.ranktune("algorithms", "--markdown")
        self.assertEqual(page, (SOURCES / "docs/reference/generated/algorithms.md").read_text())


class Here(Case):
    """In the directory of a study, that is the study of every verb."""

    def test_verbs_without_a_study_mean_the_one_that_they_stand_in(self):
        self.write(text=TINY.replace("asha", "fifo"))  # so that each trial finishes
        self.run_tiny("-q")
        outside, self.cwd = self.cwd, self.cwd / "tiny"
        best = self.ranktune("best", "--json")[0]
        self.assertEqual(best, self.ranktune("best", ".", "--json")[0])
        self.assertIn("#2: finished", in_one_line(self.ranktune("explain", "2")[0]))
        self.assertIn("trial #2: finished", self.ranktune("logs", "2")[0])
        self.assertEqual(self.ranktune("status", "-s", "trial")[0], self.ranktune("status", ".", "-s", "trial")[0])
        self.assertIn("{", self.ranktune("export", "-f", "json")[0])
        self.assertIn("finished", self.ranktune("run", "-q")[0] + self.ranktune("status")[0])
        # What exists is meant.
        self.assertEqual(best, self.ranktune("best", "../tiny", "--json")[0])
        self.cwd = outside
        self.assertIn("STUDY", self.ranktune("best", code=2)[1])

    def test_logs_without_a_trial_are_those_of_all(self):
        self.write("shell.toml", COMMAND.format(command="echo said $RANKTUNE_TRIAL; echo score 1", more="shell = true\nreport = 'score (.)'"))
        self.ranktune("run", "shell.toml", "--local", "2", "-q")
        out, _ = self.ranktune("logs", "tiny")
        for trial in range(3):
            self.assertIn(f"said {trial}", out)
        self.assertEqual(out, self.ranktune("logs", "tiny", "--follow")[0])  # it has ended
        one = self.ranktune("logs", "tiny", "1")[0]
        self.assertIn("said 1", one)
        self.assertNotIn("said 2", one)


class Printed(Case):
    """Programs that know nothing of ranktune."""

    def test_the_example_that_prints_is_tuned_to_its_optimum(self):
        self.ranktune("init", "mine", "--template", "printed")
        out, _ = self.ranktune("run", "mine.toml", "--local", "2", "-q")
        best = json.loads(self.ranktune("best", "mine", "--json")[0])["best"]
        self.assertLess(best["value"], 0.01, out)

    def test_it_is_written_for_any_scheduler_that_needs_no_checkpoints(self):
        for scheduler in ("asha", "hyperband", "topk", "median", "fifo"):
            self.ranktune("init", scheduler, "--template", "printed", "--scheduler", scheduler, "--searcher", "cmaes")
            self.ranktune("validate", f"{scheduler}.toml")
        err = self.ranktune("init", "p", "--template", "printed", "--scheduler", "pbt", code=2)[1]
        self.assertIn("goes on from checkpoints, and a program that prints has none", in_one_line(err))

    def test_a_value_that_is_no_number_counts_as_a_result(self):
        program = "echo score: 2.5; echo score: nan; echo score: -inf"
        text = COMMAND.format(command=program, more="shell = true\nreport = 'score: ([-+.0-9a-zA-Z]+)'")
        self.write("p.toml", text.replace("max_iterations = 1", "max_iterations = 3") + '[scheduler]\ntype = "fifo"\n')
        self.ranktune("run", "p.toml", "--local", "2", "-q")
        reports = [report["iteration"] for report in self.exported("tiny")["reports"] if report["trial"] == 0]
        self.assertEqual(reports, [1, 2, 3])

    def test_results_that_a_program_prints_or_ends_with(self):
        for command, more, value in (("echo the result is 7.5", "result = 'last-number'", 7.5),
                                     ("exit 3", "result = 'exit-code'", 3.0),
                                     ("echo score=4.25 is the best", "report = 'score=(\\S+)'", 4.25)):
            self.write("p.toml", COMMAND.format(command=command, more="shell = true\n" + more))
            self.ranktune("run", "p.toml", "--local", "2", "-q", "--fresh")
            best = json.loads(self.ranktune("best", "tiny", "--json")[0])["best"]
            self.assertEqual(best["value"], value)

    def test_a_program_that_says_nothing_is_told_how(self):
        self.write("p.toml", COMMAND.format(command="echo accuracy 0.5", more="shell = true"))
        out = self.ranktune("run", "p.toml", "--local", "2", code=4)[0]
        self.assertIn("report = 'score: ([-+.0-9a-zA-Z]+)'", in_one_line(out))
        self.assertIn("accuracy 0.5", out)

    def test_a_study_that_has_done_enough_ends_and_goes_on_with_another_limit(self):
        text = COMMAND.format(command="echo score $RANKTUNE_TRIAL", more="shell = true\nreport = 'score (.)'")
        self.write("p.toml", text.replace("num_trials = 3", "num_trials = 9") + "[stop.study]\ntarget = 2\n")
        out, _ = self.ranktune("run", "p.toml", "--local", "2")
        self.assertIn("the target is reached", in_one_line(out))
        made = len(self.exported("tiny")["trials"])
        self.assertLess(made, 9)
        self.assertIn("the target is reached", in_one_line(self.ranktune("status", "tiny")[0]))
        out, _ = self.ranktune("run", "p.toml", "--local", "2", "stop.study.target=6")
        self.assertIn("the target is reached", in_one_line(out))
        self.assertGreater(len(self.exported("tiny")["trials"]), made)


FUNCTION = """[study]
name = "tiny"
metric = "score"
mode = "max"
num_trials = 12
max_iterations = 3
[trainable]
python = "train.py:train"
[space]
x = "uniform(0, 1)"
"""


class Functions(Case):
    """Python functions as trials."""

    def setUp(self):
        super().setUp()
        self.write("f.toml", FUNCTION)
        self.write("train.py", "import os, ranktune\nprint('imported by', os.getpid())\ndef train(config):\n"
                               "    for i in range(3):\n        ranktune.report(score=config.x * (i + 1))\n")

    def test_a_function_is_tuned_and_its_file_is_imported_once_on_each_worker(self):
        self.ranktune("run", "f.toml", "--local", "2", "-q")
        best = json.loads(self.ranktune("best", "tiny", "--json")[0])["best"]
        self.assertAlmostEqual(best["value"], 3 * best["configuration"]["x"])
        self.assertEqual(len(self.exported("tiny")["trials"]), 12)
        self.assertEqual(len(set(re.findall(r"imported by (\d+)", self.ranktune("logs", "tiny")[0]))), 2)
        self.assertIn("train.py:train(x=", self.ranktune("run", "f.toml", "--dry-run", "-o", "other")[0])

    def test_what_is_not_there_is_told_before_anything_starts(self):
        for python, words in (("nothing.py:train", "there is no file '"), ("train.py:main", "has no function 'main'"),
                              ("train.py", "needs a file and one of its functions"), ("train:train", "needs a file and one of")):
            self.write("g.toml", FUNCTION.replace("train.py:train", python))
            self.assertIn(words, in_one_line(self.ranktune("run", "g.toml", code=2)[1]))
        self.write("g.toml", FUNCTION.replace('train"', 'train"\ninterpreter = "/no/python"'))
        self.assertIn("there is no Python '/no/python'", in_one_line(self.ranktune("validate", "g.toml", code=2)[1]))
        self.write("g.toml", FUNCTION.replace('train"', 'train"\nshell = true'))
        self.assertIn("does not go with python", in_one_line(self.ranktune("validate", "g.toml", code=2)[1]))

    def test_a_function_that_fails_says_where(self):
        self.write("train.py", "def train(config):\n    raise ValueError('no data')\n")
        out = in_one_line(self.ranktune("run", "f.toml", "--local", "2", code=4)[0])
        self.assertIn("at iteration 1: ValueError: no data (train.py:2)", out)


class Start(Case):
    def test_init_names_what_it_made(self):
        for kind in ("digits", "program", "printed"):
            self.ranktune("init", f"my-{kind}", "--template", kind)
            text = (self.cwd / f"my-{kind}.toml").read_text()
            self.assertIn(f'name = "my-{kind}" ', text)
            self.assertIn(f"# the study directory is ./my-{kind} unless -o says otherwise\n", text)
            self.assertNotIn(f"./{kind}", text)
            comments = [line.index("#") for line in text.splitlines() if re.match(r"(name|metric) = ", line)]
            self.assertEqual(comments[0], comments[1], text)
        self.ranktune("init", "digits")
        ours = (SOURCES / "jobs/digits/digits.toml").read_text().replace("docs/", f"{SOURCES.resolve()}/docs/")  # as installed
        self.assertEqual((self.cwd / "digits.toml").read_text(), ours)

    def test_all_lines_of_the_readme_work_one_after_the_other(self):
        """In one fresh directory, with a smaller study of the same form."""
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("its study needs two hardware threads")
        blocks = re.findall(r"(?ms)^```(\w*)\n(.*?)^```\n", (SOURCES / "README.md").read_text())
        lines = [line for kind, block in blocks for line in block.splitlines() if not kind and line.startswith("ranktune ")]
        self.assertGreater(len(lines), 12, lines)
        self.ranktune("init", "digits")
        text = (self.cwd / "digits.toml").read_text()
        self.write("digits.toml", text.replace("num_trials = 60", "num_trials = 4").replace("max_iterations = 27", "max_iterations = 2"))
        self.assertNotEqual((self.cwd / "digits.toml").read_text(), text)
        for line in lines:
            words = shlex.split(line.replace("num_trials=120", "num_trials=6"), comments=True)[1:]
            into = words.index(">") if ">" in words else len(words)
            nobody = words[0] == "stop"  # there is nothing to end between two lines
            out, err = self.ranktune(*words[:into], code=2 if nobody else 0)
            self.assertFalse("nothing was started" in out and "--dry-run" not in words and words != ["run", "digits.toml"], line + out)
            self.assertIn("nothing runs in" if nobody else "", err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
