#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong input, and obstacles in the file system, are refused before anything is started: edges_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import unittest

import cli_test
from cli_test import PROGRAM, TIMEOUT, environment, sys

TINY = """[study]
name = "tiny"
metric = "score"
mode = "max"
num_trials = 3
max_iterations = 2
[trainable]
builtin = "curve"
[space]
lr = "loguniform(1e-3, 1.0)"
"""


class Case(cli_test.Case):
    def setUp(self):
        super().setUp()
        self.cwd = self.cwd / "work"  # the folder around it is ours too
        self.cwd.mkdir()
        self.write(text=TINY)

    def ranktune(self, *arguments, code=0, cwd=None, stdout=subprocess.PIPE, **changes):
        """Runs the program; checks its exit code; returns (standard output, standard error)."""
        done = subprocess.run([PROGRAM, *arguments], cwd=cwd or self.cwd, env=environment(**changes), timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done.stdout, done.stderr

    def refused(self, *arguments, **changes):
        _, err = self.ranktune(*arguments, code=2, **changes)
        self.assertIn("(exit 2)", err.splitlines()[0])
        return err

    def slurm_programs(self, **scripts):
        """A folder of fake Slurm programs; `scripts` has their commands."""
        programs = self.cwd / "programs"
        programs.mkdir(exist_ok=True)
        for name in ("sbatch", "srun", "squeue", *scripts):
            (programs / name).write_text("#!/bin/sh\n" + scripts.get(name, "exit 1") + "\n")
            (programs / name).chmod(0o755)
        return programs

    def names(self):
        return sorted(p.name for p in self.cwd.iterdir())


class Directory(Case):
    def test_an_empty_output_is_no_directory(self):
        for verb in (["run", "tiny.toml"], ["run", "--dry-run", "tiny.toml"], ["submit", "tiny.toml", "-t", "1h"],
                     ["export", "tiny", "-f", "json"], ["checkpoint", "tiny", "best"], ["support", "tiny"]):
            self.assertIn("needs a path, not ''; is the variable unset that should hold it?", self.refused(*verb, "-o", ""))
            self.refused(*verb, "--output=")
        self.assertIn("is the variable unset", self.refused("supervise", "--dir", "", "--", "ranktune", "run", "tiny.toml"))
        self.assertEqual(self.names(), ["tiny.toml"])

    def test_what_is_in_the_way_is_named_before_anything_is_started(self):
        (self.cwd / "file").write_text("mine\n")
        (self.cwd / "link").symlink_to("nowhere")
        (self.cwd / "tiny").write_text("mine\n")
        nothing = str(self.cwd / "empty")  # no mpirun there: it is not needed
        for output, said in (("file", "/file' is a file"), ("file/x", "/file' is a file"), ("link", "/link' is a link that leads"),
                             ("link/x", "/link' is a link that leads"), ("/dev/null", "'/dev/null' is no directory")):
            for verb in (["run"], ["run", "--dry-run"]):
                err = self.refused(*verb, "tiny.toml", "-o", output, PATH=nothing)
                self.assertIn(f"'{output}' cannot be the directory of the study: '", err)
                self.assertIn(said, err)
        self.assertIn("/tiny' is a file; move it away, or give another directory with -o", self.refused("run", "tiny.toml"))
        self.assertIn("is a file", self.refused("submit", "tiny.toml", "-t", "1h", "-o", "file/x"))
        self.assertEqual((self.cwd / "file").read_text(), "mine\n")

    def test_fresh_renames_no_folder_that_holds_more_than_a_study(self):
        (self.cwd / "here").mkdir()
        (self.cwd / "here" / "own.toml").write_text(TINY)
        for output in (".", "..", str(self.cwd), str(self.cwd.parent), "here/.."):
            self.assertIn(f"--fresh renames the directory that is there, and '{output}' holds the study file 'tiny.toml', too; ",
                          self.refused("run", "tiny.toml", "--fresh", "-o", output))
        self.assertIn("is where you are working; give the study a directory of its own with -o",
                      self.refused("run", "../tiny.toml", "--fresh", "-o", "../here", cwd=self.cwd / "here"))
        self.assertIn("holds the study file", self.refused("run", "here/own.toml", "--fresh", "-o", "here"))
        self.assertEqual(self.names(), ["here", "tiny.toml"])

    def test_fresh_renames_the_study_that_was_named(self):
        self.ranktune("run", "tiny.toml", "--local", "1", "-q")
        self.ranktune("run", "tiny.toml", "--local", "1", "-q", "--fresh")
        self.ranktune("run", "tiny", "--local", "1", "-q", "--fresh")
        self.assertEqual(self.names(), ["tiny", "tiny.toml", "tiny~1", "tiny~2"])
        self.assertIn("holds the study file", self.refused("run", "tiny/study.toml", "--fresh", "-o", "tiny"))


class Launch(Case):
    """How a run detects its surroundings: fake Slurm programs, and variables."""

    def slurm(self, **changes):
        return {"PATH": str(self.slurm_programs()), **changes}

    def test_a_login_node_starts_nothing_by_itself(self):
        login = self.slurm(SLURM_CONF="/nowhere/slurm.conf")
        err = self.refused("run", "tiny.toml", **login)
        self.assertIn("this looks like a login node (Slurm is here, but this is no job)", err)
        # With --local it goes on to look for mpirun.
        self.assertIn("neither mpirun nor mpiexec is on PATH", self.refused("run", "tiny.toml", "--local", "2", **login))
        self.assertEqual(self.names(), ["programs", "tiny.toml"])

    def test_a_login_node_advises_what_the_dry_run_would_do(self):
        login = self.slurm(SLURM_CONF="/nowhere/slurm.conf")
        out, _ = self.ranktune("run", "tiny.toml", "resources.ranks=3", "--dry-run", **login)
        workers, = re.findall(r"what --local (\d+) would start", " ".join(out.replace("\n#", " ").split()))
        self.assertEqual(int(workers) % 3, 0)
        err = self.refused("run", "tiny.toml", "resources.ranks=3", **login)
        self.assertIn("`ranktune submit tiny.toml resources.ranks=3` makes a job of the study, `ranktune run tiny.toml "
                      f"resources.ranks=3 --local {workers}` runs it here, with {workers} workers, and --dry-run in place of "
                      "--local shows what that would be", err)

    def test_a_login_node_is_known_by_the_settings_beside_its_programs_or_by_its_controller(self):
        if any(os.access(file, os.R_OK) for file in ("/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf",
                                                     "/usr/local/etc/slurm.conf", "/run/slurm/conf/slurm.conf")):
            self.skipTest("this machine belongs to a cluster")
        login, own = "this looks like a login node", "neither mpirun nor mpiexec is on PATH"

        def told(programs):
            return self.refused("run", "tiny.toml", PATH=str(programs))

        # Slurm is installed, but for no cluster: no controller, one that is down, one that does not answer.
        self.assertIn(own, told(self.slurm_programs()))
        for ping in ("exit 1", "echo 'Slurmctld(primary) at head is DOWN'", "echo 'error: no UPS' >&2; exit 1"):
            self.assertIn(own, told(self.slurm_programs(scontrol=ping)))
        self.assertIn(own, told(self.slurm_programs(scontrol=f"exec /bin/sleep {10 * TIMEOUT}")))  # it is not waited for
        # A node without settings of its own.
        self.assertIn(login, told(self.slurm_programs(scontrol='[ "$1" = ping ] && echo "Slurmctld(primary) at head is UP"')))
        # A folder of its own, named by itself or by a link.
        for settings in ("etc/slurm.conf", "etc/slurm/slurm.conf"):
            prefix = self.cwd / "opt" / settings.replace("/", "-")
            (prefix / settings).parent.mkdir(parents=True)
            (prefix / settings).write_text("ClusterName=c\n")
            (prefix / "bin").mkdir()
            (prefix / "bin" / "sbatch").symlink_to(self.slurm_programs() / "srun")
            self.assertIn(login, told(prefix / "bin"))
            links = prefix / "links" / "bin"
            links.mkdir(parents=True)
            (prefix / "bin" / "sbatch").unlink()
            shutil.copy(self.slurm_programs() / "srun", prefix / "bin" / "sbatch")
            (links / "sbatch").symlink_to(prefix / "bin" / "sbatch")
            self.assertIn(login, told(links))

    def test_an_allocation_needs_a_launcher_or_local(self):
        for job in ({"SLURM_JOB_ID": "7"}, {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0",
                                            "SLURM_STEP_NUM_TASKS": "1"}):
            err = self.refused("run", "tiny.toml", **self.slurm(**job))
            self.assertIn("this is a Slurm job, but ranktune was not started by a launcher; try `srun --mpi=pmix ranktune run "
                          "tiny.toml`, `mpirun ranktune run tiny.toml`, or --local N for this node alone", err)
            self.assertIn("neither mpirun nor mpiexec is on PATH",
                          self.refused("run", "tiny.toml", "--local", "2", **self.slurm(**job)))
        self.assertEqual(self.names(), ["programs", "tiny.toml"])


def job(tasks, **changes):
    return {"SLURM_JOB_ID": "7", "SLURM_NTASKS": str(tasks), **changes}


def by_mpirun(processes, rank=0):
    return {"OMPI_COMM_WORLD_SIZE": str(processes), "OMPI_COMM_WORLD_RANK": str(rank)}


class Ranks(Case):
    """The number of ranks, and trials that ask for more."""

    def setUp(self):
        super().setUp()
        self.write("wide.toml", TINY + "[resources]\nranks = 5\n")
        self.write("wrong.toml", TINY.replace("1e-3", "2.0") + "[resources]\nranks = 5\n")

    def test_too_few_are_told_with_their_place_and_the_other_mistakes(self):
        for verb in (["run"], ["run", "--dry-run"]):
            err = self.refused(*verb, "wrong.toml", "--local", "2")
            self.assertIn("2 mistakes in wrong.toml, nothing was started (exit 2)\n  10:6  space.lr: ", err)
            self.assertIn("\n  12:9  resources.ranks: a trial may ask for 5 ranks, which is more than the 2 workers here (one rank "
                          "more is the head); let it ask for fewer, or use --local 5\n", err)
            self.assertIn("1 mistake in wide.toml, ", self.refused(*verb, "wide.toml", "--local", "2"))
        self.assertIn("  -  resources.ranks: a trial may ask for 3 ranks",
                      self.refused("run", "tiny.toml", "--local", "1", "resources.ranks=3"))

    def test_too_few_are_told_once_under_a_launcher(self):
        mpirun = [shutil.which("mpirun.openmpi") or "mpirun", "--oversubscribe", "--bind-to", "none", "--allow-run-as-root"]
        if shutil.which(mpirun[0]) is None:
            self.skipTest("no mpirun")
        for options, said in (([], "12:9  resources.ranks: a trial may ask for 5 ranks, which is more than the 2 workers here"),
                              (["--dry-run"], "let it ask for fewer, or start at least 6 ranks")):
            done = subprocess.run([*mpirun, "-n", "3", PROGRAM, "run", "wrong.toml", *options], cwd=self.cwd, timeout=TIMEOUT,
                                  env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.assertEqual(done.stderr.count("2 mistakes in wrong.toml"), 1, done.stderr)
            self.assertIn(said, done.stderr)
        done = subprocess.run([*mpirun, "-n", "1", PROGRAM, "run", "tiny.toml"], cwd=self.cwd, env=environment(), timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertIn("ranktune: a study needs at least 2 ranks, and the launcher has started 1: rank 0 is the head", done.stderr)

    def test_a_dry_run_shows_the_ranks_of_the_launcher(self):
        out, _ = self.ranktune("run", "wide.toml", "--dry-run", **by_mpirun(6))
        self.assertIn("# layout    6 ranks: rank 0 is the head, which trains nothing; 5 workers\n"
                      "#           one for each process that the launcher has started\n#           group 1: ranks 1 to 5\n", out)
        self.assertIn("12:9  resources.ranks: a trial may ask for 5 ranks, which is more than the 4 workers here",
                      self.refused("run", "wide.toml", "--dry-run", **by_mpirun(5)))
        self.assertIn("a study needs at least 2 ranks", self.refused("run", "tiny.toml", "--dry-run", **by_mpirun(1)))
        self.assertIn("leave it out under a launcher", self.refused("run", "tiny.toml", "--dry-run", "--local", "2", **by_mpirun(3)))
        out, _ = self.ranktune("run", "tiny.toml", "--dry-run", SLURM_STEP_ID="0", SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="4",
                               **job(9))
        self.assertIn("layout    4 ranks: rank 0 is the head, which trains nothing; 3 workers", out)
        out, _ = self.ranktune("run", "tiny.toml", "--dry-run", PALS_RANKID="0")
        self.assertIn("assumed, as the launcher does not say how many processes", out)

    def test_a_dry_run_shows_the_ranks_of_the_job(self):
        out, _ = self.ranktune("run", "tiny.toml", "--dry-run", **job(9))
        self.assertIn("layout    9 ranks: rank 0 is the head, which trains nothing; 8 workers", out)
        self.assertIn("one for each of the 9 tasks of this job", out)
        self.assertIn("more than the 4 workers here", self.refused("run", "wide.toml", "--dry-run", **job(5)))
        out, _ = self.ranktune("run", "tiny.toml", "--dry-run", SLURM_JOB_ID="7", SLURM_TASKS_PER_NODE="3(x2)")
        self.assertIn("layout    6 ranks", out)
        out, _ = self.ranktune("run", "tiny.toml", "--dry-run", "--local", "3", **job(9))
        self.assertIn("layout    4 ranks", out)
        out, _ = self.ranktune("run", "tiny.toml", "--dry-run", **job(1))
        self.assertIn("assumed, as this job has one task", out)

    def test_a_dry_run_on_a_login_node_says_which_ranks_it_assumes(self):
        login = {"PATH": str(self.slurm_programs()), "SLURM_CONF": "/nowhere/slurm.conf"}
        out, _ = self.ranktune("run", "tiny.toml", "--dry-run", **login)
        words = " ".join(out.replace("\n#", " ").split())
        self.assertRegex(words, r"assumed: what --local \d+ would start on this machine. This looks like a login node \(Slurm is here, "
                                r"but this is no job\), where `ranktune run` starts nothing unless it is given --local N; `ranktune "
                                r"submit tiny.toml` makes a job of the study")
        out, _ = self.ranktune("run", "tiny.toml", "--dry-run", "--local", "3", **login)
        self.assertNotIn("assumed", out)


class DryRun(Case):
    def test_what_it_prints_is_a_study_file_whatever_the_values_are(self):
        self.write("odd.toml", TINY.replace('builtin = "curve"', 'command = "echo {a}"') +
                   'a = "x\\u001b[31mRED\\tq\\nnl"\nb = ["\\r", "\\u007f"]\n')
        out, _ = self.ranktune("run", "odd.toml", "--dry-run")
        self.assertEqual([c for c in out if ord(c) < 32 and c != "\n" or ord(c) == 127], [])
        self.assertIn("a=x?[31mRED?q?nl", out)
        self.write("again.toml", out)
        self.assertEqual(self.ranktune("run", "again.toml", "--dry-run")[0], out)

    def test_it_fits_a_terminal_of_80_columns(self):
        out, _ = self.ranktune("run", "tiny.toml", "--dry-run", "checkpoint.max_bytes=5GB", "scheduler.type=asha",
                               "scheduler.finish_top=0")
        self.assertEqual([line for line in out.splitlines() if len(line) > 80], [])
        self.assertIn("limit 5.0 GB (checkpoint.max_bytes)", out)

    def test_it_shows_the_bounds_that_result(self):
        self.write("bounds.toml", TINY.replace('builtin = "curve"', 'command = "echo {args}"') +
                   'i = "qrandint(1, 10, 4)"\nq = "quniform(0.15,1.0,0.1)"\nr = "randint(-3,3)"\n'
                   'l = "qlograndint(3, 100, 5)"\nc = [1, 2]\nn = "qrandn(0, 1, 0.5)"\nf = 3\n'
                   'd = { domain = "randint(0, 2)", condition = "f == 3" }\n')
        out, _ = self.ranktune("run", "bounds.toml", "--dry-run")
        lines = dict(line.split(" = ", 1) for line in out.splitlines() if " = " in line)
        self.assertEqual(lines["i"], '"qrandint(1, 10, 4)"  # from 4 to 8')
        self.assertEqual(lines["q"], '"quniform(0.15, 1.0, 0.1)"  # from 0.2 to 1.0')
        self.assertEqual(lines["r"], '"randint(-3, 3)"  # from -3 to 2')
        self.assertEqual(lines["l"], '"qlograndint(3, 100, 5)"  # from 5 to 100')
        self.assertEqual(lines["d"], '{ domain = "randint(0, 2)", condition = "f == 3" }  # from 0 to 1')
        for name in ("lr", "c", "n", "f"):
            self.assertNotIn("#", lines[name])
        self.write("again.toml", out)
        self.assertEqual(self.ranktune("run", "again.toml", "--dry-run")[0], out)


class Output(Case):
    def test_output_that_is_lost_is_no_success(self):
        self.ranktune("run", "tiny.toml", "--local", "1", "-q")
        for words in (["validate", "tiny.toml"], ["run", "--dry-run", "tiny.toml"], ["status", "tiny"], ["best", "tiny"],
                      ["logs", "tiny", "0"], ["export", "tiny", "-f", "csv"], ["replay", "tiny"], ["--help"], ["--version"],
                      ["status", "tiny", "-f", "json"]):
            with open("/dev/full", "w") as full:
                _, err = self.ranktune(*words, code=1, stdout=full)
            self.assertIn("ranktune: standard output could not be written", err, words)
            self.assertIn("(exit 1)", err)
        # A verb with effects keeps its exit code, so that a script does not repeat it.
        with open("/dev/full", "w") as full:
            _, err = self.ranktune("init", "mine", stdout=full)
        self.assertIn("standard output could not be written", err)
        # A reader that closes the pipe is no error, even if SIGPIPE is ignored.
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "w") as closed:
            done = subprocess.run([PROGRAM, "status", "tiny"], cwd=self.cwd, env=environment(), timeout=TIMEOUT, stdout=closed,
                                  stderr=subprocess.PIPE, text=True, restore_signals=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        # The results are in the study's directory, and scripts rely on its exit code.
        with open("/dev/full", "w") as full:
            self.ranktune("run", "tiny.toml", stdout=full)
        self.assertIn("writing '/dev/full' failed", self.ranktune("report", "tiny", "-o", "/dev/full", code=1)[1])
        self.assertIn("writing '/dev/full' failed", self.ranktune("export", "tiny", "-f", "csv", "-o", "/dev/full", code=1)[1])

    def test_names_do_not_reach_the_terminal_as_they_are(self):
        (self.cwd / "odd.toml").write_text(TINY + '"a\\u001b[31m" = 1\n["b\\nc"]\n')
        err = self.refused("validate", "odd.toml", "study.name=\x1b]0;x\x07")
        self.assertNotIn("\x1b", err)
        self.assertIn("space.a\\x1b[31m: ", err)
        self.assertIn("b\\nc: unknown table", err)

    def test_a_terminal_too_narrow_for_a_table_gets_lines(self):
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 15, 0, 0))
        process = subprocess.Popen([PROGRAM, "run", "tiny.toml", "--local", "1", "trainable.seconds=0.4"], cwd=self.cwd,
                                   env=environment(), stdout=child, stderr=child, stdin=subprocess.DEVNULL)
        os.close(child)
        shown = b""
        try:
            while part := os.read(parent, 65536):
                shown += part
        except OSError:  # the other end is closed
            pass
        os.close(parent)
        self.assertEqual(process.wait(TIMEOUT), 0, shown)
        self.assertNotIn(b"\x1b[", shown)


class Words(Case):
    def test_the_beginning_of_a_verb_is_offered_first(self):
        self.assertIn("unknown verb 'stat'; did you mean 'status'?", self.refused("stat", "tiny"))
        listed = self.refused("nonsense")
        self.assertIn("init, validate, keys, algorithms, run, map, predict", listed)
        self.assertNotIn("hosts", listed)  # of the job scripts, and not in --help
        self.assertIn("there is no Slurm job here", self.refused("hosts"))
        self.assertIn("unknown option '--foo'", self.refused("hosts", "--foo"))

    def test_init_takes_the_name_of_the_file_too(self):
        self.assertIn("wrote     mine.toml", self.ranktune("init", "mine.toml", "--template", "program")[0])
        self.assertIn('name = "mine"', (self.cwd / "mine.toml").read_text())
        self.assertIn("'.toml' is no name for a study", self.refused("init", ".toml"))
        self.assertIn("has 100 characters at most, not 101", self.refused("init", "x" * 101))

    def test_a_best_trial_without_a_checkpoint_is_not_referred_to_itself(self):
        (self.cwd / "score.sh").write_text('echo "{\\"report\\": {\\"score\\": $1}}" >&"$RANKTUNE_FD"\n')
        self.write(text=TINY.replace('builtin = "curve"', 'command = "sh score.sh {lr}"\ncheckpoints = false'))
        self.ranktune("run", "tiny.toml", "--local", "1", "-q", "study.max_iterations=1")
        self.assertIn("no checkpoint was kept", self.ranktune("best", "tiny")[0])
        err = self.refused("checkpoint", "tiny", "best")
        self.assertRegex(err, r"trial #\d, the best one, has no checkpoint; none was kept: see \[checkpoint\] of the study file")
        number = int(err[err.index("#") + 1])
        self.assertIn("`ranktune status tiny` tells what there is", self.refused("checkpoint", "tiny", str((number + 1) % 3)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
