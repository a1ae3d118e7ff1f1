#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The libraries that a verb loads, and the memory that it needs: memory_test.py PROGRAM SOURCE_ROOT [TEST...]"""
import pathlib
import re
import resource
import signal
import subprocess
import unittest

from cli_test import PROGRAM, TIMEOUT, environment, sys
from supervise_test import Supervise

LIMIT = 150_000 * 1024  # as `ulimit -v 150000`; login nodes have such limits
BLAS = re.compile(r"/lib[^/]*(blas|blis|mkl|armpl)[^/]*\.so")


def sanitized():
    """Sanitizers reserve terabytes of addresses."""
    return re.search(r"lib[atu][a-z]*san\.", subprocess.run(["ldd", PROGRAM], capture_output=True, text=True).stdout)


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


def maps(pid):
    return pathlib.Path(f"/proc/{pid}/maps").read_text()


class Memory(Supervise):
    def loaded(self, *arguments, code=0, **options):
        """Files that the loader has opened for a verb, from the first to the last."""
        log = self.cwd / "loader"
        done = subprocess.run([PROGRAM, *arguments], cwd=self.cwd, capture_output=True, text=True, timeout=TIMEOUT,
                              env=environment(LD_DEBUG="libs", LD_DEBUG_OUTPUT=str(log)), **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        text = "".join(file.read_text() for file in self.cwd.glob("loader.*"))
        for file in self.cwd.glob("loader.*"):
            file.unlink()
        files = re.findall(r"calling init: (\S+)", text)
        self.assertTrue(any("libranktune.so" in file for file in files), text)
        return files

    def check_verbs(self, **options):
        self.run_tiny("-q")
        for code, words in ((0, ("status", "tiny")), (0, ("best", "tiny")), (0, ("validate", "tiny.toml")),
                            (0, ("export", "tiny", "--format", "csv")), (0, ("supervise", "--dir", "tiny", "--", "true")),
                            (2, ("supervise", "--", "true"))):
            with self.subTest(words=words):
                self.assertEqual([file for file in self.loaded(*words, code=code, **options) if BLAS.search(file)], [])

    def test_verbs_that_do_not_train_load_no_blas(self):
        self.check_verbs()
        self.assertTrue(any(BLAS.search(file) for file in self.loaded("doctor")))  # which names the one that runs

    @unittest.skipIf(sanitized(), "a sanitizer needs more virtual memory than the limit")
    def test_verbs_that_do_not_train_work_under_a_limit_on_virtual_memory(self):
        self.check_verbs(preexec_fn=limited)
        self.loaded("doctor", preexec_fn=limited)  # which may find that the BLAS does not fit

    def supervise_sleep(self, **options):
        process = subprocess.Popen([PROGRAM, "supervise", "--dir", "long", "--", "sleep", "1000"], cwd=self.cwd,
                                   env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   start_new_session=True, **options)
        self.addCleanup(self.end, process)
        self.wait_until(lambda: process.poll() is not None or "sleep" in self.programs(), "the step")
        self.assertNotRegex(maps(process.pid), BLAS)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 128 + signal.SIGUSR1, out)  # what a launcher is sent for it

    def programs(self):
        found = []
        for pid in self.mine():
            try:
                found.append(pathlib.Path(f"/proc/{pid}/comm").read_text().strip())
            except OSError:
                continue
        return found

    def test_supervise_waits_without_a_blas_and_ends_when_it_is_told(self):
        self.supervise_sleep()

    @unittest.skipIf(sanitized(), "a sanitizer needs more virtual memory than the limit")
    def test_supervise_ends_when_it_is_told_under_a_limit_on_virtual_memory(self):
        self.supervise_sleep(preexec_fn=limited)

    def test_the_workers_of_a_study_load_a_blas_and_its_head_does_not(self):
        self.ranktune("init", "long")
        self.start("study.num_trials=2", "study.max_iterations=100000", "scheduler.type=fifo", "resources.ranks=1", reports=2)
        found = {rank: bool(BLAS.search(maps(pid))) for rank, pid in self.ranks().items()}
        self.assertEqual(found[0], False, found)
        self.assertIn(True, found.values(), found)
        facts = (self.cwd / "long" / "logs" / "start-1.env.json").read_text()
        self.assertRegex(facts, r'"blas": "[a-z0-9-]+ [0-9.]+"')  # what ranktune was built with


if __name__ == "__main__":
    tests = [name for name in dir(Memory) if name.startswith("test_") and name not in dir(Supervise)]
    unittest.main(argv=sys.argv[:1] + (sys.argv[3:] or [f"Memory.{name}" for name in tests]), verbosity=2)
