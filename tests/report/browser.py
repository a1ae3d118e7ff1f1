# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that a test drives through the DevTools protocol, over two pipes: no port, no package."""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_browser():
    """The path of a Chromium; None: there is none."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page. Errors and messages of its console, and requests that are not of the page itself, are kept."""

    def __init__(self, width=1280, height=900, dark=False, mobile=False, scale=1.0):
        self.profile = tempfile.mkdtemp(prefix="ranktune-browser-")
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        self.console = []
        self.requests = []
        self.number = 0
        self.buffer = b""
        self.events = []

        def attach():  # descriptors 3 and 4, whatever their numbers are here
            for target, source in ((3, os.dup(to_read)), (4, os.dup(to_write))):
                os.dup2(source, target, inheritable=True)

        # On a node with little shared memory (a container) Chromium needs the first flag; as root it needs no-sandbox.
        self.process = subprocess.Popen(
            [find_browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe", "--no-first-run",
             "--disable-background-networking", "--mute-audio", f"--user-data-dir={self.profile}", f"--window-size={width},{height}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=attach)
        os.close(to_read)
        os.close(to_write)
        target = next(t for t in self.call("Target.getTargets", session=None)["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", session=None, targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)
        if dark:
            self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])

    def close(self):
        try:
            self.call("Browser.close", session=None)
        except (OSError, RuntimeError):
            pass
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- protocol

    def call(self, method, session="page", **parameters):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": parameters}
        if session == "page":
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        while True:
            answer = self.next_message(120)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.take_event(answer)

    def next_message(self, seconds):
        limit = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            if not select.select([self.read_end], [], [], max(0.0, limit - time.monotonic()))[0]:
                raise RuntimeError("the browser does not answer")
            data = os.read(self.read_end, 1 << 20)
            if not data:
                raise RuntimeError("the browser has ended")
            self.buffer += data
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def take_event(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        self.events.append(method)
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.console.append(" ".join(str(each.get("value", "")) for each in parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.console.append(f'{parameters["entry"]["text"]} {parameters["entry"].get("url", "")}'.strip())
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    # ---- what a test does

    def open(self, path, ready="document.documentElement.dataset.ready === 'yes'"):
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")
        if ready:
            self.wait_for(ready)
        self.settle()

    def run(self, script):
        """The value of an expression; a promise is awaited."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", str(result)))
        return result["result"].get("value")

    def leave_by(self, script):
        """Runs a statement that leads to another page; the answer comes before that."""
        self.run(f"void setTimeout(() => {{ {script} }})")

    def holds(self, condition):
        try:
            return self.run(f"Boolean({condition})")
        except RuntimeError as error:  # the page went, and the next one is on its way
            if "navigated" in str(error) or "context" in str(error):
                return False
            raise

    def wait_for(self, condition, seconds=60):
        limit = time.monotonic() + seconds
        while not self.holds(condition):
            if time.monotonic() > limit:
                raise RuntimeError(f"never true: {condition}; console: {self.console}")
            time.sleep(0.02)

    def settle(self):
        """Until everything asked for so far is drawn. (A headless browser may stop drawing when nothing changes.)"""
        self.run("Promise.race([new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)))),"
                 "new Promise(done => setTimeout(done, 3000))])")

    def place(self, selector, index=0):
        """The box of an element on the screen, after scrolling to it."""
        found = self.run(f"(() => {{ const e = document.querySelectorAll({json.dumps(selector)})[{index}]; if (!e) return null;"
                         "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
        if found is None:
            raise RuntimeError(f"there is no {selector}")
        self.settle()
        return self.run(f"(() => {{ const b = document.querySelectorAll({json.dumps(selector)})[{index}].getBoundingClientRect();"
                        "return [b.left, b.top, b.width, b.height]; })()")

    def mouse(self, kind, x, y, pressed=False):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left" if pressed or kind != "mouseMoved" else "none",
                  buttons=1 if pressed else 0, clickCount=1 if kind != "mouseMoved" else 0)

    def click(self, selector, index=0):
        left, top, width, height = self.place(selector, index)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, left + width / 2, top + height / 2, pressed=kind == "mousePressed")
        self.settle()

    def drag(self, start, end, steps=6):
        self.mouse("mouseMoved", *start)
        self.mouse("mousePressed", *start, pressed=True)
        for k in range(1, steps + 1):
            self.mouse("mouseMoved", start[0] + (end[0] - start[0]) * k / steps, start[1] + (end[1] - start[1]) * k / steps, pressed=True)
        self.mouse("mouseReleased", *end)
        self.settle()

    def type(self, text):
        for letter in text:
            self.call("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=letter)
        self.settle()

    def press(self, key, code=0):
        for kind in ("keyDown", "keyUp"):
            text = "\r" if key == "Enter" and kind == "keyDown" else ""
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **({"text": text} if text else {}))
        self.settle()

    def screenshot(self, path, top=0, height=None):
        """What is on the screen; with a height, that part of the page, from `top` on."""
        more = {}
        if height:
            more = {"captureBeyondViewport": True, "clip": {"x": 0, "y": top, "width": self.run("innerWidth"), "height": height, "scale": 1}}
        data = self.call("Page.captureScreenshot", format="png", **more)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def scroll_through(self):
        """Brings every part of the page into view once, so that all of it is drawn."""
        for top in range(0, self.run("document.documentElement.scrollHeight"), 600):
            self.run(f"scrollTo(0, {top})")
            self.settle()
        self.run("scrollTo(0, 0)")
        self.settle()

    def pdf(self, path):
        data = self.call("Page.printToPDF", printBackground=True)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
