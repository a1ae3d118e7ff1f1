# SPDX-License-Identifier: Apache-2.0
"""What tests of live pages have in common: studies, a server, requests. Their arguments are PROGRAM SOURCE_ROOT [TEST...]."""
import http.client
import http.server
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(ROOT / "tests/report"))
from browser import Browser, find_browser  # noqa: E402,F401

STUDY = """[study]
name = "{name}"
metric = "score"
mode = "max"
num_trials = {trials}
max_iterations = 9
seed = 4
[trainable]
builtin = "curve"
seconds = {seconds}
[space]
lr = "loguniform(1e-4, 1.0)"
a = "uniform(-1, 1)"
[scheduler]
type = "asha"
"""


class Served(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ranktune-serve-")
        self.cwd = pathlib.Path(folder.name)
        self.addCleanup(folder.cleanup)

    def start(self, *words):
        process = subprocess.Popen([PROGRAM, *words], cwd=self.cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   stdin=subprocess.DEVNULL)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def study(self, name, seconds=0.0, trials=40):
        (self.cwd / f"{name}.toml").write_text(STUDY.format(name=name, seconds=seconds, trials=trials))
        return ["run", f"{name}.toml", "--local", "2"]

    def finished(self, name):
        done = subprocess.run([PROGRAM, *self.study(name)], cwd=self.cwd, capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def serve(self, *directories):
        """The port and the token."""
        process = self.server = self.start("serve", *directories)
        text = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/$", text)
        if not found:
            self.fail(text + process.stdout.read())
        self.assertIn(f"ssh -L {found[1]}:127.0.0.1:{found[1]} ", process.stdout.readline())
        return int(found[1]), found[2]

    def another_server(self, answer):
        """Somebody else's, on this machine: its pages are what answer(request) returns."""
        class Other(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                page = answer(self)
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, *_):
                pass

        # With a thread for each connection: browsers open some that they may never use.
        other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
        self.addCleanup(other.server_close)
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(other.shutdown)
        return other

    def get(self, port, path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer, body

    def ending(self, connection):
        """What arrives until the server ends the connection."""
        received = b""
        try:
            while part := connection.recv(1 << 16):
                received += part
        except ConnectionResetError:
            pass
        return received
