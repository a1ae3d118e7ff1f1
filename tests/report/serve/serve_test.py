#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Live pages: who may see them, and what a browser shows while a study runs: serve_test.py PROGRAM SOURCE_ROOT [TEST...]

The parts in a browser are skipped (77) where there is no Chromium, or no d3.
"""
import http.client
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import unittest
import urllib.request

from served import PROGRAM, Browser, Served, find_browser

class Serve(Served):
    def test_only_who_has_the_token_and_asks_this_machine_sees_anything(self):
        self.finished("one")
        port, token = self.serve("one")
        for path in ("/", "/study/0", f"/?token={token}", f"/data/0?{token}", f"/x/{token}/data/0", f"/{token[:-1]}/data/0", f"//{token}/data/0"):
            self.assertEqual(self.get(port, path)[0].status, 403, path)
            self.assertEqual(self.get(port, path, Cookie=f"ranktune={token}")[0].status, 403, path)
        self.assertEqual(self.get(port, f"/{token}/study/0", Host="evil.example:80")[0].status, 403)
        for path, to in ((f"/{token}", f"/{token}/"), (f"/{token}/", "study/0")):
            answer, _ = self.get(port, path)
            self.assertEqual((answer.status, answer.headers["Location"]), (303, to))
        answer, page = self.get(port, f"/{token}/study/0", Host="localhost:8888")
        self.assertEqual(answer.status, 200)
        self.assertIn("connect-src 'self'", page)
        self.assertNotIn(token, page)  # somebody may save it and pass it on
        self.assertEqual(answer.headers["Cache-Control"], "no-store")
        self.assertEqual(answer.headers["Referrer-Policy"], "no-referrer")
        answer, body = self.get(port, "/favicon.ico")
        self.assertEqual((answer.status, body), (204, ""))
        for path in ("/study/1", "/nothing", "/data/x", "/data/0/", "/../../etc/passwd"):
            self.assertEqual(self.get(port, f"/{token}{path}")[0].status, 404, path)
        listening = subprocess.run(["ss", "-ltnH", f"sport = :{port}"], capture_output=True, text=True).stdout if pathlib.Path("/usr/bin/ss").exists() else ""
        self.assertNotIn("0.0.0.0", listening.split("127.0.0.1")[0])

    def test_several_studies_have_a_list(self):
        self.finished("one")
        self.finished("two")
        port, token = self.serve(".")
        _, page = self.get(port, f"/{token}/")
        self.assertEqual(re.findall(r'href="(study/\d)">(\w+)<', page), [("study/0", "one"), ("study/1", "two")])
        self.assertIn("40 of 40", page)
        self.assertIn('<th scope="col">age</th>', page)
        self.assertIn("--paper:", page)
        self.finished("another")  # a study that the folder gains keeps the numbers of the others
        _, page = self.get(port, f"/{token}/")
        self.assertEqual(re.findall(r'href="(study/\d)">(\w+)<', page), [("study/0", "one"), ("study/1", "two"), ("study/2", "another")])
        self.assertRegex(page, r"<td>\d[^<]*s</td></tr>")  # its age
        self.assertIn("<title>another</title>", self.get(port, f"/{token}/study/2")[1])
        self.assertIn("<title>two</title>", self.get(port, f"/{token}/study/1")[1])

    def test_a_browser_shows_what_is_new_while_the_study_runs(self):
        if find_browser() is None:
            self.skipTest("no Chromium")
        run = self.start(*self.study("live", seconds=0.05, trials=100000))  # until it is stopped
        while not (self.cwd / "live/status").exists():
            time.sleep(0.1)
        port, token = self.serve("live")
        with Browser() as browser:
            browser.call("Page.navigate", url=f"http://127.0.0.1:{port}/{token}/")
            browser.wait_for("document.documentElement?.dataset.ready === 'yes'")
            self.assertEqual(browser.run("location.pathname + location.search"), f"/{token}/study/0")
            browser.wait_for("Number(document.documentElement.dataset.version) > 1")
            rows = "JSON.parse(document.getElementById('data').textContent).studies[0].trials.phase.length"
            seen = browser.run(rows)
            browser.wait_for(f"{rows} > {seen}", seconds=120)
            browser.wait_for("document.querySelectorAll('main h1').length === 1")
            self.assertRegex(browser.run("document.getElementById('now').textContent"), r"of about [\d,]+ iterations .*left")
            # A new page is drawn before it takes the place of the old one: in no frame is the first chart empty.
            browser.run("(() => { window.blank = 0; const look = () => { blank += !document.querySelector('#page .chart .axis'); "
                        "requestAnimationFrame(look); }; look(); return 0; })()")
            version = browser.run("document.documentElement.dataset.version")
            browser.wait_for(f"Number(document.documentElement.dataset.version) > {version} + 1", seconds=120)
            self.assertEqual(browser.run("window.blank"), 0)
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
            browser.call("Page.navigate", url=f"http://127.0.0.1:{port}/{token}/")
            browser.wait_for("document.querySelectorAll('a').length === 2")
            browser.click("a", 1)
            browser.wait_for("document.documentElement?.dataset.ready === 'yes'")
            self.assertEqual(browser.run("[location.pathname, document.querySelector('h1').textContent]"), [f"/{token}/study/1", "two"])
            self.assertEqual(browser.run("document.getElementById('show-news').hidden"), True)

    def test_no_other_server_of_this_machine_is_told_the_token(self):
        self.finished("one")
        told = []

        def answer(request):
            told.append(request.path + str(request.headers))
            return b""

        other = self.another_server(answer)
        served = [self.serve("one") for _ in range(2)]
        addresses = [f"http://127.0.0.1:{port}/{token}/" for port, token in served]
        elsewhere = f"http://127.0.0.1:{other.server_port}/"

        def open_all(visit):
            visit(addresses[0], "one")
            visit(elsewhere, "")
            visit(addresses[1], "one")
            visit(addresses[0], "one")  # the second server has not ended what the first one grants
            visit(elsewhere, "")

        jar = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

        def fetch(address, title):
            with jar.open(address, timeout=60) as answer:
                self.assertIn(f"<title>{title}</title>" if title else "", answer.read().decode())
                self.assertNotIn("Set-Cookie", answer.headers)

        open_all(fetch)
        if find_browser() is not None:
            with Browser() as browser:
                def visit(address, title):
                    browser.call("Page.navigate", url=address)
                    browser.wait_for(f"document.title === '{title}' && location.port === '{address.split(':')[2].split('/')[0]}'"
                                     " && document.readyState === 'complete'")  # before that a script's navigation replaces the page

                open_all(visit)
                visit(addresses[0], "one")
                browser.leave_by(f"location.href = '{elsewhere}'")  # as by a link in the page
                browser.wait_for(f"location.port === '{other.server_port}'")
                browser.leave_by("history.back()")
                browser.wait_for("document.title === 'one'")
        self.assertGreaterEqual(len(told), 2)
        for each in told:
            self.assertNotRegex(each, "(?i)cookie:")
            for port, token in served:
                self.assertNotIn(token, each)
                self.assertNotIn(f":{port}", each)

    def test_a_page_says_that_records_of_its_study_are_gone(self):
        for name in ("whole", "later", "before"):
            self.finished(name)
        segment = lambda name: max((self.cwd / name / "journal").iterdir())
        data = segment("before").read_bytes()
        cut = data.rindex(b"RF", 0, len(data) - 4000)  # a frame begins there
        segment("before").chmod(0o644)
        segment("before").write_bytes(data[:cut] + bytes(len(data) - cut))
        port, token = self.serve(".")
        page = lambda number: self.get(port, f"/{token}/study/{number}")[1]  # sorted by name
        self.assertIn("its newest records are missing", page(0))
        self.assertIn("its newest records are missing", self.get(port, f"/{token}/")[1])
        self.assertNotIn("its journal is damaged", page(1))
        before = self.get(port, f"/{token}/data/1")[1]
        events, answer = self.follow(port, token, study=1)
        first = answer.readline()
        os.truncate(segment("later"), segment("later").stat().st_size * 2 // 3)
        while (line := answer.readline()).strip() in (b"", first.strip()):
            pass
        self.assertRegex(line.decode(), r"^data: \d+$")
        events.close()
        self.assertNotIn("damaged", before)
        self.assertIn("its journal is damaged or gone since", self.get(port, f"/{token}/data/1")[1])
        self.assertIn("its journal is damaged or gone since", page(1))
        self.assertNotRegex(page(2), "newest records are missing|journal is damaged")

    def test_slow_connections_keep_nobody_waiting(self):
        self.finished("one")
        port, token = self.serve("one")
        slow = []
        self.addCleanup(lambda: [each.close() for each in slow])
        for _ in range(700):  # more than the server keeps
            slow.append(socket.create_connection(("127.0.0.1", port), timeout=600))
            slow[-1].sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a")
            if len(slow) in (64, 300, 700):
                self.assertEqual(self.get(port, f"/{token}/study/0")[0].status, 200)
        # Those that have waited longest made room; the others are not waited for either, whatever they send.
        for each in slow:
            self.assertEqual(self.ending(each), b"")

    def test_what_is_no_request_is_refused(self):
        self.finished("one")
        port, token = self.serve("one")
        path = f"/{token}/study/0"
        for text, status in ((f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n", 405),
                             (f"GET {path}\r\n\r\n", 400),
                             (f"GET {path} HTTP/2\r\n\r\n", 400),
                             (f"GET http://localhost{path} HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
                             (f"GET {path} HTTP/1.1\r\nHost: localhost\r\nhost: localhost\r\n\r\n", 400),
                             (f"GET {path} HTTP/1.1\r\nNoHost: localhost\r\n\r\n", 403),
                             (f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX: {'x' * 20000}\r\n\r\n", 431),
                             (f"GET {path} HTTP/1.0\r\nhOST:\tlocalhost:1 \r\n\r\n", 200)):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                for i in range(0, len(text), 7):  # as it arrives from afar
                    connection.sendall(text[i:i + 7].encode())
                self.assertEqual(self.ending(connection).split(b" ")[1].decode(), str(status), text)

    def test_a_port_that_is_taken_is_refused(self):
        self.finished("one")
        port, _ = self.serve("one")
        second = subprocess.run([PROGRAM, "serve", "one", "--port", str(port)], cwd=self.cwd, capture_output=True, text=True, timeout=60)
        self.assertEqual(second.returncode, 2, second.stderr)
        self.assertIn(f"port {port} of 127.0.0.1 cannot be used", second.stderr)
        self.assertIn("--port", second.stderr)

    def follow(self, port, token, study=0):
        """A stream of events; asks again, as a page does, while there are too many readers."""
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", f"/{token}/events/{study}")
            answer = connection.getresponse()
            if answer.status == 200:
                return connection, answer
            self.assertEqual((answer.status, answer.read()), (503, b"too many readers follow this study\n"))
            connection.close()
            time.sleep(0.1)

    def test_readers_of_a_page_that_is_gone_free_their_place(self):
        self.finished("one")
        port, token = self.serve("one")
        for _ in range(3):
            streams = []
            for _ in range(60):
                connection, answer = self.follow(port, token)
                self.assertEqual(answer.headers["Content-Type"], "text/event-stream")
                self.assertRegex(answer.readline().decode(), r"^data: \d+$")
                streams.append((connection, answer))
            self.assertEqual(self.get(port, f"/{token}/study/0")[0].status, 200)
            for connection, answer in streams:
                answer.close()
                connection.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
