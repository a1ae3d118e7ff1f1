#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Studies on a disk that is really full, over its quota, read-only, or not theirs to write to:
full_disk_test.py PROGRAM SOURCE_ROOT [TEST...]
The study directory is a separate small file system, so that nothing else is affected; mounting it needs root."""
import os
import re
import shutil
import subprocess
import threading
import unittest

from cli_test import PROGRAM, environment, sys
from supervise_test import TIMEOUT, Supervise

LOCAL = [PROGRAM, "run", "long.toml", "--local", "2"]
NOBODY = 65534


class Disk(Supervise):
    """A study directory on its own mount. `why`: the error message of a failed write."""
    why = "No space left on device"
    mend = "Make room"

    def setUp(self):
        super().setUp()
        self.disk = self.cwd / "long"
        self.disk.mkdir()
        self.mount()

    def need(self, *command):
        """A step without which there is nothing to test."""
        done = subprocess.run(command, capture_output=True, text=True) if os.geteuid() == 0 else None
        if done is None or done.returncode != 0:
            self.skipTest(f"not possible here: {' '.join(map(str, command))}" + (": " + done.stderr if done else " (not root)"))

    def mount(self):
        self.need("mount", "-t", "tmpfs", "-o", "size=8m", "ranktune-test", self.disk)
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk], check=True)

    def check_refused(self, err):
        self.assertRegex(err, rf"(?m)^ranktune: .*{self.why}.* \(exit 75\)$")
        self.assertRegex(err, rf"(?m){self.mend}.*, and give the same command again \(exit 75\)$")

    def check_over(self):
        self.assertEqual({k: self.outcome("long")[k] for k in ("exit", "cause")}, {"exit": "0", "cause": "over"})
        left = [p.name for p in self.disk.rglob("*") if p.name.endswith((".tmp", ".reserve"))]
        self.assertEqual(left, [])
        self.check_files()


class FullDisk(Disk):
    def fill(self, free=0):
        """Fills the disk except for `free` KiB."""
        with open(self.disk / ".filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(4096))
            except OSError:
                pass
            filler.truncate(max(0, filler.tell() - free * 1024))

    def make_room(self):
        (self.disk / ".filler").unlink()

    def test_a_disk_that_is_full_at_the_start(self):
        self.study(seconds=0.01)
        for free in (0, 8, 100):  # KiB: not even the lease, not resolved.toml, not the journal
            with self.subTest(free=free):
                self.fill(free)
                self.check_refused(self.ranktune(*LOCAL[1:], code=75)[1])
                self.make_room()
        self.fill()
        out = self.finish(self.supervise(*LOCAL, reports=0), code=75)
        self.check_refused(out)
        self.assertNotIn("starting the study again", out)
        self.assertNotIn("killed or lost", out)
        self.make_room()
        self.ranktune(*LOCAL[1:])
        self.check_over()

    def test_tasks_that_work_on_a_full_disk_have_not_failed(self):
        self.fill()
        task = ["map", "--local", "1", "--grid", "x=[1]", "-o", "tasks", "trainable.directory=long", "--", "head -c 100000 /dev/zero > big 2> /dev/null"]
        said = " ".join(self.ranktune(*task, code=75))
        self.assertRegex(" ".join(said.split()), "no space is left where it works, in '[^']*/long': " + self.why)
        (self.disk / ".filler").unlink()
        self.ranktune(*task)

    def test_a_disk_that_is_full_at_a_resume(self):
        self.study()
        self.start()
        self.kill_all()
        for free in (0, 100):
            with self.subTest(free=free):
                self.fill(free)
                self.check_refused(self.ranktune(*LOCAL[1:], code=75)[1])
                self.make_room()
        self.ranktune(*LOCAL[1:])
        self.check_over()

    def test_a_disk_that_gets_full_under_supervise(self):
        self.study(seconds=0.3, scheduler="asha", more="first_rung = 3")
        process = self.supervise(*LOCAL, reports=2)
        self.fill()
        out = self.finish(process, code=75)
        self.assertNotIn("starting the study again", out)
        words = " ".join(out.split())
        self.assertIn(self.why, words)
        self.assertNotIn("a rank ended before the study did", words)
        self.assertIn("not started again before the cause is mended", words)
        self.assertEqual({k: self.outcome("long")[k] for k in ("exit", "start", "cause")},
                         {"exit": "75", "start": "1", "cause": "storage"})
        self.make_room()
        self.ranktune(*LOCAL[1:])
        self.check_over()
        self.assertNotIn("death=yes", (self.disk / "logs" / "start-2.log").read_text())


    def test_a_disk_that_is_full_at_the_very_end(self):
        """The study is complete, but metrics.h5 is not: a message says so, and the next start writes it."""
        self.write("fill.py", """
