#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where ranks of one machine keep the memory that they share: shared_memory_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import os
import re
import subprocess
import unittest

from cli_test import PROGRAM, TIMEOUT, environment, sys
from supervise_test import MPIRUN, Supervise, open_mpi


def small(size, *command):
    """The command with a /dev/shm of its own, of that size."""
    return ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size={size} none /dev/shm && exec "$@"', "sh", *command]


def can_mount():
    if os.geteuid() != 0:
        return False
    try:
        return subprocess.run(small("1m", "true"), capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@unittest.skipUnless(open_mpi(), "no mpirun of Open MPI")
class SharedMemory(Supervise):
    def test_the_shared_memory_of_killed_ranks_goes_with_supervise_or_with_the_next_one(self):
        self.study()
        process = self.supervise(*MPIRUN, PROGRAM, "run", "long.toml")
        with open(f"/proc/{self.ranks()[0]}/environ") as file:
            folder = re.search(r"backing_directory=(/dev/shm/ranktune-[^\0]+)", file.read()).group(1)
        self.assertTrue(os.listdir(folder))
        self.kill_all()
        process.wait(TIMEOUT)

        def is_found():  # once the kernel has closed the files of the ranks
            return f" {folder}" in subprocess.run([PROGRAM, "doctor"], cwd=self.cwd, env=environment(), capture_output=True, text=True).stdout

        self.wait_until(is_found, "doctor does not name it")
        self.finish(self.supervise(*MPIRUN, PROGRAM, "run", "long.toml"))
        self.assertFalse(os.path.exists(folder))

    def run_in(self, size, *arguments, **changes):
        self.write()
        return subprocess.run(small(size, PROGRAM, "run", "tiny.toml", *arguments), cwd=self.cwd, env=environment(**changes),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)

    @unittest.skipUnless(can_mount(), "a small /dev/shm needs root and a mount namespace")
    def test_too_little_shared_memory_is_said_before_the_launch(self):
        done = self.run_in("4m", "--local", "2")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"^ranktune: too little shared memory: \S+ \w+ are free in /dev/shm, and 3 ranks need "
                                      r"\S+ \w+\. Remove what killed runs left there \(ranktune doctor --clean\), or ")
        self.assertFalse((self.cwd / "tiny").exists())
        self.assertEqual(self.run_in("5m", "--local", "9").returncode, 2)  # the need grows with the ranks
        self.assertFalse((self.cwd / "tiny").exists())
        done = self.run_in("6m", "--local", "2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        # The mend that the message names.
        done = self.run_in("4m", "--local", "2", "--fresh", OMPI_MCA_btl_vader_backing_directory=str(self.cwd))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    @unittest.skipUnless(can_mount(), "a small /dev/shm needs root and a mount namespace")
    def test_a_launch_that_fails_gives_the_words_of_mpirun(self):
        """The size of a segment stands in a file of the user's, where nobody but Open MPI looks."""
        settings = self.cwd / ".openmpi"
        settings.mkdir()
        (settings / "mca-params.conf").write_text("btl_vader_segment_size = 100000000\n")
        done = self.run_in("16m", "--local", "2", HOME=str(self.cwd))
        self.assertNotEqual(done.returncode, 0, done.stdout)
        # (mpirun itself sometimes crashes in the middle of its explanation: then its first words are there.)
        self.assertRegex(" ".join(done.stderr.split()), "not enough space|ORTE_ERROR_LOG: Out of resource")

    def test_of_a_study_that_has_ended_mpirun_says_nothing(self):
        self.write()
        done = subprocess.run([PROGRAM, "run", "tiny.toml", "--local", "2", "trainable.fail_rate=1", "trainable.fail_iteration=1"],
                              cwd=self.cwd, env=environment(), capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertNotIn("-----", done.stderr)


if __name__ == "__main__":
    tests = [name for name in dir(SharedMemory) if name.startswith("test_") and name in SharedMemory.__dict__]
    unittest.main(argv=sys.argv[:1] + (sys.argv[3:] or [f"SharedMemory.{name}" for name in tests]), verbosity=2)
