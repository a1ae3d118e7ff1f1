#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is made from the program's own tables: the pages in docs/reference/generated, manual pages, completions, the help.

usage: reference_test.py PROGRAM SOURCE_ROOT [TEST...]; RANKTUNE_REWRITE=1 writes the pages anew
"""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
SOURCES = pathlib.Path(sys.argv[2]).resolve()
PAGES = SOURCES / "docs/reference/generated"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
STUDY = '[study]\nname = "s"\nmetric = "score"\nmode = "max"\nnum_trials = 4\nmax_iterations = 27\n'
LR = '[space]\nlr = "quniform(0.01, 0.1, 0.01)"\n'
TABLES = {"study": STUDY, "trainable": '[trainable]\ncommand = "python3 train.py {args}"\n', "space": LR + 'momentum = "quniform(0.1, 0.9, 0.1)"\n'}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ranktune-reference-")
        self.addCleanup(folder.cleanup)
        self.cwd = pathlib.Path(folder.name)

    def run_it(self, *words, code=0, **options):
        done = subprocess.run([str(word) for word in words], cwd=self.cwd, capture_output=True, text=True, timeout=300, **options)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def ranktune(self, *words, code=0):
        return self.run_it(PROGRAM, *words, code=code)

    def verbs(self):
        """Those that the help lists, in its order."""
        return re.findall(r"(?m)^  ([a-z]+) {2,}\S", self.ranktune("--help").split("\nTo get going:")[0].split("\nOptions:\n", 1)[1].split("\n\n", 1)[1])


class Pages(Case):
    def test_the_generated_pages_are_what_the_program_writes(self):
        self.ranktune("reference", "pages", "made")
        if os.environ.get("RANKTUNE_REWRITE"):
            shutil.rmtree(PAGES, ignore_errors=True)
            shutil.copytree(self.cwd / "made", PAGES)
        made = {path.name: path.read_text() for path in (self.cwd / "made").iterdir()}
        self.assertEqual(made, {path.name: path.read_text() for path in PAGES.iterdir()})

    def test_cells_have_at_most_25_words(self):
        for path in PAGES.iterdir():
            for row in re.findall(r"(?m)^\| .*$", FENCE.sub("", path.read_text())):
                for cell in re.split(r"(?<!\\)\|", row.strip("|")):
                    with self.subTest(page=path.name, cell=cell):
                        self.assertLessEqual(len(cell.split()), 25)

    def test_every_snippet_of_a_study_file_is_correct(self):
        """With the tables that it lacks added. Files that it names are made."""
        count = 0
        (self.cwd / "train.py").write_text("")
        (self.cwd / "train.h5").write_text("")
        (self.cwd / "corpus.bin").write_bytes(bytes(4096))
        for name in ("study-keys.md", "algorithms.md", "trainables.md"):
            for kind, text in FENCE.findall((PAGES / name).read_text()):
                if kind != "toml" or "FILE" in text:
                    continue
                tables = dict(TABLES)
                if "builtin" in text:  # which has no other hyper-parameter
                    tables["space"] = LR
                missing = "".join(table for key, table in tables.items() if f"[{key}]" not in text)
                with self.subTest(page=name, text=text):
                    (self.cwd / "s.toml").write_text(missing + text)
                    self.ranktune("validate", "--elsewhere", "s.toml")
                    count += 1
        self.assertGreater(count, 30)

    def test_every_snippet_of_a_simulation_is_correct(self):
        (self.cwd / "s.toml").write_text(STUDY + '[trainable]\nbuiltin = "curve"\n' + LR)
        text = (PAGES / "simulation.md").read_text()
        for option, example in re.findall(r"(?s)\n## `(--\w+)`.*?```toml\n(.*?)```", text):
            with self.subTest(example=example):
                (self.cwd / "part.toml").write_text(example)
                self.ranktune("simulate", "s.toml", "--groups", 2, option, "part.toml", "--fresh")


class Keys(Case):
    def test_keys_are_told_on_a_terminal(self):
        self.assertIn("failure.max_failures: integer >= 0; default 0\n", self.ranktune("keys", "failure"))
        one = self.ranktune("keys", "stop.plateau.std")
        self.assertEqual(one.count("default"), 1, one)
        self.assertIn("[slurm]", self.ranktune("keys"))
        wrong = subprocess.run([PROGRAM, "keys", "falure"], capture_output=True, text=True)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("did you mean 'failure'?", wrong.stderr)


class Help(Case):
    def test_verbs_stand_in_groups_and_lines_have_80_columns(self):
        text = self.ranktune("--help")
        groups = re.findall(r"(?m)^([A-Z][\w ]+):$", text)
        self.assertEqual(groups, ["Options", "Begin", "Run", "Steer", "Look", "Take out", "When something is wrong", "To get going"])
        self.assertGreater(len(self.verbs()), 18)
        for verb in ["", *self.verbs()]:
            own = self.ranktune(*verb.split(), "--help")
            for line in own.splitlines():
                with self.subTest(verb=verb, line=line):
                    self.assertLessEqual(len(line), 80)
            self.assertRegex(own, r"(?m)^(Example|To get going)")


class Manual(Case):
    def setUp(self):
        super().setUp()
        self.ranktune("reference", "man", "man")
        self.pages = sorted((self.cwd / "man").rglob("ranktune*"))

    def test_there_is_a_page_for_every_verb(self):
        names = {path.name for path in self.pages}
        self.assertEqual(names, {"ranktune.1", "ranktune-study.5"} | {f"ranktune-{verb}.1" for verb in self.verbs()})
        study = (self.cwd / "man/man5/ranktune-study.5").read_text()
        self.assertIn(".B max_failures\ninteger >= 0; default 0. Failed attempts", study)

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_the_pages_are_correct_roff(self):
        for path in self.pages:
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", path], capture_output=True, text=True)
            with self.subTest(page=path.name):
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertTrue("NAME" in re.sub(r".\x08", "", done.stdout), path)
        if shutil.which("mandoc"):
            self.run_it("mandoc", "-T", "lint", "-W", "error", *self.pages)

    @unittest.skipUnless(shutil.which("man"), "no man")
    def test_man_finds_and_shows_them(self):
        env = {**os.environ, "MANPATH": str(self.cwd / "man"), "MANWIDTH": "80", "LC_ALL": "C.UTF-8"}
        for words, part in ((["ranktune-run"], "--deterministic"), (["5", "ranktune-study"], "max_failures")):
            done = subprocess.run(["man", "--warnings", *words], env=env, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            if "minimized" not in done.stdout:  # containers replace man by a script
                self.assertIn(part, done.stdout)


class Completions(Case):
    def setUp(self):
        super().setUp()
        self.ranktune("reference", "completions", "made")
        (self.cwd / "digits/journal").mkdir(parents=True)
        (self.cwd / "data").mkdir()
        (self.cwd / "digits.toml").write_text("")

    def offered(self, *words):
        """What bash offers for the last word. Words are split at '=', as readline does."""
        quoted = " ".join(f"'{word}'" for word in ("ranktune", *words))
        script = (f"source made/bash/ranktune; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _ranktune; "
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        return self.run_it("bash", "-c", script).split()

    def test_bash_completes_verbs_options_values_and_studies(self):
        self.assertEqual(self.offered("sta"), ["status"])
        self.assertLessEqual({"run", "init", "--help"}, set(self.offered("")))
        self.assertEqual(self.offered("run", "--det"), ["--deterministic"])
        self.assertEqual(self.offered("run", "--progress", ""), ["auto", "lines", "none", "table"])
        self.assertEqual(self.offered("run", "--progress", "=", "ta"), ["table"])
        self.assertEqual(self.offered("init", "x", "--scheduler", "pb"), ["pbt"])
        self.assertEqual(self.offered("export", "digits", "-f", "t"), ["tensorboard"])
        self.assertEqual(sorted(self.offered("status", "")), ["digits", "digits.toml"])
        self.assertEqual(sorted(self.offered("run", "-o", "somewhere", "dig")), ["digits", "digits.toml"])
        self.assertEqual(self.offered("ls", "dat"), ["data"])
        self.assertEqual(self.offered("run", "digits.toml", "study.num"), ["study.num_trials="])
        self.assertEqual(self.offered("run", "digits.toml", "scheduler.quan"), ["scheduler.quantile="])
        self.assertEqual(self.offered("logs", "digits", "b"), ["best"])

    # What is typed, and what one Tab makes of it.
    TABS = {"ranktune sta": "ranktune status ", "ranktune run --det": "ranktune run --deterministic ", "ranktune run --progress ta": "ranktune run --progress table ",
            "ranktune run --progress=ta": "ranktune run --progress=table ", "ranktune init x --scheduler pb": "ranktune init x --scheduler pbt ",
            "ranktune export digits -f t": "ranktune export digits -f tensorboard ", "ranktune status digits.t": "ranktune status digits.toml ",
            "ranktune ls dat": "ranktune ls data/", "ranktune run digits.toml study.num": "ranktune run digits.toml study.num_trials=",
            "ranktune run digits.toml --set scheduler.quan": "ranktune run digits.toml --set scheduler.quantile=", "ranktune logs digits b": "ranktune logs digits best "}

    @unittest.skipUnless(shutil.which("fish"), "no fish (Debian: fish)")
    def test_fish_completes_the_same(self):
        home = {**os.environ, "HOME": str(self.cwd), "XDG_CONFIG_HOME": str(self.cwd), "XDG_DATA_HOME": str(self.cwd)}
        for typed, wanted in self.TABS.items():
            with self.subTest(typed=typed):
                lines = self.run_it("fish", "--no-config", "-c", f"source made/fish/ranktune.fish; complete -C '{typed}'", env=home).splitlines()
                self.assertIn(wanted.split()[-1], [line.split("\t")[0] for line in lines])

    @unittest.skipUnless(shutil.which("zsh"), "no zsh (Debian: zsh)")
    def test_zsh_completes_the_same(self):
        offered = self.cwd / "offered"
        offered.write_text("")
        (self.cwd / "setup").write_text("PS1=; fpath=($PWD/made/zsh $fpath); autoload -Uz compinit; compinit -u -D\n"
                                        "offer() { zle complete-word; print -r -- \"$BUFFER\" >> offered; BUFFER= }\n"
                                        "zle -N offer; bindkey '^T' offer; print ready >> offered\n")
        main, side = pty.openpty()  # completion works on a terminal only
        shell = subprocess.Popen(["zsh", "-f", "-i"], cwd=self.cwd, stdin=side, stdout=side, stderr=side, start_new_session=True, env={**os.environ, "TERM": "dumb"})
        os.close(side)

        def wait_for(lines):
            limit = time.monotonic() + 60
            while offered.read_text().count("\n") < lines:
                self.assertLess(time.monotonic(), limit, offered.read_text())
                if select.select([main], [], [], 0.05)[0]:
                    os.read(main, 65536)
        try:
            os.write(main, b"source ./setup\n")
            wait_for(1)
            for count, typed in enumerate(self.TABS):
                os.write(main, typed.encode() + b"\x14")
                wait_for(count + 2)
        finally:
            shell.kill()
            shell.wait()
            os.close(main)
        self.assertEqual(offered.read_text().splitlines()[1:], list(self.TABS.values()))

    def test_the_scripts_are_correct(self):
        self.run_it("bash", "-n", "made/bash/ranktune")
        for shell, script in (("zsh", "made/zsh/_ranktune"), ("fish", "made/fish/ranktune.fish")):
            text = (self.cwd / script).read_text()
            for verb in self.verbs():
                self.assertRegex(text, rf"\b{verb}\b")
            if shutil.which(shell):
                self.run_it(shell, "-n", script)
        if shutil.which("shellcheck"):
            self.run_it("shellcheck", "-s", "bash", "-S", "warning", "-e", "SC2034", "made/bash/ranktune")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
