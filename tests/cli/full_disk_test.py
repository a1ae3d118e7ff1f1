#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Studies on a disk that is really full: full_disk_test.py PROGRAM SOURCE_ROOT [TEST...]
The study directory is a small tmpfs of its own, so that nothing else has to suffer; mounting one takes root."""
import os
import subprocess
import unittest

from cli_test import PROGRAM, sys
from supervise_test import Supervise

LOCAL = [PROGRAM, "run", "long.toml", "--local", "2"]


class FullDisk(Supervise):
    def setUp(self):
        super().setUp()
        self.disk = self.cwd / "long"
        self.disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "ranktune-test", self.disk],
                                 capture_output=True, text=True) if os.geteuid() == 0 else None
        if mounted is None or mounted.returncode != 0:
            self.skipTest("a small disk of its own cannot be mounted here" + (": " + mounted.stderr if mounted else ""))
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk], check=True)

    def fill(self, free=0):
        """Fills the disk but for `free` KiB."""
        with open(self.disk / "filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(4096))
            except OSError:
                pass
            filler.truncate(max(0, filler.tell() - free * 1024))

    def make_room(self):
        (self.disk / "filler").unlink()

    def check_refused(self, err):
        self.assertRegex(err, r"(?m)^ranktune: .*No space left on device.* \(exit 75\)$")
        self.assertIn("Make room", err)
        self.assertIn("give the same command again", err)

    def check_over(self):
        self.assertEqual({k: self.outcome("long")[k] for k in ("exit", "cause")}, {"exit": "0", "cause": "over"})
        left = [p.name for p in self.disk.rglob("*") if p.name.endswith((".tmp", ".reserve"))]
        self.assertEqual(left, [])
        self.check_files()

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
        self.assertIn("No space left on device", words)
        self.assertNotIn("a rank ended before the study did", words)
        self.assertIn("not started again before there is room", words)
        self.assertEqual({k: self.outcome("long")[k] for k in ("exit", "start", "cause")},
                         {"exit": "75", "start": "1", "cause": "storage"})
        self.make_room()
        self.ranktune(*LOCAL[1:])
        self.check_over()
        self.assertNotIn("death=yes", (self.disk / "logs" / "start-2.log").read_text())


if __name__ == "__main__":
    tests = [name for name in dir(FullDisk) if name.startswith("test_a_disk")]
    unittest.main(argv=sys.argv[:1] + (sys.argv[3:] or [f"FullDisk.{name}" for name in tests]), verbosity=2)
