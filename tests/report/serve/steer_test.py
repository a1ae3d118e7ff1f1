#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Live pages that steer: what each control does to a running study, and which requests are refused: steer_test.py PROGRAM SOURCE_ROOT [TEST...]

The parts in a browser are skipped where there is no Chromium, or no d3.
"""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
import unittest

from served import PROGRAM, Browser, Served, find_browser

# Trials that never end by themselves: whatever happens to them was asked for.
ENDLESS = """[study]
name = "{name}"
metric = "score"
mode = "max"
num_trials = 4
max_iterations = 100000
[trainable]
builtin = "curve"
seconds = 0.2
[space]
lr = "loguniform(1e-4, 1.0)"
a = "uniform(-1, 1)"
[scheduler]
type = "fifo"
"""
SECONDS = 120  # a guard against waiting for ever


class Steer(Served):
    def wait_until(self, holds, what):
        limit = time.monotonic() + SECONDS
        while not holds():
            self.assertLess(time.monotonic(), limit, what)
            time.sleep(0.05)

    def running(self, name):
        """A study whose two trials have both reported."""
        (self.cwd / f"{name}.toml").write_text(ENDLESS.format(name=name))
        run = self.start("run", f"{name}.toml", "--local", "2")
        self.addCleanup(lambda: run.poll() is not None or (self.ranktune("stop", name), run.wait(timeout=SECONDS)))  # else ranks outlive their launcher
        self.wait_until(lambda: (self.cwd / name / "status").exists() and [trial["iterations"] > 0 for trial in self.json("export", name)["trials"][:2]] == [True, True], "reports")
        return run

    def interrupted(self, name):
        """A study that nobody runs, and that can go on: what is asked of it stays in its folder `control`."""
        run = self.running(name)
        self.ranktune("stop", name)
        self.assertEqual(run.wait(timeout=SECONDS), 75)

    def ranktune(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], cwd=self.cwd, capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def json(self, verb, name):
        return json.loads(self.ranktune(verb, name, "--format", "json"))

    def steers(self, *words):
        self.port, self.token = self.serve(*words)
        found = re.search(r'<meta name="ranktune-live"[^>]* data-secret="([0-9a-f]{32})"', self.get(self.port, f"/{self.token}/study/0")[1])
        self.secret = found and found[1]

    def proof(self, **changes):
        """Headers as the page's own script sends them."""
        headers = {"Origin": f"http://127.0.0.1:{self.port}", "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json", "X-Ranktune-Steer": self.secret or ""}
        headers.update({name.replace("_", "-"): value for name, value in changes.items()})
        return {name: value for name, value in headers.items() if value is not None}

    def post(self, request, path=None, headers=None, method="POST"):
        body = request if isinstance(request, (bytes, str)) else json.dumps(request)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        connection.request(method, path or f"/{self.token}/steer/0", body, self.proof() if headers is None else headers)
        answer = connection.getresponse()
        words = answer.read().decode()
        self.assertEqual(answer.headers["Content-Type"], "text/plain; charset=utf-8")
        connection.close()
        return answer.status, words.strip()

    def browse(self, **screen):
        """A browser, unless the page has no scripts that it could run: then there are no controls to be clicked."""
        if find_browser() is None:
            self.skipTest("no Chromium")
        if "script-src 'none'" in self.get(self.port, f"/{self.token}/study/0")[1]:
            self.skipTest("no d3")
        return Browser(**screen)

    def live(self):
        return json.loads(self.get(self.port, f"/{self.token}/live/0")[1])

    def trial(self, number):
        return next((each for each in self.live()["trials"] if each["trial"] == number), None)

    def asked(self, name):
        """The requests in the study's folder, as the head will read them."""
        folder = self.cwd / name / "control"
        return [tomllib.loads(path.read_text()) for path in sorted(folder.glob("*.ask"))] if folder.exists() else []


