#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the program as a user does, each test in a directory of its own: cli_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import csv
import fcntl
import io
import json
import os
import pathlib
import pty
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
SOURCES = pathlib.Path(sys.argv[2])
TIMEOUT = 300  # a guard against waiting for ever, also on a machine with ten times as much to do

TINY = """[study]
name = "tiny"
metric = "score"
mode = "max"
num_trials = 6
max_iterations = 3
seed = 1
[trainable]
builtin = "curve"
[space]
lr = "loguniform(1e-3, 1.0)"
[scheduler]
type = "asha"
"""


def optuna_journal(optuna, path):
    """Optuna's storage in this file, in versions from 3.1 on."""
    backend = getattr(getattr(optuna.storages, "journal", None), "JournalFileBackend", None) or optuna.storages.JournalFileStorage
    return optuna.storages.JournalStorage(backend(str(path)))


def environment(**changes):
    """The environment without variables of the caller's terminal, launcher or job."""
    unwanted = ("SLURM_", "OMPI_", "PMIX_", "PMI_", "RANKTUNE_", "LC_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
    for name in ("NO_COLOR", "COLUMNS", "LANG"):
        env.pop(name, None)
    env.update({"TERM": "xterm", "LANG": "C.UTF-8"})
    env.update(changes)
    return env


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="ranktune-cli-")
        self.cwd = pathlib.Path(self.directory.name)
        self.addCleanup(self.directory.cleanup)

    def ranktune(self, *arguments, code=0, **changes):
        """Runs the program; checks its exit code; returns (standard output, standard error)."""
        done = subprocess.run([PROGRAM, *arguments], cwd=self.cwd, env=environment(**changes), timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        if code == 2:  # a single message with the exit code
            self.assertEqual(done.stderr.count("ranktune: "), 1, done.stderr)
            self.assertIn("(exit 2)", done.stderr.splitlines()[0])
        return done.stdout, done.stderr

    def exported(self, directory):
        """The output of `export --format json`."""
        return json.loads(self.ranktune("export", directory, "--format", "json")[0])

    def write(self, name="tiny.toml", text=TINY):
        (self.cwd / name).write_text(text)

    def run_tiny(self, *arguments, **options):
        if not (self.cwd / "tiny.toml").exists():
            self.write()
        return self.ranktune("run", "tiny.toml", "--local", "2", *arguments, **options)

    def outcome(self, directory="tiny"):
        lines = (self.cwd / directory / "outcome").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def on_a_terminal(self, *arguments, columns=80, code=0, **changes):
        """Runs the program on a pseudo-terminal; returns its output."""
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([PROGRAM, *arguments], cwd=self.cwd, env=environment(**changes), stdout=child,
                                   stderr=child, stdin=subprocess.DEVNULL)
        os.close(child)
        shown = b""
        while True:
            try:
                part = os.read(parent, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        os.close(parent)
        self.assertEqual(process.wait(TIMEOUT), code, shown)
        return shown.decode()


class Help(Case):
    def test_version_and_help(self):
        self.assertRegex(self.ranktune("--version")[0], r"^ranktune \d+\.\d+\.\d+ \([0-9a-z]+\)\n$")
        text, _ = self.ranktune("--help")
        verbs = ["run", "ls", "compare", "supervise", "stop", "replay", "init", "validate", "status", "best", "logs", "export", "checkpoint",
                 "algorithms", "simulate", "report", "explain", "serve", "pause", "resume", "cancel", "add", "set"]
        for verb in verbs:
            self.assertRegex(text, rf"(?m)^  {verb} ")
            own, _ = self.ranktune(verb, "--help")
            self.assertIn(f"ranktune {verb} ", own)
        self.assertIn("75 stopped early, resumable", text)
        self.assertIn("75 stopped early, resumable", self.ranktune("run", "--help")[0])
        self.assertNotIn("To get going", self.ranktune("best", "--help")[0])

    def test_unknown_words_are_answered_with_the_nearest_one(self):
        self.assertIn("unknown verb 'rnu'; did you mean 'run'?", self.ranktune("rnu", code=2)[1])
        self.assertIn("a verb is needed: init, ", self.ranktune(code=2)[1])
        self.write()
        self.assertIn("unknown value 'tabel'; did you mean 'table'?",
                      self.ranktune("run", "tiny.toml", "--progress", "tabel", code=2)[1])
        self.assertIn("needs a number of workers, 1 at least, not '0'",
                      self.ranktune("run", "tiny.toml", "--local", "0", code=2)[1])
        self.assertIn("unknown option '--fast'", self.ranktune("run", "tiny.toml", "--fast", code=2)[1])
        self.assertIn("unknown option '--foo'", self.ranktune("--foo", code=2)[1])
        self.assertIn("--all is for text", self.ranktune("status", "tiny", "-f", "json", "-a", code=2)[1])
        self.assertIn("--table is for csv", self.ranktune("export", "tiny", "-f", "json", "--table", "trials", code=2)[1])
        self.assertIn("(csv, json, optuna, tensorboard)", self.ranktune("export", "tiny", "-f", "xml", code=2)[1])
        self.assertIn("needs the number of a trial, best, before, or after, not 'x'", self.ranktune("logs", "tiny", "x", code=2)[1])


class Init(Case):
    def test_init_writes_a_study_that_is_correct(self):
        text, _ = self.ranktune("init", "mine")
        self.assertIn("wrote     mine.toml", text)
        self.assertIn('name = "mine"', (self.cwd / "mine.toml").read_text())
        self.assertEqual((self.cwd / "digits.h5").read_bytes(), (SOURCES / "jobs/digits/digits.h5").read_bytes())
        self.assertIn("no mistakes", self.ranktune("validate", "mine.toml")[0])

    def test_init_writes_a_program_and_its_study(self):
        text, _ = self.ranktune("init", "mine", "--template", "program")
        self.assertIn("wrote     mine.toml\nwrote     train.py\nwrote     ranktune.py\nnext ", text)
        self.assertIn('name = "mine"', (self.cwd / "mine.toml").read_text())
        self.assertEqual((self.cwd / "ranktune.py").read_bytes(), (SOURCES / "tools/python/ranktune.py").read_bytes())
        self.assertIn("no mistakes", self.ranktune("validate", "mine.toml")[0])
        done = subprocess.run([sys.executable, "train.py", "--epochs=3"], cwd=self.cwd, env=environment(), timeout=TIMEOUT,
                              check=True, capture_output=True, text=True)
        self.assertEqual(done.stdout.count("iteration "), 3)
        self.assertIn("kept      train.py", self.ranktune("init", "other", "--template", "program")[0])

    def test_init_never_overwrites(self):
        self.write("mine.toml", "precious")
        self.write("digits.h5", "data of mine")
        self.assertIn("'mine.toml' exists already", self.ranktune("init", "mine", code=2)[1])
        self.assertEqual((self.cwd / "mine.toml").read_text(), "precious")
        self.assertIn("kept      digits.h5", self.ranktune("init", "other")[0])
        self.assertEqual((self.cwd / "digits.h5").read_text(), "data of mine")

    def test_init_refuses_names_that_are_none(self):
        for name in ("../mine", ".hidden", "a b", ""):
            self.ranktune("init", name, code=2)
        self.assertEqual(list(self.cwd.iterdir()), [])


class Validate(Case):
    def test_all_mistakes_come_together(self):
        golden = SOURCES / "tests/study/golden"
        self.ranktune("init", "digits")
        self.write("digits.toml", (golden / "three_mistakes.toml").read_text())
        first, rest = (golden / "three_mistakes.txt").read_text().split("\n", 1)
        for verb in (["validate"], ["run", "--local", "2"], ["run", "--dry-run"]):
            out, err = self.ranktune(verb[0], "digits.toml", *verb[1:], code=2)
            self.assertEqual(err, f"ranktune: {first} (exit 2)\n{rest}")
            self.assertEqual(out, "")
        self.assertEqual(sorted(p.name for p in self.cwd.iterdir()), ["digits.h5", "digits.toml"])

    def test_a_metric_that_is_not_reported(self):
        self.write(text=TINY.replace('"score"', '"scroe"'))
        _, err = self.ranktune("run", "tiny.toml", "--local", "2", code=2)
        self.assertIn("did you mean 'score'?", err)

    def test_a_data_file_that_is_not_there(self):
        self.ranktune("init", "digits")
        (self.cwd / "digits.h5").unlink()
        for verb in (["validate", "digits.toml"], ["run", "digits.toml", "--local", "2"]):
            _, err = self.ranktune(*verb, code=2)
            self.assertRegex(err, rf'\n  \d+:\d+ +trainable.data: there is no file "{self.cwd.resolve()}/digits.h5"')
        self.assertFalse((self.cwd / "digits").exists())

    def test_a_data_file_that_is_none(self):
        self.ranktune("init", "digits")
        (self.cwd / "digits.h5").write_bytes(b"not HDF5")
        _, err = self.ranktune("validate", "digits.toml", code=2)
        self.assertRegex(err, r"\d+:\d+ +trainable.data: dataset file '.*digits.h5' cannot be opened as HDF5")

    def test_overrides_count_in_their_order_whatever_their_form(self):
        self.write()
        for words, seed in ((["--set", "study.seed=3", "tiny.toml", "study.seed=4"], 4),
                            (["tiny.toml", "study.seed=4", "--set", "study.seed=3"], 3)):
            out, _ = self.ranktune("run", "--dry-run", *words)
            self.assertRegex(out, rf"(?m)^seed += +{seed}$")

    def test_a_dry_run_refuses_what_a_run_refuses(self):
        self.write()
        self.assertIn("a trial may ask for 3 ranks",
                      self.ranktune("run", "tiny.toml", "--dry-run", "--local", "2", "resources.ranks=3", code=2)[1])
        self.assertIn("--fresh", self.ranktune("run", "tiny.toml", "--dry-run", "--fresh", code=2)[1])

    def test_one_voice_under_a_launcher(self):
        self.write()
        for rank in ("0", "1"):
            launched = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": rank}
            out, _ = self.ranktune("run", "tiny.toml", "--dry-run", **launched)
            self.assertEqual(bool(out), rank == "0")
            done = subprocess.run([PROGRAM, "run", "tiny.toml", "--lcoal", "2"], cwd=self.cwd, env=environment(**launched),
                                  timeout=TIMEOUT, capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertEqual("unknown option '--lcoal'; did you mean '--local'?" in done.stderr, rank == "0", done.stderr)
            self.assertEqual(bool(done.stderr), rank == "0")

    def test_a_study_file_that_is_not_there(self):
        self.write()
        self.assertIn("did you mean 'tiny.toml'?", self.ranktune("validate", "tiny", code=2)[1])
        self.assertIn("cannot read the study file", self.ranktune("validate", "nothing.toml", code=2)[1])


class DryRun(Case):
    def test_a_program_is_shown_by_a_dry_run_and_runs_as_a_trial(self):
        (self.cwd / "score.sh").write_text('echo "scored $1"; echo "{\\"report\\": {\\"score\\": $1}}" >&"$RANKTUNE_FD"\n')
        self.write("program.toml", """
[study]
name = "program"
metric = "score"
mode = "max"
num_trials = 3
max_iterations = 1
[trainable]
command = "sh score.sh {x}"
[space]
x = "grid([0.25, 0.5, 0.75])"
[searcher]
type = "grid"
""")
        out, _ = self.ranktune("run", "program.toml", "--dry-run")
        self.assertIn("runs sh score.sh 0.5", out)
        self.assertIn(f'directory = "{self.cwd}"', out)
        out, _ = self.ranktune("run", "program.toml", "--local", "2")
        self.assertIn("3 trials, 3 ok", out)
        log = "".join(path.read_text() for path in (self.cwd / "program" / "logs").glob("workers-*.log"))
        self.assertRegex(log, r"I out rank=[12] trial=2 \| scored 0.75\n")

    def test_what_it_prints_is_a_study_file(self):
        self.write()
        out, err = self.ranktune("run", "tiny.toml", "--dry-run", "--local", "3", "study.num_trials=8", "--set",
                                 "study.max_iterations=27", "--set", "scheduler.finish_top=0")
        self.assertEqual(err, "")
        self.assertTrue(out.startswith("# plan      8 trials"), out)
        self.assertEqual(len(re.findall(r"(?m)^# trial #[012]  lr=0\.\d+$", out)), 3, out)
        self.assertIn("4 ranks: rank 0 is the head, which trains nothing; 3 workers", out)
        self.assertRegex(out, r"rungs 1/3/9/27: about 8/[23]/0/0 trials")
        self.assertIn("no trial can reach 27 iterations", out)
        self.assertEqual([p.name for p in self.cwd.iterdir()], ["tiny.toml"])
        self.write("again.toml", out)
        again, _ = self.ranktune("run", "again.toml", "--dry-run", "--local", "3")
        self.assertEqual(out, again)
        self.assertIn("8 trials", self.ranktune("validate", "again.toml")[0])


class Run(Case):
    def test_a_study_from_start_to_end(self):
        out, err = self.run_tiny()
        self.assertEqual(err, "")
        self.assertRegex(out, r"(?m)^here      mpi\S+ .*-n 3 .*ranktune run tiny\.toml$")
        here = re.search(r"(?m)^here      (.*)$", out).group(1)
        self.same_run(here)
        self.assertRegex(out, r"(?m)^tiny finished in .*: 6 trials, 6 ok, 0 failed +exit 0$")
        self.assertNotIn("\x1b", out)
        self.check_files()
        self.check_views()
        self.check_exports()

    def same_run(self, line):
        """The shown command runs as it is, without environment variables of this program."""
        if shutil.which(line.split()[0]) is None or "mpirun" not in line:
            return
        words = line.replace(" ranktune run ", f" {PROGRAM} run -o typed -q ").split()
        done = subprocess.run(words, cwd=self.cwd, env=environment(), timeout=TIMEOUT, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual(self.outcome("typed")["exit"], "0")
        shutil.rmtree(self.cwd / "typed")

    def check_files(self):
        study = self.cwd / "tiny"
        self.assertEqual((study / "study.toml").read_text(), TINY)
        self.assertIn("no mistakes", self.ranktune("validate", "tiny/resolved.toml")[0])
        self.assertIn("checkpoints at one time: 3 at most of each running trial",
                      self.ranktune("validate", "-v", "tiny/resolved.toml")[0])
        documented = (SOURCES / "docs/reference/files.md").read_text().split("\n## ")[0]
        for path in study.iterdir():
            self.assertIn(f"`{path.name}" + ("/" if path.is_dir() and path.name != "checkpoints" else ""), documented)
        for name in ("journal/000001.h5", "metrics.h5", "status", "logs/start-1.log"):
            self.assertTrue((study / name).is_file(), name)
        facts = json.loads((study / "logs/start-1.env.json").read_text())
        self.assertNotIn("unknown", facts["build"]["type"])
        self.assertRegex((study / "logs/start-1.log").read_text(), r" I start .* nodes=1 ranks=3 groups=2 .*"
                         r" fs=\S+ free=\d+\w+ inodes_free=(\d+|-) deadline=-\n")
        self.assertTrue(list((study / "logs").glob("workers-*.log")))
        for path in study.glob("checkpoints/*/*"):
            self.assertRegex(str(path.relative_to(study)), r"^checkpoints/\d+/\d+-1\.\d+\.h5$")
        outcome = self.outcome()
        self.assertEqual({k: outcome[k] for k in ("exit", "resumable", "progress", "start")},
                         {"exit": "0", "resumable": "false", "progress": "true", "start": "1"})
        self.assertGreaterEqual(int(outcome["reports"]), 10)

    def check_views(self):
        text, _ = self.ranktune("status", "tiny")
        self.assertIn("finished, exit 0", text)
        self.assertEqual(len(re.findall(r"(?m)^ [ *]  #\d ", text)), 6, text)
        status = json.loads(self.ranktune("status", "tiny", "-f", "json")[0])
        self.assertEqual((status["schema"], status["trials"], status["exit_code"]), (1, 6, 0))
        self.assertEqual(sum(status["states"].values()), 6)
        best = json.loads(self.ranktune("best", "tiny", "-f", "json")[0])
        self.assertEqual(best["schema"], 1)
        best = best["best"]
        self.assertTrue((self.cwd / "tiny" / best["checkpoint"]).is_file())
        text, _ = self.ranktune("best", "tiny")
        self.assertIn(f"#{best['trial']}  score {best['value']:.4f} at iteration 3 of 3", text)
        text, _ = self.ranktune("logs", "tiny", f"#{best['trial']}")
        self.assertIn(f"trial #{best['trial']}: finished, iteration 3", text)
        self.assertRegex(text, r"(?m)^ +\S+  attempt 1 started on \S+ \(w\d\), from scratch$")
        self.assertRegex(text, r"(?m)^ +\S+  finished: reached the ceiling of 3 iterations$")
        self.assertIn("its trials are #0 to #5", self.ranktune("logs", "tiny", "6", code=2)[1])
        as_json = json.loads(self.ranktune("logs", "tiny", f"#{best['trial']}", "--json")[0])
        self.assertEqual((as_json["trial"], as_json["message"]), (best["trial"], ""))
        for part in [*as_json["history"], *as_json["lines"]]:
            self.assertIn(part["text"], text)
        self.assertGreater(len(as_json["history"]), 2)
        everything = json.loads(self.ranktune("logs", "tiny", "--format", "json")[0])
        self.assertEqual((everything["schema"], everything["trial"]), (1, None))
        self.assertIn("start-1.log", {line["file"] for line in everything["lines"]})
        self.assertIn("leave out one", self.ranktune("logs", "tiny", "--json", "--follow", code=2)[1])
        self.assertIn("holds no study", self.ranktune("status", ".", code=2)[1])

    def check_exports(self):
        whole = self.exported("tiny")
        self.assertEqual(whole["schema"], 1)
        self.assertEqual([t["id"] for t in whole["trials"]], list(range(6)))
        self.assertEqual(len(whole["reports"]), int(self.outcome()["reports"]))
        self.ranktune("export", "tiny", "--format", "csv", "-o", "trials.csv")
        with open(self.cwd / "trials.csv", newline="") as file:
            trials = list(csv.DictReader(file, strict=True))
        self.assertEqual([float(t["lr"]) for t in trials], [t["configuration"]["lr"] for t in whole["trials"]])
        text, _ = self.ranktune("export", "tiny", "--format", "csv", "--table", "reports")
        reports = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
        self.assertEqual([float(r["score"]) for r in reports], [r["metrics"]["score"] for r in whole["reports"]])
        self.ranktune("export", "tiny", "--format", "csv", "-o", "no/such/folder.csv", code=2)

    def test_quiet_prints_nothing(self):
        self.assertEqual(self.run_tiny("--quiet", "-o", "elsewhere/deep"), ("", ""))
        self.assertEqual(self.outcome("elsewhere/deep")["exit"], "0")
        self.assertFalse((self.cwd / "tiny").exists())

    def test_too_few_workers(self):
        _, err = self.run_tiny("resources.ranks=3", code=2)
        self.assertIn("a trial may ask for 3 ranks", err)
        self.assertIn("--local 3", err)
        self.assertFalse((self.cwd / "tiny").exists())

    def test_all_trials_fail(self):
        out, err = self.run_tiny("trainable.fail_rate=1.0", "trainable.fail_iteration=1", "study.num_trials=20",
                                 code=4)
        self.assertEqual((out + err).count("curve was told to fail at iteration 1"), 1, out + err)
        self.assertIn("exit 4", out)
        self.assertEqual(self.outcome()["exit"], "4")
        # Most of the twenty trials were never created: they are not "more trials", but remaining ones.
        made = json.loads(self.ranktune("status", "tiny", "-f", "json")[0])["trials"]
        self.assertIn(f"{made} of 20 trials, 0 ok, {made} failed", out)
        failing = ["trainable.fail_rate=1.0", "trainable.fail_iteration=1", "study.num_trials=20"]
        out, _ = self.run_tiny(*failing, code=4)
        self.assertIn(f"tiny is finished ({made} of 20 trials, exit 4): nothing was started", out)
        self.assertIn(f"the other {20 - made} were never made", " ".join(out.split()))
        self.assertIn(f"# when it is mended: {made} again, then {20 - made} new", out)
        self.assertEqual(re.findall(r"study\.num_trials=(\d+)", out), ["20", "20"])  # as it was typed
        self.assertEqual(self.run_tiny(*failing, "checkpoint.keep=3", code=4)[1],
                         "not taken over: checkpoint.keep 1 -> 3, because no trial of it has succeeded; it goes on with "
                         "--restart-errored or --resume-errored\n")
        _, err = self.run_tiny(*failing, "-o", "quiet", "--progress", "none", code=4)
        self.assertEqual(err.count("curve was told to fail at iteration 1"), 1, err)
        self.assertIn("  logs      quiet/logs/; of the first one: ranktune logs quiet ", err)

    def test_more_trials_fail_than_are_tolerated(self):
        failing = ["trainable.fail_rate=0.5", "trainable.fail_iteration=2", "scheduler.type=fifo"]
        out, _ = self.run_tiny(*failing, code=3)
        self.assertRegex(out, r"(?m)^failed +#\d.*: .*curve was told to fail at iteration 2")
        self.assertEqual(self.outcome()["exit"], "3")
        self.assertRegex(out, r"(?m)^why       \d of 6 trials failed; failure.tolerate = 0.05 allows 0$")
        self.assertIn("ranktune run tiny --restart-errored", out)
        self.assertRegex(self.outcome()["reason"], r"^\d of 6 trials failed; failure.tolerate = 0.05 allows 0$")
        # The limit may be changed afterwards, and then applies to the study.
        more = [*failing, "failure.tolerate=0.9"]
        out, _ = self.run_tiny(*more)
        self.assertRegex(out, r"(?m)failure.tolerate +0.05 -> 0.9")
        self.assertEqual((self.outcome()["exit"], self.outcome()["reason"]), ("0", "the study is complete"))
        self.assertIn("nothing was started", self.run_tiny(*more)[0])
        self.run_tiny(*failing, code=3)
        self.assertEqual(self.outcome()["exit"], "3")
        _, err = self.run_tiny(*failing, "-o", "quiet", "-q", code=3)
        self.assertRegex(err, r"^ranktune: \d of 6 trials failed; .*; ranktune run quiet --restart-errored +# .* \(exit 3\)\n"
                         r"  failed    #\d.*: .*curve was told to fail at iteration 2\n(            #.*\n)*"
                         r"  logs      quiet/logs/; of the first one: ranktune logs quiet \d\n$")
        self.assertEqual(self.run_tiny(*failing, "-o", "quiet", "-q", code=3)[1], err)  # it was over already
        self.run_tiny(*failing, "failure.tolerate=0.9", "-o", "tolerant", "-q")

    def start_long(self):
        """Starts a long study, and waits until it has reported."""
        self.write()
        process = subprocess.Popen([PROGRAM, "run", "tiny.toml", "--local", "2", "trainable.seconds=0.2",
                                    "study.max_iterations=1000", "scheduler.type=fifo"], cwd=self.cwd,
                                   env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline and process.poll() is None:
            status = subprocess.run([PROGRAM, "status", "tiny", "-f", "json"], cwd=self.cwd, env=environment(),
                                    capture_output=True, text=True, timeout=TIMEOUT)
            if status.returncode == 0 and json.loads(status.stdout)["reports"] > 0:
                break
            time.sleep(0.2)
        return process

    def test_killed_ranks_leave_no_shared_memory(self):
        process = self.start_long()
        descendants = [process.pid]
        for pid in descendants:
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                descendants += map(int, (task / "children").read_text().split())
        launched = pathlib.Path(f"/proc/{descendants[1]}/environ").read_text().split("\0")
        folder = next((v.split("=")[1] for v in launched if v.startswith("OMPI_MCA_btl_vader_backing_directory=")), None)
        if folder:  # Open MPI
            self.assertGreater(len(os.listdir(folder)), 1)
        for pid in descendants[1:]:
            os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=TIMEOUT)
        if folder:
            self.assertFalse(os.path.exists(folder))

    def test_an_interrupted_study_ends_resumable(self):
        process = self.start_long()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 75, out)
        self.assertIn("stopped early, resumable", out)
        self.assertEqual((self.outcome()["exit"], self.outcome()["resumable"]), ("75", "true"))
        self.assertEqual(self.outcome()["reason"], "Ctrl-C")
        self.assertRegex(out, r"(?m)^why       Ctrl-C$")
        self.assertRegex(out, r"(?m)^next      ranktune run tiny +# goes on$")
        text, _ = self.ranktune("status", "tiny")
        self.assertRegex(text, r"^tiny .* stopped, exit 75\n")
        self.assertRegex(text, r"(?m)^stopped, goes on with: ranktune run tiny$")

    def test_commands_to_type_next_go_on_with_the_same_study(self):
        """The shown commands keep options of the command line (-o, overrides)."""
        self.run_tiny("-o", "some where", "study.num_trials=4", "-q")
        out, _ = self.run_tiny("-o", "some where", "study.num_trials=4")
        commands = [shlex.split(line[10:], comments=True) for line in out.splitlines() if "ranktune run" in line]
        self.assertEqual(commands[0], ["ranktune", "run", "some where", "study.num_trials=8"])
        self.assertEqual(commands[1], ["ranktune", "run", "tiny.toml", "study.num_trials=4", "-o", "some where", "--fresh"])
        self.ranktune(*commands[0][1:], "--local", "2", "-q")
        self.assertEqual(json.loads(self.ranktune("status", "some where", "-f", "json")[0])["trials"], 8)
        self.ranktune("run", "some where", "--fresh", "--local", "2", "-q")  # of a directory, that has its study file again
        self.assertTrue((self.cwd / "some where" / "study.toml").is_file())

    def test_what_a_program_prints_does_not_reach_the_terminal_as_it_is(self):
        (self.cwd / "red.sh").write_text('printf "\\033[31mred\\n"; echo "{\\"report\\": {\\"score\\": 1}}" >&"$RANKTUNE_FD"\n')
        self.write("red.toml", """
[study]
name = "red"
metric = "score"
mode = "max"
num_trials = 1
max_iterations = 1
[trainable]
command = "sh red.sh"
[space]
x = [1]
""")
        self.ranktune("run", "red.toml", "--local", "1", "-q")
        self.assertIn("\x1b[31mred", self.ranktune("logs", "red", "0")[0])
        shown = self.on_a_terminal("logs", "red", "0", NO_COLOR="1")
        self.assertIn("\\x1b[31mred", shown)
        self.assertNotIn("\x1b", shown)

    def test_a_study_that_is_interrupted_before_it_began_says_so(self):
        self.write()
        process = subprocess.Popen([PROGRAM, "run", "tiny.toml", "--local", "2", "trainable.seconds=0.2",
                                    "study.max_iterations=1000", "scheduler.type=fifo"], cwd=self.cwd,
                                   env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline and not children.read_text().strip():
            time.sleep(0.01)
        for _ in range(2):  # the second one ends it at once, in any phase
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 75, out)
        self.assertRegex(out, "the same command goes on|resumable")


class Terminal(Case):
    def test_screens_suit_the_terminal(self):
        self.run_tiny("-q")
        for columns in (20, 40, 80):
            text, _ = self.ranktune("status", "tiny", COLUMNS=str(columns))
            self.assertLessEqual(max(map(len, text.splitlines())), columns)
            self.assertEqual(len(re.findall(r"(?m)^ [ *]  #\d", text)), 6)
            for words in (["best", "tiny"], ["validate", "tiny.toml"]):
                text, _ = self.ranktune(*words, COLUMNS=str(columns))
                self.check_width(text, columns)
            self.assertEqual(" ".join(text.split()[:6]), "tiny.toml: no mistakes plan 6 trials")
            text = self.on_a_terminal("logs", "tiny", "0", NO_COLOR="1", columns=columns).replace("\r", "")
            self.check_width("".join(re.findall(r"(?m)^(?!\S+\.log: ).*\n", text)), columns)
        logs = lambda **more: re.findall(r"(?m)^\S+\.log: .*$", self.ranktune("logs", "tiny", "0", **more)[0])
        self.assertEqual(logs(COLUMNS="20"), logs())  # what is in a log stays as it is
        self.assertIn("·", self.ranktune("status", "tiny")[0])
        self.assertTrue(self.ranktune("status", "tiny", LANG="C")[0].isascii())
        self.assertNotIn("\x1b", self.ranktune("status", "tiny")[0])
        self.assertIn("\x1b[32m", self.on_a_terminal("status", "tiny"))
        self.assertNotIn("\x1b", self.on_a_terminal("status", "tiny", NO_COLOR="1"))
        self.assertNotIn("\x1b", self.on_a_terminal("status", "tiny", TERM="dumb"))

    def check_width(self, text, columns):
        """No line is longer, except for a command to copy, a message to search for, and a word that does not fit
        alone."""
        for line in text.splitlines():
            words = line[10:]
            if len(line) > columns and not words.startswith(("ranktune ", "rank 0: ")) and not line.startswith("here "):
                self.assertNotIn(" ", words, text)
                self.assertTrue(columns < 40 or "/" in words, text)

    def test_what_a_run_shows_suits_a_narrow_terminal(self):
        self.write()
        for words, code in (([], 0), (["study.num_trials=8"], 0), (["-o", "failing", "trainable.fail_rate=1.0",
                                                                   "trainable.fail_iteration=1"], 4)):
            for _ in range(2):  # the second time it is finished
                shown = self.on_a_terminal("run", "tiny.toml", "--local", "2", "--progress", "lines", *words, columns=40,
                                           code=code, NO_COLOR="1").replace("\r", "")
                self.check_width(shown, 40)

    def test_the_live_table_follows_the_size_of_the_terminal(self):
        self.write()
        parent, child = pty.openpty()
        size = lambda columns: fcntl.ioctl(parent, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        size(120)
        process = subprocess.Popen([PROGRAM, "run", "tiny.toml", "--local", "2", "trainable.seconds=0.3"], cwd=self.cwd,
                                   env=environment(), stdout=child, stderr=child, stdin=subprocess.DEVNULL)
        os.close(child)
        shown = b""
        resized = None
        while True:
            try:
                shown += os.read(parent, 65536)
            except OSError:
                break
            if resized is None and b" trial  state" in shown:
                size(30)
                resized = len(shown)
        os.close(parent)
        self.assertEqual(process.wait(TIMEOUT), 0, shown)
        tables = re.findall(r"\x1b\[\d+A(.*?)\x1b\[J", shown[resized:].decode(), re.S)
        plain = [re.sub(r"\x1b\[[0-9;]*[a-zA-Z]", "", table) for table in tables]
        widths = [max(map(len, table.split("\r\n"))) for table in plain if " trial  state" in table]
        self.assertLessEqual(min(widths), 30, shown)

    def test_the_live_table_is_drawn_over_and_goes_away(self):
        self.write()
        shown = self.on_a_terminal("run", "tiny.toml", "--local", "2", "trainable.seconds=0.3", columns=60)
        self.assertRegex(shown, r"\x1b\[\d+A")
        self.assertIn(" trial  state", shown)
        end = shown[shown.rindex("\x1b[J"):]
        self.assertIn("tiny finished in", end)
        self.assertNotIn(" trial  state", end)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
