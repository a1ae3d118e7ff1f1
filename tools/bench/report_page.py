#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How large a report is, how soon it shows, and how fast it answers a brush, in headless Chromium.

usage: report_page.py RANKTUNE [TRIALS...]      default: 300 10000
Prints a line per number of trials: size; time to make it; first paint; ready (everything decoded and the first charts drawn); median
and worst time from a mouse event of a brush to the frame after the one that shows its effect (two frames of 16.7 ms are waiting).
"""
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "report"))
from browser import Browser  # noqa: E402

STUDY = """[study]
name = "bench"
metric = "score"
mode = "max"
num_trials = {trials}
max_iterations = 81
seed = 4
[trainable]
builtin = "curve"
[searcher]
type = "random"
[space]
lr = "loguniform(1e-4, 1.0)"
a = "uniform(-1, 1)"
b = "uniform(-1, 1)"
c = [0.0, 0.5, 1.0]
[scheduler]
type = "asha"
"""
WATCH = """window.latencies = []; addEventListener('mousemove', () => { const began = performance.now();
    requestAnimationFrame(() => requestAnimationFrame(() => window.latencies.push(performance.now() - began))); }, true)"""


def brush(browser, label, begin, end):
    """Milliseconds of each step of a drag over a chart, in shares of its box."""
    left, top, width, height = browser.place(f'.chart[aria-label^="{label}"]')
    browser.run(WATCH)
    browser.drag((left + width * begin[0], top + height * begin[1]), (left + width * end[0], top + height * end[1]), steps=25)
    browser.settle()
    return sorted(browser.run("window.latencies"))


def main():
    ranktune = str(pathlib.Path(sys.argv[1]).resolve())
    for trials in [int(word) for word in sys.argv[2:]] or [300, 10_000]:
        with tempfile.TemporaryDirectory() as folder, Browser() as browser:
            pathlib.Path(folder, "bench.toml").write_text(STUDY.format(trials=trials))
            subprocess.run([ranktune, "simulate", "bench.toml", "--groups", "256", "-o", "bench"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            began = time.monotonic()
            subprocess.run([ranktune, "report", "bench", "-o", "page.html"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            made = time.monotonic() - began
            page = pathlib.Path(folder, "page.html")
            browser.open(page)
            paint = browser.run("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            ready = browser.run("performance.getEntriesByName('ready')[0].startTime")
            print(f"{trials:6} trials: {page.stat().st_size / 1e6:.2f} MB, made in {made:.2f} s, first paint {paint / 1000:.2f} s, ready {ready / 1000:.2f} s")
            for label, begin, end in (("Learning curves", (0.1, 0.1), (0.9, 0.95)), ("Parallel", (0.045, 0.2), (0.045, 0.85))):
                steps = brush(browser, label, begin, end)
                print(f"        brushing {label}: median {steps[len(steps) // 2]:.0f} ms, worst {steps[-1]:.0f} ms of {len(steps)}")


if __name__ == "__main__":
    main()