class Refused(Steer):
    def test_a_request_without_proof_of_its_origin_changes_nothing(self):
        self.interrupted("one")
        self.steers("one")
        pause = {"verb": "pause", "trial": 0}
        own = f"http://127.0.0.1:{self.port}"
        for changes, why in (({"Origin": None}, "Origin is not this server"), ({"Origin": "null"}, "Origin is not"), ({"Origin": "http://evil.example"}, "Origin is not"),
                             ({"Origin": f"http://127.0.0.1:{self.port + 1}"}, "Origin is not"), ({"Origin": own.replace("http:", "https:")}, "Origin is not"),
                             ({"Origin": f"http://localhost:{self.port}"}, "Origin is not"), ({"Origin": own + ".evil.example"}, "Origin is not"),
                             ({"Sec_Fetch_Site": "cross-site"}, "Sec-Fetch-Site is not same-origin"), ({"Sec_Fetch_Site": "same-site"}, "Sec-Fetch-Site"), ({"Sec_Fetch_Site": "none"}, "Sec-Fetch-Site"),
                             ({"Content_Type": None}, "Content-Type is not application/json"), ({"Content_Type": "text/plain"}, "Content-Type"),
                             ({"Content_Type": "application/x-www-form-urlencoded"}, "Content-Type"), ({"Content_Type": "text/plain; application/json"}, "Content-Type"),
                             ({"X_Ranktune_Steer": None}, "X-Ranktune-Steer is not that of a page"), ({"X_Ranktune_Steer": self.token}, "X-Ranktune-Steer"),
                             ({"X_Ranktune_Steer": self.secret[:-1]}, "X-Ranktune-Steer"), ({"X_Ranktune_Steer": "0" * 32}, "X-Ranktune-Steer")):
            with self.subTest(**changes):
                status, words = self.post(pause, headers=self.proof(**changes))
                self.assertEqual(status, 403, words)
                self.assertIn(f"nothing was changed, because only the page of this server may steer: {why}", words)
                self.assertIn("Reload the page", words)
        self.assertEqual(self.post(pause, headers=self.proof(Host="evil.example", Origin="http://evil.example"))[0], 403)
        for path in ("/steer/0", f"/{'0' * 32}/steer/0", f"/{self.secret}/steer/0"):  # without the token of the address
            self.assertEqual(self.post(pause, path=path)[0], 403)
        self.assertNotEqual(self.secret, self.token)
        self.assertFalse((self.cwd / "one/control").exists())
        # A browser that sends no Sec-Fetch-Site, and a tunnel with a port of its own, are served.
        self.assertEqual(self.post(pause, headers=self.proof(Sec_Fetch_Site=None))[0], 200)
        self.assertEqual(self.post(pause, headers=self.proof(Host="localhost:8888", Origin="http://localhost:8888", Content_Type="application/json; charset=utf-8"))[0], 200)
        self.assertEqual([each["verb"] for each in self.asked("one")], ["pause", "pause"])

    def test_what_is_no_request_of_a_page_changes_nothing(self):
        self.interrupted("one")
        self.steers("one")
        for body in ("", "pause", "{", "[]", "null", "7", "[" * 20000, "{}", '{"verb": "pause"}', '{"trial": 0}', '{"verb": "pause", "trial": -1}', '{"verb": "pause", "trial": "0"}',
                     '{"verb": "pause", "trial": 1.5}', '{"verb": "pause", "trial": 4294967296}', '{"verb": "pause", "trial": 0, "all": true}', '{"verb": "pause", "trial": 0, "settings": ["lr=1"]}',
                     '{"verb": "explode", "trial": 0}', '{"verb": "set", "settings": ["study.num_trials=9"]}', '{"verb": "add"}', '{"verb": "add", "settings": []}', '{"verb": "add", "settings": [7]}',
                     '{"verb": "add", "settings": "lr=1"}', '{"verb": "add", "trial": 0, "settings": ["lr=0.1"]}', '{"verb": "stop", "trial": 0}', '{"verb": null}'):
            with self.subTest(body=body[:60]):
                status, words = self.post(body)
                self.assertEqual(status, 400, words)
                self.assertIn("nothing was changed: ", words)
        self.assertIn('"verb" (pause, resume, cancel, add or stop)', self.post("{}")[1])
        for setting, words in (("lr=7", "lr: 7.0 is no value of loguniform(0.0001, 1.0)"), ("momentum=0.5", "momentum: "), ("lr", "lr")):
            status, said = self.post({"verb": "add", "settings": [setting]})
            self.assertEqual(status, 409, said)
            self.assertIn(words, said)
        for path, status in ((f"/{self.token}/steer/1", 404), (f"/{self.token}/steer/", 404), (f"/{self.token}/steer/x", 404), (f"/{self.token}/study/0", 404), (f"/{self.token}/", 404), (f"/{self.token}", 404)):
            self.assertEqual(self.post({"verb": "pause", "trial": 0}, path=path)[0], status, path)
        self.assertEqual(self.post({"verb": "pause", "trial": 0}, method="GET")[0], 404)
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "post"):
            self.assertEqual(self.post("", method=method)[0], 405, method)
        status, words = self.post({"verb": "stop"})
        self.assertEqual(status, 409)
        self.assertIn("nothing runs in", words)
        self.assertEqual(self.asked("one"), [])

    def test_bodies_have_a_length_that_is_bounded(self):
        self.interrupted("one")
        self.steers("one")
        pause = json.dumps({"verb": "pause", "trial": 0})
        proof = "".join(f"{name}: {value}\r\n" for name, value in self.proof().items())
        chunks = f"{len(pause):x}\r\n{pause}\r\n0\r\n\r\n"
        for headers, body, status in (("Transfer-Encoding: chunked\r\n", chunks, 411), (f"Transfer-Encoding: chunked\r\nContent-Length: {len(pause)}\r\n", pause, 411), ("", pause, 411),
                                      ("Content-Length: -1\r\n", pause, 400), ("Content-Length: 0x1d\r\n", pause, 400), (f"Content-Length: {len(pause)}, {len(pause)}\r\n", pause, 400),
                                      (f"Content-Length: {len(pause)}\r\nContent-Length: 5\r\n", pause, 400), ("Content-Length: 65537\r\n", pause, 413), (f"Content-Length: {'9' * 30}\r\n", pause, 413),
                                      (f"Content-Length: {len(pause)}\r\nOrigin: http://127.0.0.1:{self.port}\r\n", pause, 400), ("Content-Length: 65536\r\n", pause.rjust(65536), 200),
                                      (f"Content-Length: {len(pause)}\r\n", pause + "GET / HTTP/1.1\r\n\r\n", 200)):
            text = f"POST /{self.token}/steer/0 HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{proof}{headers}\r\n{body}".encode()
            with self.subTest(headers=headers), socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS) as connection:
                for i in range(0, len(text), 1000):  # as it arrives from afar
                    connection.sendall(text[i:i + 1000])
                self.assertEqual(self.ending(connection).split(b" ")[1].decode(), str(status))
        self.assertEqual(len(self.asked("one")), 2)
        # Half a body holds no thread: others are answered while it lasts.
        halves = []
        self.addCleanup(lambda: [each.close() for each in halves])
        for _ in range(20):
            halves.append(socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS))
            halves[-1].sendall(f"POST /{self.token}/steer/0 HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{proof}Content-Length: {len(pause)}\r\n\r\n{pause[:9]}".encode())
        self.assertEqual(self.live()["runs"], False)
        for each in halves:
            self.assertEqual(self.ending(each), b"")
        self.assertEqual(len(self.asked("one")), 2)

    def test_a_study_that_has_ended_has_no_controls(self):
        self.finished("one")
        self.steers("one")
        self.assertRegex(self.live()["closed"], r"the study in '\S+one' is finished. More trials: ranktune run \S+one study.num_trials=N")
        self.assertEqual(self.live()["trials"], [])
        for request in ({"verb": "pause", "trial": 0}, {"verb": "add", "settings": ["lr=0.1"]}):
            status, words = self.post(request)
            self.assertEqual(status, 409)
            self.assertIn("is finished. More trials: ranktune run", words)
        status, words = self.post({"verb": "stop"})
        self.assertEqual(status, 409)
        self.assertIn("nothing runs in", words)

    def test_pages_can_be_read_only(self):
        self.interrupted("one")
        self.steers("one", "--read-only")
        self.assertIsNone(self.secret)
        self.assertNotIn("data-steer", self.get(self.port, f"/{self.token}/study/0")[1])
        self.assertEqual(self.live()["closed"], "this server is read only (--read-only)")
        status, words = self.post({"verb": "pause", "trial": 0})
        self.assertEqual(status, 403)
        self.assertIn("--read-only", words)
        self.assertFalse((self.cwd / "one/control").exists())

    def test_a_report_has_no_controls(self):
        self.running("one")
        self.ranktune("report", "one", "-o", "one.html")
        self.assertNotIn('<meta name="ranktune-live"', (self.cwd / "one.html").read_text())
        self.steers("one")
        with self.browse() as browser:
            browser.open(self.cwd / "one.html")
            self.assertIsNone(browser.run("document.getElementById('steer')"))
            browser.click("#trials tbody tr")
            self.assertEqual(browser.run("[...document.querySelectorAll('button')].filter(each => /Pause|Cancel|Stop|Add|Log/.test(each.textContent)).length"), 0)
            self.assertIn("On ranks now", browser.run("document.getElementById('now').textContent"))

    def test_a_page_of_another_server_changes_nothing(self):
        self.interrupted("one")
        self.steers("one")
        address = f"http://127.0.0.1:{self.port}/{self.token}/steer/0"

        other = self.another_server(lambda _: b"<title>other</title><iframe name='frame'></iframe>")
        forge = """new Promise((done) => {
          const body = JSON.stringify({verb: "cancel", trial: 0});
          const headers = {"Content-Type": "application/json", "X-Ranktune-Steer": SECRET};
          const ways = [{method: "POST", body, mode: "no-cors"}, {method: "POST", body, headers}, {method: "POST", body, headers: {"Content-Type": "text/plain"}, mode: "no-cors"},
                        {method: "POST", body, headers, mode: "no-cors"}, {mode: "no-cors"}];
          Promise.allSettled(ways.map((way) => fetch(ADDRESS, way))).then((ended) => {
            const form = document.createElement("form");
            Object.assign(form, {method: "post", action: ADDRESS, enctype: "text/plain", target: "frame"});
            const field = document.createElement("input");
            [field.name, field.value] = ['{"verb": "cancel", "trial": 0, "x": "', '"}'];
            form.append(field);
            document.body.append(form);
            document.querySelector("iframe").onload = () => done(ended.map((each) => each.value ? each.value.type : "failed"));
            form.submit();
          });
        })""".replace("SECRET", json.dumps(self.secret)).replace("ADDRESS", json.dumps(address))
        with self.browse() as browser:
            # Another port of this machine is the same site but another origin; localhost is another site.
            for host in ("127.0.0.1", "localhost"):
                browser.call("Page.navigate", url=f"http://{host}:{other.server_port}/")
                browser.wait_for(f"document.title === 'other' && location.hostname === '{host}' && document.readyState === 'complete'")
                self.assertEqual(browser.run(forge), ["opaque", "failed", "opaque", "opaque", "opaque"])  # it cannot even read the refusals
        self.assertFalse((self.cwd / "one/control").exists())