import json, os, socket
head = socket.socket(fileno=int(os.environ["RANKTUNE_FD"]))
if os.path.exists("full"):
    with open("long/.filler", "wb", buffering=0) as filler:
        try:
            while True: filler.write(bytes(4096))
        except OSError: pass
        filler.truncate(filler.tell() - 8192)
head.sendall((json.dumps({"report": {"score": 1}}) + "\\n").encode())
head.makefile("r").readline()
""")
        study = """[study]
name = "long"
metric = "score"
mode = "max"
num_trials = {trials}
max_iterations = 1
seed = 1
[trainable]
command = "python3 fill.py"
[space]
x = "uniform(0, 1)"
"""
        metrics = self.disk / "metrics.h5"
        local = ("run", "long.toml", "--local", "1")
        for trials, before in ((1, "missing"), (2, "stale")):
            with self.subTest(metrics=before):
                self.write("long.toml", study.format(trials=trials))
                stale = metrics.read_bytes() if metrics.exists() else b""
                self.write("full", "")
                out, err = self.ranktune(*local, code=75)
                self.assertRegex(out, r"long finished.* exit 75\n", err)  # the end screen
                self.assertRegex(" ".join(err.split()), rf"metrics.h5 lacks results: .*{self.why}.* Make room, and give the same command again")
                self.assertEqual(metrics.read_bytes() if metrics.exists() else b"", stale)
                said = self.outcome("long")
                self.assertEqual((said["exit"], said["cause"]), ("75", "storage"))
                self.assertIn(self.why, said["tables"])
                newest = max((self.disk / "logs").glob("start-*.log"), key=os.path.getmtime)
                self.assertRegex(newest.read_text(), rf"results .*{self.why}")
                self.assertIn(self.why, self.ranktune(*local, code=75)[1])  # still no room
                self.assertEqual(self.finish(self.supervise(PROGRAM, *local, reports=0), code=75).count("lacks results"), 1)
                (self.cwd / "full").unlink()
                self.make_room()
                _, err = self.ranktune(*local)
                self.assertNotIn("lacks", err)
                self.assertNotEqual(metrics.read_bytes(), stale)
                self.check_over()
                self.assertNotIn("tables", self.outcome("long"))
                made = metrics.stat()
                self.ranktune(*local)  # nothing to do: nothing is written
                self.assertEqual(metrics.stat(), made)


class SmallDisk(Disk):
    STUDY = """[study]
name = "long"
metric = "score"
mode = "max"
num_trials = 12
max_iterations = 9
seed = 1
[trainable]
command = "{python} train.py"
[searcher]
type = "random"
[space]
x = "uniform(0, 1)"
[scheduler]
type = "asha"
"""
    TRAIN = """
import ranktune
config, here = ranktune.config(), ranktune.context()
def save(folder):
    with open(folder + "/state", "wb") as file:
        file.write(bytes(400_000))
for iteration in range(here.iteration, here.iterations):
    ranktune.report(score=config.x + iteration, checkpoint=save)
