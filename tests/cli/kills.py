# SPDX-License-Identifier: Apache-2.0
"""For tests that kill studies: waiting for an event, and kill -9 of everything that a test has started."""
import os
import signal
import time

from cli_test import TIMEOUT


class Kills:
    """Beside Case, whose directory its processes run in."""

    def wait_until(self, condition, what):
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.05)

    def kill_all(self):
        """kill -9 of every process in this test's directory."""
        while pids := [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self.is_mine(pid)]:
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.05)

    def is_mine(self, pid):
        """Whether a thread of it lives: the first one may have ended before the others, which hold files open."""
        try:
            return any(self.is_my_thread(f"/proc/{pid}/task/{thread}") for thread in os.listdir(f"/proc/{pid}/task"))
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            return False

    def is_my_thread(self, path):
        try:
            with open(f"{path}/stat") as file:
                dead = file.read().rsplit(")", 1)[1].split()[0] in "ZX"
            return not dead and os.readlink(f"{path}/cwd") == str(self.cwd)
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            return False