class Controls(Steer):
    def test_a_request_to_a_study_that_nobody_runs_is_that_of_the_verb(self):
        self.interrupted("one")
        self.steers("one")
        for request, said in (({"verb": "pause", "trial": 0}, "pause trial #0"), ({"verb": "resume", "trial": 0}, "resume trial #0"), ({"verb": "cancel", "trial": 1}, "cancel trial #1"),
                              ({"verb": "add", "settings": ["lr=0.25", "a=0.5"]}, "add 1 trial: lr=0.25 a=0.5"), ({"verb": "add", "settings": ["a=0.5"]}, "add 1 trial: a=0.5")):
            status, words = self.post(request)
            self.assertEqual(status, 200, words)
            self.assertRegex(words, rf"^noted     {re.escape(said)}\nnothing runs there now: it takes effect when the study goes on: ranktune run \S+one$")
        asked = self.asked("one")
        self.assertEqual([(each["verb"], each["trial"], each.get("points", [])) for each in asked],
                         [("pause", 0, []), ("resume", 0, []), ("cancel", 1, []), ("add", 0, [{"lr": 0.25, "a": 0.5}]), ("add", 0, [{"a": 0.5}])])
        self.assertEqual({each["who"] for each in asked}, {asked[0]["who"]})
        self.assertEqual(len({each["request"] for each in asked}), 5)
        words = self.ranktune("pause", "one", "0")
        self.assertEqual(self.asked("one")[-1]["who"], asked[0]["who"])
        self.assertEqual(words.strip(), self.post({"verb": "pause", "trial": 0})[1])

    def test_each_control_does_to_a_running_study_what_its_verb_does(self):
        run = self.running("one")
        self.steers("one")
        self.assertEqual([(each["trial"], each["state"]) for each in self.live()["trials"]], [(0, "running"), (1, "running")])
        first = self.trial(0)
        self.assertRegex(first["configuration"], r"^lr=\S+ a=\S+$")
        self.wait_until(lambda: self.trial(0)["iteration"] > first["iteration"], "a report")
        self.assertEqual(self.post({"verb": "pause", "trial": 0}), (200, "accepted  pause trial #0"))
        self.wait_until(lambda: self.trial(0)["state"] == "paused by a user", "the pause")
        self.wait_until(lambda: self.trial(2) is not None, "a trial on the ranks that are free")
        status, words = self.post({"verb": "pause", "trial": 0})
        self.assertEqual(status, 409)
        self.assertIn("pause trial #0: refused, trial #0 is paused by a user already", words)
        status, words = self.post({"verb": "cancel", "trial": 17})
        self.assertEqual(status, 409)
        self.assertIn("there is no trial #17", words)
        self.assertEqual(self.post({"verb": "cancel", "trial": 2}), (200, "accepted  cancel trial #2"))
        self.wait_until(lambda: self.json("export", "one")["trials"][2]["state"] == "stopped", "the end of trial 2")
        self.assertEqual(self.post({"verb": "resume", "trial": 0}), (200, "accepted  resume trial #0"))
        self.wait_until(lambda: self.live()["waiting"] == 1, "its wait for ranks")
        self.assertEqual(self.post({"verb": "cancel", "trial": 1}), (200, "accepted  cancel trial #1"))
        self.wait_until(lambda: self.trial(0) is not None and self.trial(0)["state"] == "running", "the trial that was resumed")
        self.assertEqual(self.post({"verb": "add", "settings": ["lr=0.25"]})[1], "accepted  add 1 trial: lr=0.25")
        status, words = self.post({"verb": "stop"})
        self.assertEqual(status, 200)
        self.assertRegex(words, r"^asked \S.* to stop: running trials checkpoint at their next report\nthen      ranktune run \S+one  # goes on$")
        self.assertEqual(run.wait(timeout=SECONDS), 75)
        self.wait_until(lambda: not self.live()["runs"], "the end")
        self.assertEqual(self.json("status", "one")["num_trials"], 5)

    def test_a_log_is_the_end_of_what_the_verb_prints_and_nothing_but_text(self):
        self.interrupted("one")
        self.steers("one")
        def log(trial):
            while (found := self.get(self.port, f"/{self.token}/log/0/{trial}"))[0].status == 503:
                time.sleep(0.05)  # another one was read a moment ago
            return found
        answer, words = log(0)
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "text/plain; charset=utf-8"))
        self.assertEqual(words.strip(), self.ranktune("logs", "one", "0").strip())
        self.assertIn("attempt 1 started", words)
        for trial, status in ((17, 404), ("x", 404), ("", 404), ("0/1", 404), (4294967296, 404)):
            self.assertEqual(log(trial)[0].status, status, trial)
        self.assertIn("17", log(17)[1])
        with open(next((self.cwd / "one/logs").glob("start-*.log")), "ab") as file:
            file.write(b"12:00:00 [#0] <script>alert(1)</script> \x1b[2J\xff end\n12:00:00 [#10] not of it\n")
        self.wait_until(lambda: r"[#0] <script>alert(1)</script> \x1b[2J\xff end" in log(0)[1], "the new lines")
        self.assertNotIn("not of it", log(0)[1])
        with open(next((self.cwd / "one/logs").glob("start-*.log")), "ab") as file:
            file.writelines(b"12:00:00 [#0] line %d\n" % i for i in range(20000))
        self.wait_until(lambda: "line 19999" in log(0)[1], "the newest line")
        words = log(0)[1]
        self.assertLess(len(words), 70000)
        self.assertRegex(words, r"^the last 64 KiB; all of it: ranktune logs one 0\nstart-1.log: 12:00:00 \[#0\] line \d+\n")

    def test_a_head_that_does_not_answer_keeps_no_page_waiting(self):
        self.running("one")
        self.steers("one")
        pid = int(re.search(r"pid (\d+)", self.live()["standing"])[1])
        os.kill(pid, signal.SIGSTOP)
        try:
            answers = []
            threads = [threading.Thread(target=lambda i=i: answers.append(self.post({"verb": "add", "settings": [f"lr=0.{i + 1}"]}))) for i in range(4)]
            for each in threads:
                each.start()
            self.wait_until(lambda: len(self.asked("one")) == 4, "the requests")
            status, words = self.post({"verb": "resume", "trial": 0})
            self.assertTrue(status == 503 and "earlier requests wait" in words or answers, words)  # (or one of them has waited for 15 s)
            self.assertEqual(self.live()["on_ranks"], 2)
            self.assertEqual(self.get(self.port, f"/{self.token}/study/0")[0].status, 200)
        finally:
            os.kill(pid, signal.SIGCONT)
        for each in threads:
            each.join()
        self.assertEqual({status for status, _ in answers}, {200})
        self.assertEqual(self.post({"verb": "pause", "trial": 0}), (200, "accepted  pause trial #0"))