"""

    def mount(self):
        self.need("mount", "-t", "tmpfs", "-o", "size=2m", "ranktune-test", self.disk)
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk], check=True)

    def test_a_disk_on_which_programs_find_no_room_for_their_states(self):
        """No trial is charged, and the same command goes on when there is room."""
        self.write("long.toml", self.STUDY.format(python=sys.executable))
        self.write("train.py", self.TRAIN)
        out, _ = self.ranktune(*LOCAL[1:], code=75)
        self.assertIn(self.why, " ".join(out.split()))
        self.assertEqual(self.outcome("long")["cause"], "storage")
        self.assertNotIn("failed", [trial["state"] for trial in self.exported("long")["trials"]])
        self.need("mount", "-o", "remount,size=64m", self.disk)
        out, _ = self.ranktune(*LOCAL[1:])
        self.assertIn("12 trials, 12 ok", out)
        self.check_over()

    def test_a_disk_on_which_programs_find_no_room_and_do_not_say_so(self):
        """The bus error of a mapped file, a library that hides its error, a program that says nothing."""
        for save in ("file.truncate(3 << 20); mapped = mmap.mmap(file.fileno(), 0); mapped[:] = bytes(3 << 20)",
                     "subprocess.run('head -c 3000000 /dev/zero 2> /dev/null', shell=True, stdout=file).returncode and os._exit(1)"):
            with self.subTest(save):
                self.write("long.toml", self.STUDY.format(python=sys.executable) + "eta = 2\n")
                self.write("train.py", self.TRAIN.replace("file.write(bytes(400_000))", save).replace('"wb"', '"w+b"')
                           .replace("import ranktune", "import mmap, os, ranktune, subprocess"))
                self.ranktune("run", "long.toml", "--local", "1", code=75)  # alone: the end of another one makes room
                self.assertEqual(self.outcome("long")["cause"], "storage")
                self.assertNotIn("failed", [trial["state"] for trial in self.exported("long")["trials"]])
                for path in self.disk.iterdir():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


class Quota(Disk):
    """A quota of btrfs, which holds for root, too. Nothing can be overwritten when it is reached, nor the quota itself
    be changed: only taken off."""
    why = "Disk quota exceeded"
    mend = "Make room"

    def mount(self):
        if not shutil.which("mkfs.btrfs"):
            self.skipTest("no mkfs.btrfs (btrfs-progs), for a disk with a quota")
        image = self.cwd / "image"
        with open(image, "wb") as file:
            file.truncate(256 << 20)
        self.need("mkfs.btrfs", "-q", "-M", image)
        self.need("mount", "-o", "loop", image, self.disk)
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk], check=True)

    def limit(self, kib):
        self.need("btrfs", "quota", "enable", self.disk)
        self.need("btrfs", "qgroup", "limit", f"{kib}K", self.disk)

    def make_room(self):
        self.need("btrfs", "quota", "disable", self.disk)

    def test_a_disk_whose_quota_is_reached_at_the_start(self):
        self.study(seconds=0.01)
        self.limit(100)
        self.check_refused(self.ranktune(*LOCAL[1:], code=75)[1])
        out = self.finish(self.supervise(*LOCAL, reports=0), code=75)
        self.check_refused(out)
        self.assertNotIn("starting the study again", out)
        self.make_room()
        self.ranktune(*LOCAL[1:])
        self.check_over()

    def test_a_disk_whose_quota_is_reached_in_mid_run(self):
        self.study(seconds=0.3, scheduler="asha", more="first_rung = 3")
        process = self.supervise(*LOCAL, reports=2)
        self.limit(100)
        out = self.finish(process, code=75)
        self.assertNotIn("starting the study again", out)
        self.assertIn(self.why, " ".join(out.split()))
        self.check_refused(self.ranktune(*LOCAL[1:], code=75)[1])
        self.make_room()
        self.ranktune(*LOCAL[1:])
        self.check_over()


class ReadOnlyDisk(Disk):
    why = "Read-only file system"
    mend = "Have the file system made writable"

    def remount(self, how):
        self.need("mount", "-o", f"remount,{how}", self.disk)

    def test_a_disk_that_is_read_only_at_the_start_and_at_a_resume(self):
        self.study(seconds=0.01)
        self.remount("ro")
        self.check_refused(self.ranktune(*LOCAL[1:], code=75)[1])
        out = self.finish(self.supervise(*LOCAL, reports=0), code=75)
        self.check_refused(out)
        self.assertNotIn("starting the study again", out)
        self.assertEqual(list(self.disk.iterdir()), [])
        self.remount("rw")
        self.study()
        self.start()
        self.kill_all()
        self.remount("ro")
        self.check_refused(self.ranktune(*LOCAL[1:], code=75)[1])
        self.remount("rw")
        self.ranktune(*LOCAL[1:])
        self.check_over()

    def test_a_disk_whose_checkpoints_become_read_only_shows_in_the_table(self):
        """Trials train on, and the screen says all the while that they have no checkpoints. When the best one is at its
        end and cannot be kept, the study stops."""
        self.study(seconds=0.2, more="[checkpoint]\ninterval = 1")
        checkpoints = self.disk / "checkpoints"

        def lose():
            self.wait_until(lambda: self.reports() > 0, "a report")
            subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "ranktune-test", checkpoints], check=True)
        losing = threading.Thread(target=lose)
        losing.start()
        shown = self.on_a_terminal(*LOCAL[1:], columns=100, code=75)
        losing.join()
        subprocess.run(["umount", checkpoints], check=True)
        self.ranktune(*LOCAL[1:])
        self.check_over()
        tables = re.sub(r"\x1b\[[0-9;]*m", "", shown[:shown.rindex("long stopped early")])
        self.assertRegex(tables, r"\d+ checkpoints? not written: .*Read-only file system\r?\n")
        self.assertIn("could not be written", " ".join(shown[shown.rindex("long stopped early"):].split()))


class NotTheirs(Disk):
    """Runs as a user who may not write to the directory."""
    why = "Permission denied"
    mend = "This user lacks the permission: have the permissions mended"

    def mount(self):
        if os.geteuid() != 0 or subprocess.run([PROGRAM, "--version"], user=NOBODY, group=NOBODY, cwd="/",
                                               capture_output=True).returncode != 0:
            self.skipTest("the program cannot be run as another user here (not root, or its folder is not readable)")
        self.cwd.chmod(0o755)

    def as_nobody(self, code):
        home = self.cwd / "tmp"
        home.mkdir(exist_ok=True)
        os.chown(home, NOBODY, NOBODY)
        done = subprocess.run(LOCAL, cwd=self.cwd, env=environment(HOME=str(home), TMPDIR=str(home)), timeout=TIMEOUT,
                              user=NOBODY, group=NOBODY, extra_groups=[], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr

    def test_a_disk_that_is_not_to_be_written_to_at_the_start_and_at_a_resume(self):
        self.study(seconds=0.01)
        self.assertIn("this user may not write to", self.as_nobody(2))  # there is no study yet
        self.assertEqual(list(self.disk.iterdir()), [])
        self.study()
        self.start()
        self.kill_all()
        self.check_refused(self.as_nobody(75))  # the journal is root's
        subprocess.run(["chown", "-R", str(NOBODY), self.disk], check=True)
        self.as_nobody(0)
        self.check_over()

    def test_a_disk_on_which_somebody_else_runs_the_study(self):
        self.study(seconds=0.6)
        self.start(reports=1)
        self.assertRegex(self.as_nobody(2), r"is being run already: host \S+, pid \d+; nothing was started")


if __name__ == "__main__":
    tests = [f"{case.__name__}.{name}" for case in (FullDisk, SmallDisk, Quota, ReadOnlyDisk, NotTheirs) for name in dir(case)
             if name.startswith("test_a_disk")]
    unittest.main(argv=sys.argv[:1] + (sys.argv[3:] or tests), verbosity=2)
