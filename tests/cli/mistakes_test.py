#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mistakes of the first hour, and what the program says of them: mistakes_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import os
import subprocess
import unittest

from cli_test import PROGRAM, TIMEOUT, TINY, Case, environment, sys

NOBODY = 65534


class Mistakes(Case):
    def setUp(self):
        super().setUp()
        self.write()

    def said(self, *arguments, **changes):
        """The one message of a command that is refused."""
        return self.ranktune(*arguments, code=2, **changes)[1]

    def test_options_of_launchers_and_other_tools(self):
        for words in (["-n", "4"], ["-np", "4"], ["--np=4"], ["-j4"], ["--workers", "4"], ["--num-workers=4"]):
            err = self.said("run", "tiny.toml", *words)
            self.assertRegex(err, r"unknown option '-\S+'; the number of workers on this machine is --local N")
        self.assertIn("resources.gpus=N", self.said("run", "tiny.toml", "--gpus", "2"))
        self.assertIn("the study file stands alone: ranktune run FILE", self.said("run", "--config", "tiny.toml"))
        self.assertIn("the same command goes on", self.said("run", "tiny.toml", "--resume"))
        self.assertIn("--fresh begins again", self.said("run", "tiny.toml", "--force"))
        for words in (["--num_trials", "5"], ["--num-trials=5"], ["--study.num_trials=5"]):
            self.assertIn("keys of the study file stand without dashes: study.num_trials=...", self.said("run", "tiny.toml", *words))
        self.assertIn("unknown option '-x'", self.said("best", "tiny", "-x"))
        self.assertIn("a study is run by `ranktune run tiny.toml`", self.said("tiny.toml"))

    def test_files_that_are_no_study_files(self):
        (self.cwd / "train.py").write_text("import ranktune\nranktune.report(loss=1)\n")
        (self.cwd / "study.yaml").write_text("study:\n  name: s\n")
        for verb in ("run", "validate"):
            self.assertIn('1:1  not valid TOML: this is Python; a study file is TOML and names the program under [trainable], as in '
                          'command = "python3 train.py {args}"', self.said(verb, "train.py"))
            self.assertIn("this is YAML; a study file is TOML", self.said(verb, "study.yaml"))
        self.write("open.toml", TINY.replace('"tiny"', '"tiny'))
        self.assertIn('2:8  not valid TOML: the quote " is not closed in this line', self.said("validate", "open.toml"))

    def test_other_names_for_the_command(self):
        for key in ("cmd", "script", "comand", "entrypoint"):
            self.write("other.toml", TINY.replace('builtin = "curve"', f'{key} = "python3 train.py"'))
            err = self.said("validate", "other.toml")
            self.assertIn(f'9:1  trainable.{key}: unknown key; a program is named by command, as in command = "python3 train.py {{args}}"', err)
            self.assertIn("1 mistake in ", err)
        self.write("other.toml", TINY.replace('builtin = "curve"', 'command = ["python3", "train.py"]'))
        self.assertIn('needs one string, as in "python3 train.py {args}", not a list of words', self.said("validate", "other.toml"))

    def test_keys_that_stand_elsewhere(self):
        for line, words in (('searcher = "tpe"', "study.searcher is given as type under [searcher]"),
                            ("workers = 4", "study.workers is given on the command line: --local N"),
                            ('directory = "out"', "study.directory is given on the command line: -o DIR")):
            self.write("other.toml", TINY.replace("seed = 1", line))
            self.assertIn(words, self.said("validate", "other.toml"))
        self.write("other.toml", TINY.replace('type = "asha"', 'name = "asha"'))
        self.assertIn("scheduler.name is given as type under [scheduler]", self.said("validate", "other.toml"))

    def test_paths_that_are_not_there(self):
        self.assertIn("cannot read the study file 'tinny.toml'; did you mean 'tiny.toml'?", self.said("run", "tinny.toml"))
        self.assertIn("did you mean 'tiny.toml'?", self.said("run", "tiny"))
        self.assertIn("there is no directory 'nosuch/deep'", self.said("run", "nosuch/deep/tiny.toml"))
        self.assertIn("there is no directory 'nosuch/'", self.said("run", "nosuch/"))
        for verb in ("status", "best", "explain"):
            self.assertIn("there is no directory 'nosuch'; give the directory that `ranktune run` made", self.said(verb, "nosuch"))
        self.assertIn("`ranktune init NAME` writes one", self.said("run", "other.study"))

    def test_a_source_that_a_mixture_would_never_read_is_refused_before_the_start(self):
        for name in ("web", "code"):
            self.write(f"{name}.csv", "x,y\n1,2\n")
        for weight, place, refused in ((0.0005, 0, True), (0.0005, 5000, True), (0.001, 0, False)):
            self.write("mixed.toml", TINY + f'[data]\nweb = "web.csv"\ncode = "code.csv"\n'
                       f'all = [{{ source = "web" }}, {{ source = "code", weight = {weight}, from = {place} }}]\n')
            if not refused:
                self.ranktune("validate", "mixed.toml")
                continue
            self.assertRegex(self.said("validate", "mixed.toml"), r"\d+:\d+ +data.all: source 2 of the mixture would get less than 1 of 1,000 samples: "
                             "raise its weight, or leave it out")

    def test_a_program_that_is_not_on_path_is_named_without_the_path(self):
        self.write("lost.toml", TINY.replace('builtin = "curve"', 'command = "nosuch {args}"'))
        err = self.said("run", "lost.toml", PATH="/nowhere:" + ":".join(f"/place/{i}" for i in range(40)))
        self.assertIn("there is no program 'nosuch' on PATH", err)
        self.assertLess(len(err), 300)

    def test_the_program_that_predicts_is_looked_for_as_those_of_trials(self):
        self.write("predicts.toml", TINY + '[predict]\ncommand = "python3 predict.py --weights={checkpoint}"\n')
        self.assertRegex(self.said("validate", "predicts.toml"), r"\d+:\d+ +predict.command: there is no file \S*predict.py")
        self.assertIn("predict.command: there is no file", self.said("run", "predicts.toml"))
        self.ranktune("validate", "predicts.toml", "--elsewhere")
        self.write("predict.py", "")
        self.ranktune("validate", "predicts.toml")

    def test_what_only_a_shell_reads_is_told_so(self):
        for command, words in (("FOO=1 python3 train.py", "in [trainable] env = { FOO = '1' } sets it"),
                               ("A=/x/y python3 train.py", "in [trainable] env = { A = '/x/y' } sets it"),
                               ("cd x", "'cd' is a command of the shell: sh -c '...' starts one, and in [trainable] shell = true")):
            self.write("shell.toml", TINY.replace('builtin = "curve"', f'command = "{command}"'))
            self.assertIn(words, self.said("validate", "shell.toml"))

    def test_paths_that_no_study_can_have_start_nothing(self):
        folder = os.fsencode(self.cwd) + b"/M\xfcller"
        os.mkdir(folder)
        (self.cwd / "fine").mkdir()
        for cwd, words in ((folder, ["validate", "../tiny.toml", "-v"]), (folder, ["run", "tiny.toml"]), (folder, ["validate", "tiny.toml"]),
                           (self.cwd / "fine", ["run", "../tiny.toml", "--local", "1", "-o", folder + b"/s"]),
                           (self.cwd / "fine", ["submit", "../tiny.toml", "--print", "-t", "1:00:00", "-o", folder + b"/s"])):
            if words[1] == "tiny.toml":
                with open(folder + b"/tiny.toml", "w") as file:
                    file.write(TINY)
            done = subprocess.run([PROGRAM, *words], cwd=cwd, env=environment(), timeout=TIMEOUT, stdin=subprocess.DEVNULL, capture_output=True)
            self.assertEqual(done.returncode, 0 if "-v" in words else 2, (words, done.stderr))
            if "-v" not in words:
                self.assertIn(rb"is not UTF-8: '", done.stderr)
                self.assertIn(rb"M\xfcller", done.stderr)
        self.assertEqual(os.listdir(folder), [b"tiny.toml"])
        for directory, why in (("a" * 300, "a name in it has 300 characters, of at most 255"), ("a/" * 2100, "characters, of at most 3596"),
                               ("/proc/x", "'/proc' shows the state of the kernel"), ("/sys/x/y", "'/sys' shows the state of the kernel")):
            for words in (["run", "tiny.toml", "--local", "1"], ["run", "tiny.toml", "--dry-run"], ["simulate", "tiny.toml", "--groups", "2"],
                          ["submit", "tiny.toml", "--print", "-t", "1:00:00"]):
                said = self.said(*words, "-o", directory)
                self.assertIn(why, said)
                self.assertLess(len(said), 600)

    def test_a_name_that_is_too_long_is_a_mistake_of_the_command_line(self):
        for verb in ("status", "best", "compare", "support", "report", "stop", "doctor", "run", "validate"):
            for path in ("a" * 300, "a/" * 2100):
                said = self.said(verb, *[path] * (2 if verb == "compare" else 1))
                self.assertRegex(said, "longer than a path can be|File name too long")
                self.assertLess(len(said), 300)

    def test_a_link_that_leads_nowhere_is_no_misspelt_name(self):
        (self.cwd / "d.toml").symlink_to("gone.toml")
        self.assertIn("cannot read the study file 'd.toml': it is a link that leads nowhere", self.said("run", "d.toml"))

    def test_a_study_with_a_mistake_in_its_earlier_results_is_not_called_right(self):
        self.write("w.csv", "lr\n0.1\n")
        out = self.ranktune("validate", "tiny.toml", 'searcher.type=tpe', 'searcher.warm_start=["w.csv"]', code=2)[0]
        self.assertEqual(out, "")

    def test_no_permission_before_anything_exists_is_a_mistake_of_the_command_line(self):
        if os.geteuid() != 0:
            self.skipTest("needs another user")
        locked = self.cwd / "locked"
        locked.mkdir(mode=0o700)
        self.cwd.chmod(0o755)
        (self.cwd / "tiny.toml").chmod(0o644)

        def as_nobody(*arguments):
            return subprocess.run([PROGRAM, "run", "tiny.toml", "--local", "1", *arguments], cwd=self.cwd, env=environment(HOME="/tmp"),
                                  user=NOBODY, group=NOBODY, extra_groups=[], timeout=TIMEOUT, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True)
        for arguments, place in (([], str(self.cwd)), (["-o", "locked/s"], str(locked)), (["-o", "locked"], str(locked)),
                                 (["-o", "new/s", "--dry-run"], str(self.cwd))):
            done = as_nobody(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"this user may not write to '{place}' (Permission denied); give another directory with -o", done.stderr)
        self.assertEqual(list(locked.iterdir()), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