class InABrowser(Steer):
    def row(self, trial):
        return f'#live-trials li[data-trial="{trial}"]'

    def press(self, selector, text):
        """A click on the button with this text, where a finger meets it and nothing else. In one step: rows may move meanwhile."""
        found = f"[...document.querySelectorAll({json.dumps(selector + ' button')})].find(each => each.textContent === {json.dumps(text)})"
        self.browser.wait_for(found, seconds=SECONDS)
        left, right, height, met = self.browser.run(f"""(() => {{
          const button = {found};
          button.scrollIntoView({{block: "center"}});
          const box = button.getBoundingClientRect();
          const met = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2) === button;
          button.focus();
          button.click();
          return [box.left, box.right, box.height, met];
        }})()""")
        self.assertTrue(met, f"something covers {text}")
        self.assertGreaterEqual(left, 0)
        self.assertLessEqual(right, self.browser.run("innerWidth"))
        if self.width < 600:
            self.assertGreaterEqual(height, 44, text)

    def pick_a_trial(self):
        """A click on the first row of the table, as often as the page is built anew before it takes effect."""
        self.browser.wait_for("(document.querySelector('#trials tbody tr').click(), document.querySelector('[aria-label=\"One trial\"] h3') !== null)", seconds=SECONDS)

    def says(self, words):
        self.browser.wait_for(f"document.querySelector('#said pre').textContent.includes({json.dumps(words)})", seconds=SECONDS)

    def picture(self, name):
        if where := os.environ.get("RANKTUNE_PICTURES"):
            self.browser.settle()
            self.browser.screenshot(pathlib.Path(where) / f"steer-{self.width}-{name}.png")

    def shows(self, selector, words):
        self.browser.wait_for(f"document.querySelector({json.dumps(selector)})?.textContent.includes({json.dumps(words)})", seconds=SECONDS)

    def test_every_control_on_a_wide_screen(self):
        self.every_control(1400)

    def test_every_control_on_a_narrow_screen(self):
        self.every_control(390)

    def every_control(self, width):
        run = self.running("one")
        self.steers("one")
        self.width = width
        with self.browse(width=width, height=900, mobile=width < 600) as self.browser:
            browser = self.browser
            browser.call("Page.navigate", url=f"http://127.0.0.1:{self.port}/{self.token}/study/0")
            browser.wait_for("document.documentElement?.dataset.ready === 'yes'")
            self.shows(self.row(0), "#0 running")
            # A row goes on by itself, and so does its clock.
            iteration = f"Number(document.querySelector('{self.row(0)} [role=progressbar]').getAttribute('aria-valuenow'))"
            seen = browser.run(iteration)
            browser.wait_for(f"{iteration} > {seen}", seconds=SECONDS)
            self.assertRegex(browser.run(f"document.querySelector('{self.row(0)}').textContent"), r"#0 running\s*lr=\S+\s+a=\S+?iteration \d+ of 100,000\s*score -?\d\S* reported \S.* ago")
            self.picture("running")
            # Pause and resume.
            self.press(self.row(0), "Pause")
            self.says("accepted  pause trial #0")
            self.shows(self.row(0), "#0 paused by a user")
            self.picture("paused")
            self.press(self.row(0), "Resume")
            self.says("accepted  resume trial #0")
            self.shows(self.row(0), "#0 waits for ranks")
            # What ends work is asked twice, and No is what Enter and Escape choose.
            self.press(self.row(1), "Cancel")
            self.shows(self.row(1), "Cancel trial 1? It ends for good.")
            self.picture("cancel")
            self.assertEqual(browser.run("document.activeElement.textContent"), "No")
            browser.press("Escape", 27)
            self.press(self.row(1), "Cancel")
            self.press(self.row(1), "No")
            self.assertEqual(browser.run("document.activeElement.textContent"), "Cancel")
            self.assertNotIn("cancel", browser.run("document.querySelector('#said pre').textContent"))
            self.press(self.row(1), "Cancel")
            self.press(self.row(1), "Yes, end it")
            self.says("accepted  cancel trial #1")
            browser.wait_for(f"document.querySelector('{self.row(1)}') === null", seconds=SECONDS)
            # A trial is added; a mistake names what is accepted, and what was typed stays.
            self.press("#steer > .controls", "Add a trial")
            self.press("#add-trial", "Add it")
            self.says("add: give at least one value")
            browser.run("document.querySelector('#add-trial input').focus()")
            self.assertEqual(browser.run("document.activeElement.name"), "lr")
            browser.type("7")
            self.press("#add-trial", "Add it")
            self.says("lr: 7.0 is no value of loguniform(0.0001, 1.0)")
            self.assertEqual(browser.run("document.querySelector('#said').className + document.querySelector('#add-trial input').value"), "refused7")
            self.picture("add")
            version = browser.run("document.documentElement.dataset.version")
            browser.wait_for(f"document.documentElement.dataset.version !== '{version}'", seconds=SECONDS)  # the report below is built again
            self.assertEqual(browser.run("document.querySelector('#add-trial input').value"), "7")
            browser.run("document.querySelector('#add-trial input').value = '0.25'")
            self.press("#add-trial", "Add it")
            self.says("accepted  add 1 trial: lr=0.25")
            browser.wait_for("document.getElementById('add-trial').hidden", seconds=SECONDS)
            # The log of a trial, read again while it is open.
            self.press(self.row(0), "Log")
            self.shows("#trial-log pre", "trial #0: ")
            with open(next((self.cwd / "one/logs").glob("start-*.log")), "a") as file:
                file.write("12:00:00 [#0] <b>said later</b>\n")
            self.shows("#trial-log pre", "<b>said later</b>")
            self.picture("log")
            self.press("#trial-log", "Close")
            self.assertTrue(browser.run("document.getElementById('trial-log').hidden"))
            # The same controls stand beside a trial that is picked in the table; one that has ended has its log.
            self.pick_a_trial()
            picked = browser.run("document.querySelector('[aria-label=\"One trial\"] h3').textContent.match(/#(\\d+)/)[1]")
            self.press('[aria-label="One trial"] .buttons', "Log")
            self.shows("#trial-log pre", f"trial #{picked}: ")
            self.assertLessEqual(browser.run("document.documentElement.scrollWidth"), width)
            # The study is stopped, after a question.
            self.press("#steer > .controls", "Stop the study")
            self.shows("#steer > .controls", "Stop the study? Running trials save")
            self.picture("stop")
            self.press("#steer > .controls", "No")
            self.assertIsNone(run.poll())
            self.press("#steer > .controls", "Stop the study")
            self.press("#steer > .controls", "Yes, stop it")
            self.says("to stop: running trials checkpoint at their next report")
            self.assertEqual(run.wait(timeout=SECONDS), 75)
            self.shows("#steer .warning", "Nothing runs now: requests take effect when the study goes on.")
            browser.wait_for("![...document.querySelectorAll('#steer button')].some(each => each.textContent === 'Stop the study')", seconds=SECONDS)
            self.picture("stopped")
            outside = [url for url in browser.requests if not url.startswith((f"http://127.0.0.1:{self.port}/{self.token}/", "about:"))]
            self.assertEqual([url for url in outside if not url.endswith("/favicon.ico")], [])
            # The value that was refused, and a log that was asked for while the one before was read.
            self.assertTrue(all("409" in line or ("503" in line and "/log/0/" in line) for line in browser.console), browser.console)
        trials = self.json("export", "one")["trials"]
        self.assertEqual(trials[1]["state"], "stopped")
        self.assertEqual(self.json("status", "one")["num_trials"], 5)

    def test_a_study_that_has_ended_shows_why_there_are_no_controls(self):
        self.finished("one")
        self.steers("one")
        self.width = 390
        with self.browse(width=390, height=900, mobile=True) as self.browser:
            browser = self.browser
            browser.call("Page.navigate", url=f"http://127.0.0.1:{self.port}/{self.token}/study/0")
            browser.wait_for("document.documentElement?.dataset.ready === 'yes'")
            self.shows("#steer .warning", "No controls: the study in ")
            self.assertEqual(browser.run("[...document.querySelectorAll('#steer button')].filter(each => each.offsetParent !== null).length"), 0)
            self.pick_a_trial()
            self.assertEqual(browser.run("[...document.querySelectorAll('[aria-label=\"One trial\"] .buttons button')].map(each => each.textContent)"), ["Log"])
            self.press('[aria-label="One trial"] .buttons', "Log")
            self.shows("#trial-log pre", "finished")
            self.picture("ended")
            self.assertEqual(browser.console, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
