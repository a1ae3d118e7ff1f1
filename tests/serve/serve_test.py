#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Live pages: who may see them, and what a browser shows while a study runs: serve_test.py PROGRAM SOURCE_ROOT [TEST...]

skipped (77) where ranktune was built without cpp-httplib; the parts in a browser where there is no Chromium, or no d3
"""
import http.client
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(ROOT / "tests/report"))
from browser import Browser, find_browser  # noqa: E402

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


class Serve(unittest.TestCase):
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
        found = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32})", text)
        if not found:
            rest = text + process.stdout.read()
            if "cpp-httplib" in rest:
                self.skipTest("built without cpp-httplib")
            self.fail(rest)
        self.assertIn(f"ssh -L {found[1]}:127.0.0.1:{found[1]} ", process.stdout.readline())
        return int(found[1]), found[2]

    def get(self, port, path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer, body

    def test_only_who_has_the_token_and_asks_this_machine_sees_anything(self):
        self.finished("one")
        port, token = self.serve("one")
        cookie = f"ranktune={token}"
        self.assertEqual(self.get(port, "/")[0].status, 403)
        self.assertEqual(self.get(port, "/data/0?token=" + "0" * 32)[0].status, 403)
        self.assertEqual(self.get(port, "/data/0", Cookie="ranktune=" + token[:-1])[0].status, 403)
        self.assertEqual(self.get(port, f"/?token={token}", Host="evil.example:80")[0].status, 403)
        answer, _ = self.get(port, f"/?token={token}")
        self.assertEqual((answer.status, answer.headers["Location"]), (303, "/"))
        self.assertIn(f"{cookie}; HttpOnly; SameSite=Strict", answer.headers["Set-Cookie"])
        answer, page = self.get(port, "/", Cookie=cookie, Host="localhost:8888")
        self.assertEqual(answer.status, 200)
        self.assertIn("connect-src 'self'", page)
        self.assertNotIn(token, page)
        self.assertEqual(answer.headers["Cache-Control"], "no-store")
        answer, body = self.get(port, "/favicon.ico")
        self.assertEqual((answer.status, body), (204, ""))
        for path in ("/study/1", "/nothing", "/data/x", "/../../etc/passwd"):
            self.assertEqual(self.get(port, path, Cookie=cookie)[0].status, 404, path)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/study/0", headers={"Cookie": cookie})
        self.assertEqual(connection.getresponse().status, 404)
        connection.close()
        listening = subprocess.run(["ss", "-ltnH", f"sport = :{port}"], capture_output=True, text=True).stdout if pathlib.Path("/usr/bin/ss").exists() else ""
        self.assertNotIn("0.0.0.0", listening.split("127.0.0.1")[0])

    def test_several_studies_have_a_list(self):
        self.finished("one")
        self.finished("two")
        port, token = self.serve(".")
        _, page = self.get(port, "/", Cookie=f"ranktune={token}")
        self.assertEqual(re.findall(r'href="(/study/\d)">(\w+)<', page), [("/study/0", "one"), ("/study/1", "two")])
        self.assertIn("40 of 40", page)
        self.assertIn('<th scope="col">age</th>', page)
        self.assertIn("--paper:", page)
        self.finished("another")  # a study that the folder gains keeps the numbers of the others
        _, page = self.get(port, "/", Cookie=f"ranktune={token}")
        self.assertEqual(re.findall(r'href="(/study/\d)">(\w+)<', page), [("/study/0", "one"), ("/study/1", "two"), ("/study/2", "another")])
        self.assertRegex(page, r"<td>\d[^<]*s</td></tr>")  # its age
        self.assertIn("<title>another</title>", self.get(port, "/study/2", Cookie=f"ranktune={token}")[1])
        self.assertIn("<title>two</title>", self.get(port, "/study/1", Cookie=f"ranktune={token}")[1])

    def test_a_browser_shows_what_is_new_while_the_study_runs(self):
        if find_browser() is None:
            self.skipTest("no Chromium")
        run = self.start(*self.study("live", seconds=0.05, trials=100000))  # until it is stopped
        while not (self.cwd / "live/status").exists():
            time.sleep(0.1)
        port, token = self.serve("live")
        with Browser() as browser:
            browser.call("Page.navigate", url=f"http://127.0.0.1:{port}/?token={token}")
            browser.wait_for("document.documentElement?.dataset.ready === 'yes'")
            self.assertEqual(browser.run("location.pathname + location.search"), "/")
            browser.wait_for("Number(document.documentElement.dataset.version) > 1")
            rows = "JSON.parse(document.getElementById('data').textContent).studies[0].trials.phase.length"
            seen = browser.run(rows)
            browser.wait_for(f"{rows} > {seen}", seconds=120)
            browser.wait_for("document.querySelectorAll('main h1').length === 1")
            # While something is picked, the page waits for the user.
            browser.run("document.querySelector('tbody tr[tabindex]').click()")
            browser.wait_for("!document.getElementById('show-news').hidden", seconds=120)
            version = browser.run("document.documentElement.dataset.version")
            self.assertIn("newer results", browser.run("document.getElementById('live').textContent"))
            browser.click("#show-news")
            browser.wait_for(f"document.documentElement.dataset.version !== '{version}'")
            subprocess.run([PROGRAM, "stop", "live"], cwd=self.cwd, check=True, capture_output=True)
            self.assertEqual(run.wait(timeout=200), 75)
            browser.wait_for("document.getElementById('page').textContent.includes('exit 75')", seconds=60)
            browser.scroll_through()
            if where := os.environ.get("RANKTUNE_PICTURES"):
                browser.screenshot(pathlib.Path(where) / "serve.png")
            self.assertEqual(browser.console, [])
            self.assertEqual(browser.run("document.getElementById('live').textContent").split()[0], "live")
            outside = [url for url in browser.requests if not url.startswith((f"http://127.0.0.1:{port}/", "about:"))]
            self.assertEqual(outside, [])
            self.server.send_signal(signal.SIGINT)
            browser.wait_for("document.getElementById('live').textContent.includes('not connected')", seconds=60)
            starts = browser.run("[...document.querySelectorAll('table caption')].find(c => c.textContent === 'Starts').parentElement.textContent")
            self.assertRegex(starts, r"head on.*ranktune \d+\.\d+.*HDF5 \d")
            self.assertIn("Best result", browser.run("document.getElementById('page').textContent"))

    def test_a_browser_goes_from_the_list_to_a_study(self):
        if find_browser() is None:
            self.skipTest("no Chromium")
        self.finished("one")
        self.finished("two")
        port, token = self.serve("one", "two")
        with Browser() as browser:
            browser.call("Page.navigate", url=f"http://127.0.0.1:{port}/?token={token}")
            browser.wait_for("document.querySelectorAll('a').length === 2")
            browser.click("a", 1)
            browser.wait_for("document.documentElement?.dataset.ready === 'yes'")
            self.assertEqual(browser.run("[location.pathname, document.querySelector('h1').textContent]"), ["/study/1", "two"])
            self.assertEqual(browser.run("document.getElementById('show-news').hidden"), True)

    def follow(self, port, token):
        """A stream of events; asks again, as a page does, while there are too many readers."""
        for _ in range(100):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/events/0", headers={"Cookie": f"ranktune={token}"})
            answer = connection.getresponse()
            if answer.status == 200:
                break
            self.assertEqual((answer.status, answer.read()), (503, b"too many readers follow this study\n"))
            connection.close()
            time.sleep(0.1)
        return connection, answer

    def test_readers_of_a_page_that_is_gone_free_their_place(self):
        self.finished("one")
        port, token = self.serve("one")
        for _ in range(3):
            streams = []
            for _ in range(20):
                connection, answer = self.follow(port, token)
                self.assertEqual(answer.headers["Content-Type"], "text/event-stream")
                self.assertRegex(answer.readline().decode(), r"^data: \d+$")
                streams.append(connection)
            self.assertEqual(self.get(port, "/", Cookie=f"ranktune={token}")[0].status, 200)
            for connection in streams:
                connection.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
