#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTML report in a browser: every control, with mouse and keyboard; what it loads, how large it is, and what it does with hostile names.

usage: page_test.py RANKTUNE SOURCE_ROOT [TEST...]      skipped (77) where there is no Chromium, or no d3
"""
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, find_browser  # noqa: E402

RANKTUNE, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
HOSTILE = "</script><img src=x onerror=alert(1)>"

STUDY = """[study]
name = "page"
metric = "score"
mode = "max"
num_trials = {trials}
max_iterations = {iterations}
seed = 4
[trainable]
builtin = "curve"
[space]
lr = "loguniform(1e-4, 1.0)"
a = "uniform(-1, 1)"
b = [-1.0, 0.0, 1.0]
[searcher]
type = "random"
{more}
"""


def ranktune(*words, directory):
    done = subprocess.run([RANKTUNE, *words], cwd=directory, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"{words}: {done.stderr}")
    return done.stdout


def simulated(directory, name, trials, iterations, groups, more, faults=None):
    """Simulates a study, and returns the path of its report."""
    (directory / f"{name}.toml").write_text(STUDY.format(trials=trials, iterations=iterations, more=more))
    words = ["simulate", f"{name}.toml", "--groups", str(groups), "-o", name, "--fresh"]
    if faults:
        (directory / "faults.toml").write_text(faults)
        words += ["--faults", "faults.toml"]
    ranktune(*words, directory=directory)
    ranktune("report", name, "-o", f"{name}.html", directory=directory)
    return directory / f"{name}.html"


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="ranktune-page-")
        cls.directory = pathlib.Path(cls.folder.name)
        cls.asha = simulated(cls.directory, "asha", 300, 27, 16, '[scheduler]\ntype = "asha"', '[trials]\nrate = 0.3\n[job]\nwalltime = "1h"\nwait = "5m"\n')
        if "script-src 'none'" in cls.asha.read_text():
            raise unittest.SkipTest("ranktune was built without d3 (Debian: node-d3)")
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def setUp(self):
        self.browser.console.clear()
        self.browser.requests.clear()
        self.browser.call("Emulation.setEmulatedMedia", media="", features=[])
        self.browser.call("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)

    def tearDown(self):
        # Chromium remarks that this test reads canvases.
        self.assertEqual([line for line in self.browser.console if "willReadFrequently" not in line], [])
        self.assertEqual([url for url in self.browser.requests if not url.startswith(("file:", "about:"))], [], "the page loads something")

    def text(self, selector):
        return self.browser.run(f"(document.querySelector({json.dumps(selector)}) || {{textContent: ''}}).textContent")

    def selected(self):
        """How many trials the bar says are selected; None: it is hidden."""
        if self.browser.run("document.getElementById('selection').hidden"):
            return None
        return int(self.text("#selection").split()[0].replace(",", ""))

    def chart(self, label):
        return f'.chart[aria-label^="{label}"]'

    # ---- what is on it

    def test_every_part_is_drawn_and_named(self):
        self.browser.open(self.asha)
        self.browser.scroll_through()
        headings = self.browser.run("[...document.querySelectorAll('h2')].map(h => h.textContent)")
        self.assertEqual(headings, ["Best result", "Learning curves", "Parallel coordinates", "Which hyper-parameters matter", "Rungs", "Groups in time",
                                    "Trials", "How it ran"])
        self.assertEqual(len(self.browser.run("[...document.querySelectorAll('section')].filter(s => !s.getAttribute('aria-labelledby'))")), 0)
        empty = self.browser.run("""[...document.querySelectorAll('.chart')].filter(chart => {
            const inked = [...chart.querySelectorAll('canvas')].some(c => new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer).some(p => p));
            return !inked && !chart.querySelector('path.best'); }).map(chart => chart.getAttribute('aria-label'))""")
        self.assertEqual(empty, [], "nothing is drawn")

    def test_it_says_what_the_terminal_says(self):
        best = json.loads(ranktune("best", "asha", "--format", "json", directory=self.directory))["best"]
        self.browser.open(self.asha)
        self.assertEqual(self.text(".big"), f"{best['value']:.4f}")
        copied = json.loads(self.text("pre"))
        self.assertEqual(copied, best["configuration"])
        # Its place at the first rung, in a study that compares every trial there.
        data = json.loads(self.browser.run("document.getElementById('data').textContent"))["studies"][0]
        rung = data["rungs"][0]
        better = sum(value > rung["value"][rung["trial"].index(best["trial"])] for value in rung["value"])
        self.assertRegex(self.text("#places"), rf": {better + 1} of {len(rung['trial'])} at iteration {rung['iteration']}[,.]")
        self.assertIn("One run of each", self.text("#best-so-far"))
        trials = json.loads(ranktune("export", "asha", "--format", "json", directory=self.directory))["trials"]
        order = sorted((trial for trial in trials if trial["best"]), key=lambda trial: -trial["best"]["value"])
        self.assertEqual(self.browser.run("[...document.querySelectorAll('#best-so-far tbody tr')].slice(0, 5).map(row => row.firstChild.textContent)"),
                         [f"#{trial['id']}" for trial in order[:5]])
        self.assertIn("simulated", self.text(".warning"))

    def test_the_copied_study_file_is_what_replay_prints(self):
        printed = ranktune("replay", "asha", "--schedule", "best", directory=self.directory)
        self.browser.open(self.asha)
        self.browser.click("[aria-label=Format] button", 1)
        body = "".join(line for line in printed.splitlines(keepends=True) if not line.startswith("#"))
        self.assertEqual(self.text("pre"), body)
        self.browser.click("[aria-label=Format] button", 2)
        self.assertIn("ranktune replay asha --schedule best", self.text("pre"))
        self.browser.click("button.copy")
        self.browser.wait_for("document.querySelector('.controls [role=status]').textContent !== ''")

    def test_small_and_large_screens_scroll_in_one_direction_only(self):
        for width in (360, 390, 768, 1280, 1920):
            with self.subTest(width=width):
                self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
                self.browser.open(self.asha)
                self.browser.scroll_through()
                self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)

    def check_on_screens_and_paper(self, page):
        """Phone, laptop and print, light and dark: in one width, every chart drawn, on paper always light."""
        for scheme, (width, height) in itertools.product(("light", "dark"), ((390, 844), (1280, 800))):
            with self.subTest(scheme=scheme, width=width):
                self.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
                self.browser.open(page)
                self.browser.scroll_through()
                self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)
                self.assertEqual(self.browser.run("[...document.querySelectorAll('.chart')].filter(c => c.querySelectorAll('svg *').length === 0).length"), 0)
                paper = self.browser.run("getComputedStyle(document.documentElement).getPropertyValue('--paper').trim()")
                self.assertEqual(paper, "#ffffff" if scheme == "light" else "#14181c")
        self.browser.run("addEventListener('beforeprint', () => { window.paper = getComputedStyle(document.documentElement).getPropertyValue('--paper').trim(); })")
        self.browser.pdf(self.directory / "printed.pdf")  # still in dark colours
        self.assertEqual(self.browser.run("window.paper"), "#ffffff")
        self.assertGreater((self.directory / "printed.pdf").stat().st_size, 20_000)

    def test_dark_paper_gets_light_ink(self):
        self.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.browser.open(self.asha)
        paper, ink = self.browser.run("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
        light = lambda colour: sum(int(c) for c in colour[4:-1].split(",")) / 3  # noqa: E731
        self.assertLess(light(paper), 60)
        self.assertGreater(light(ink), 200)

    def test_paper_has_every_picture_in_light_colours(self):
        self.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.browser.open(self.asha)
        self.browser.run("addEventListener('beforeprint', () => { window.ink = getComputedStyle(document.documentElement).getPropertyValue('--ink').trim(); })")
        self.browser.pdf(self.directory / "asha.pdf")
        undrawn = self.browser.run("[...document.querySelectorAll('.chart')].filter(c => c.querySelectorAll('svg *').length === 0).length")
        self.assertEqual(undrawn, 0)
        self.assertEqual(self.browser.run("[window.ink, document.documentElement.className]"), ["#1c2126", ""])
        self.assertGreater((self.directory / "asha.pdf").stat().st_size, 50_000)

    # ---- selecting

    def test_a_box_over_the_curves_selects_in_all_parts(self):
        self.browser.open(self.asha)
        self.assertIsNone(self.selected())
        left, top, width, height = self.browser.place(self.chart("Learning curves"))
        self.browser.drag((left + width * 0.6, top + 30), (left + width * 0.9, top + height * 0.6))
        count = self.selected()
        self.assertTrue(0 < count < 300)
        finished = self.browser.run("[...document.querySelectorAll('#trials tbody tr')].map(r => r.children[3].textContent)")
        self.assertTrue(all(int(iterations) > 13 for iterations in finished), finished)
        self.browser.place(self.chart("Parallel"))
        self.assertTrue(self.browser.run(f"document.querySelector({json.dumps(self.chart('Parallel'))}).classList.contains('dimmed')"))
        self.browser.place(self.chart("Learning curves"))
        self.assertEqual(self.selected(), count, "a part that was out of view keeps its box")
        self.browser.click("#clear")
        self.assertIsNone(self.selected())
        self.browser.place(self.chart("Learning curves"))
        self.assertEqual(self.browser.run("document.querySelectorAll('.brush .selection:not([style*=\"display: none\"])').length"), 0)

    def test_ranges_on_two_axes_narrow_it_down(self):
        self.browser.open(self.asha)
        left, top, width, height = self.browser.place(self.chart("Parallel"))
        first = left + 50
        last = left + width - 70
        self.browser.drag((first, top + 60), (first, top + height * 0.5))
        by_lr = self.selected()
        self.assertTrue(0 < by_lr < 300)
        self.browser.drag((last, top + 50), (last, top + height * 0.5))
        both = self.selected()
        self.assertTrue(0 < both < by_lr)
        self.browser.click("#clear")
        self.assertIsNone(self.selected())

    def test_the_search_box_selects_by_words_numbers_and_conditions(self):
        self.browser.open(self.asha)
        lr = self.browser.run("JSON.parse(document.getElementById('data').textContent).studies[0].trials.values[0]")
        self.browser.click("#search")
        self.browser.type("lr<0.01 iterations>=1")
        self.assertEqual(self.selected(), sum(1 for value in lr if value < 0.01))
        self.browser.run("const s = document.getElementById('search'); s.value = '#17'; s.dispatchEvent(new Event('input'))")
        self.browser.settle()
        self.assertEqual(self.selected(), 1)
        self.browser.run("document.getElementById('search').value = 'state=failed'; document.getElementById('search').dispatchEvent(new Event('input'))")
        self.browser.settle()
        failed = json.loads(ranktune("status", "asha", "--format", "json", directory=self.directory))["states"]["failed"]
        self.assertGreater(failed, 0)
        self.assertEqual(self.selected(), failed)
        self.browser.click("#clear")
        self.assertEqual(self.browser.run("document.getElementById('search').value"), "")

    def test_the_legend_hides_and_the_axes_change(self):
        self.browser.open(self.asha)
        chart = self.chart("Learning curves")
        ink = f"(() => {{ const c = document.querySelector({json.dumps(chart)} + ' canvas'); return new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer).filter(p => p).length; }})()"
        self.browser.place(chart)
        before = self.browser.run(ink)
        self.browser.click(".legend button", 1)
        self.assertLess(self.browser.run(ink), before)
        self.browser.click(".legend button", 1)
        self.assertEqual(self.browser.run(ink), before)
        low = "Number(document.querySelectorAll('section:nth-of-type(2) .axis')[1].querySelector('.tick text').textContent)"
        lowest = self.browser.run(low)
        self.browser.click('[aria-label="Values"] button', 1)
        self.assertGreater(self.browser.run(low), lowest)
        self.browser.click('section:nth-of-type(2) [aria-label="Horizontal axis"] button', 1)
        self.assertIn("study time", self.text(chart))
        self.browser.click('[aria-label="Horizontal axis"] button', 1)
        self.assertIn("iterations, all trials", self.text(self.chart("Best score")))

    def test_the_table_sorts_and_turns_its_pages(self):
        self.browser.open(self.asha)
        first = "document.querySelector('#trials tbody td').textContent"
        self.assertEqual(self.browser.run(first), "#" + str(json.loads(ranktune("best", "asha", "--format", "json", directory=self.directory))["best"]["trial"]))
        self.browser.click("#trials th button", 0)
        self.assertEqual(self.browser.run(first), "#0")
        self.browser.click("#trials th button", 0)
        self.assertEqual(self.browser.run(first), "#299")
        self.browser.click(".pager button", 1)
        self.assertEqual(self.browser.run(first), "#274")
        self.browser.click(".pager button", 0)
        self.assertEqual(self.browser.run(first), "#299")
        for column in range(self.browser.run("document.querySelectorAll('#trials th button').length")):
            self.browser.click("#trials th button", column)

    # ---- one trial

    def test_a_trial_is_picked_with_the_mouse_and_with_the_keyboard(self):
        self.browser.open(self.asha)
        self.browser.click("#trials tbody tr", 2)
        name = self.browser.run("document.querySelectorAll('#trials tbody td:first-child')[2].textContent")
        self.assertIn(f"Trial {name}", self.text("[aria-label='One trial']"))
        self.assertIn("from scratch", self.text("[aria-label='One trial']"))
        self.browser.click("[aria-label='One trial'] button")
        self.assertEqual(self.text("[aria-label='One trial']"), "")
        self.browser.run("document.querySelectorAll('#trials tbody tr')[1].focus()")
        self.browser.press("Enter", 13)
        self.assertIn("Trial #", self.text("[aria-label='One trial']"))

    def test_a_curve_and_a_bar_of_the_timeline_can_be_picked(self):
        self.browser.open(self.asha)
        for label, across, down in (("Learning curves", 0.95, None), ("Use of", 0.2, 0.6)):
            with self.subTest(chart=label):
                left, top, width, height = self.browser.place(self.chart(label))
                ys = [down] if down else [0.05 + 0.02 * k for k in range(30)]
                for y in ys:
                    self.browser.mouse("mouseMoved", left + width * across, top + height * y)
                    self.browser.settle()
                    if self.browser.run(f"!document.querySelector({json.dumps(self.chart(label))} + ' .tip').hidden"):
                        break
                self.assertIn("#", self.text(self.chart(label) + " .tip"))
                for kind in ("mousePressed", "mouseReleased"):
                    self.browser.mouse(kind, left + width * across, top + height * y, pressed=kind == "mousePressed")
                self.browser.settle()
                self.assertIn("Trial #", self.text("[aria-label='One trial']"))
                self.browser.click("[aria-label='One trial'] button")

    def test_everything_can_be_reached_by_tab(self):
        self.browser.open(self.asha)
        reached = set()
        for _ in range(120):
            self.browser.press("Tab", 9)
            reached.add(self.browser.run("document.activeElement.tagName + ' ' + (document.activeElement.getAttribute('aria-label') || document.activeElement.id || document.activeElement.textContent.slice(0, 12))"))
        for wanted in ("A Best result", "BUTTON Copy", "BUTTON iterations tr".strip()[:19], "INPUT search", "BUTTON Next", "DIV Table of trials"):
            self.assertTrue(any(each.startswith(wanted) for each in reached), f"{wanted}: {sorted(reached)}")
        self.assertTrue(any(each.startswith("TR") for each in reached))

    # ---- every control

    SHOWN = """(() => { const ink = [...document.querySelectorAll('canvas')].map(c => c.width && c.height ? c.toDataURL() : '').join();
        const text = document.body.innerHTML + ink + getSelection() + scrollX; let hash = 0;
        for (let i = 0; i < text.length; ++i) hash = (hash * 31 + text.charCodeAt(i)) | 0;
        return hash + ' ' + text.length; })()"""

    def test_every_button_changes_what_is_shown(self):
        self.browser.open(self.asha)
        self.browser.scroll_through()
        self.browser.click("#trials tbody tr", 1)  # so that there is a trial to close, and a selection to clear
        self.browser.run("const s = document.getElementById('search'); s.value = 'iterations>=1'; s.dispatchEvent(new Event('input'))")
        self.browser.settle()
        names = self.browser.run("[...document.querySelectorAll('button')].map(b => (b.closest('[aria-label]')?.getAttribute('aria-label') || '') + ': ' + b.textContent)")
        self.assertGreater(len(names), 25)
        last = {"One trial: Close ": 1, "One trial: Close": 1, ": Clear selection": 2}  # they take buttons away
        idle = []
        for index in sorted(range(len(names)), key=lambda i: last.get(names[i], 0)):
            place = names.index(names[index]) if names[index] in last else index
            button = f"document.querySelectorAll('button')[{place}]"
            if names[index] in last:
                found = self.browser.run(f"[...document.querySelectorAll('button')].findIndex(b => b.textContent.trim() === {json.dumps(names[index].split(': ')[1].strip())})")
                button, place = f"document.querySelectorAll('button')[{found}]", found
            if self.browser.run(f"{button}.disabled || ({button}.getAttribute('aria-pressed') === 'true' && {button}.parentElement.className === 'group')"):
                idle.append(index)  # chosen already, or nothing to turn to
                continue
            with self.subTest(button=names[index]):
                before = self.browser.run(self.SHOWN)
                self.browser.click("button", place)
                self.assertNotEqual(self.browser.run(self.SHOWN), before)
        # Now that others were chosen, what was chosen at first can be chosen again.
        self.browser.run("document.querySelectorAll('button')[0].click()")
        for index in idle:
            button = f"document.querySelectorAll('button')[{index}]"
            if self.browser.run(f"{button}?.getAttribute('aria-pressed') === 'false'"):
                with self.subTest(button=names[index]):
                    self.browser.click("button", index)
                    self.assertEqual(self.browser.run(f"{button}.getAttribute('aria-pressed')"), "true")

    def test_links_of_the_contents_lead_to_their_parts(self):
        self.browser.open(self.asha)
        count = self.browser.run("document.querySelectorAll('nav a').length")
        self.assertEqual(count, 8)
        for index in range(count):
            self.browser.run("scrollTo(0, 0)")
            self.browser.click("nav a", index)
            target = "document.getElementById(location.hash.slice(1))"
            self.assertEqual(self.browser.run(f"{target}.textContent"), self.browser.run(f"document.querySelectorAll('nav a')[{index}].textContent"))
            self.assertTrue(self.browser.run(f"(() => {{ const b = {target}.getBoundingClientRect(); return b.top >= -1 && b.top < innerHeight; }})()"))

    def test_points_of_slices_and_of_the_map_show_and_pick_trials(self):
        self.browser.open(self.asha)
        for label in ("score against lr", "Trials by"):
            with self.subTest(chart=label):
                left, top, width, height = self.browser.place(self.chart(label))
                tip = f"document.querySelector({json.dumps(self.chart(label))} + ' .tip')"
                for k in range(400):
                    x, y = left + width * (0.1 + 0.85 * (k * 0.618034 % 1)), top + height * (0.1 + 0.7 * k / 400)
                    self.browser.mouse("mouseMoved", x, y)
                    if not self.browser.run(f"{tip}.hidden"):
                        break
                name = self.browser.run(f"{tip}.textContent").split(":")[0]
                self.assertRegex(name, r"^#\d+")
                for kind in ("mousePressed", "mouseReleased"):
                    self.browser.mouse(kind, x, y, pressed=kind == "mousePressed")
                self.browser.settle()
                self.assertIn(f"Trial {name}", self.text("[aria-label='One trial']"))
                self.browser.mouse("mouseMoved", 2, 2)
                self.browser.settle()
                self.assertTrue(self.browser.run(f"{tip}.hidden"), "the mouse has left")

    def test_a_row_under_the_mouse_is_marked_in_the_curves(self):
        self.browser.open(self.asha)
        self.browser.call("Emulation.setDeviceMetricsOverride", width=1280, height=6000, deviceScaleFactor=1, mobile=False)
        self.browser.settle()
        ink = f"document.querySelectorAll({json.dumps(self.chart('Learning curves'))} + ' canvas')[1].toDataURL()"
        left, top, width, height = self.browser.place("#trials tbody tr", 3)
        before = self.browser.run(ink)
        self.browser.mouse("mouseMoved", left + 20, top + height / 2)
        self.browser.settle()
        self.assertNotEqual(self.browser.run(ink), before)

    def test_values_over_decades_can_have_a_logarithmic_axis(self):
        text = self.asha.read_text()
        begin = text.index('<script type="application/json" id="data">') + len('<script type="application/json" id="data">')
        end = text.index("</script>", begin)
        data = json.loads(text[begin:end])
        curves = data["studies"][0]["curves"]
        curves["value"] = [10.0 ** (-(i % 5)) for i in range(len(curves["value"]))]
        page = self.directory / "decades.html"
        page.write_text(text[:begin] + json.dumps(data) + text[end:])
        self.browser.open(page)
        ticks = f"[...document.querySelectorAll({json.dumps(self.chart('Learning curves'))} + ' .axis')][1].textContent"
        self.browser.place(self.chart("Learning curves"))
        linear = self.browser.run(ticks)
        self.browser.click('[aria-label="Vertical axis"] button', 1)
        self.assertNotEqual(self.browser.run(ticks), linear)
        self.browser.click('[aria-label="Vertical axis"] button', 0)
        self.assertEqual(self.browser.run(ticks), linear)

    def test_the_colours_follow_the_screen(self):
        self.browser.open(self.asha)
        self.browser.place(self.chart("Parallel"))
        ink = f"document.querySelector({json.dumps(self.chart('Parallel'))} + ' canvas').toDataURL()"
        light = self.browser.run(ink)
        self.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.browser.settle()
        self.assertNotEqual(self.browser.run(ink), light)

    # ---- other studies

    def test_a_population_shows_its_lineage(self):
        (self.directory / "pbt.toml").write_text((ROOT / "jobs/digits-pbt/digits-pbt.toml").read_text())
        (self.directory / "digits.h5").write_bytes((ROOT / "jobs/digits/digits.h5").read_bytes())
        ranktune("simulate", "pbt.toml", "--groups", "8", "-o", "pbt", directory=self.directory)
        ranktune("report", "pbt", "-o", "pbt.html", directory=self.directory)
        self.browser.open(self.directory / "pbt.html")
        self.browser.place(self.chart("Lineage"))
        self.assertTrue(self.browser.run("document.querySelector('.chart[aria-label^=\"Schedule\"] path.best').getAttribute('d').length > 20"))
        self.browser.run("const box = document.querySelector('select'); box.value = '1'; box.dispatchEvent(new Event('change'))")
        self.browser.settle()
        self.assertIn("momentum", self.text('.chart[aria-label^="Schedule"]'))
        # 16 trials say nothing about importance.
        self.assertIn("Too few trials", self.browser.run("document.body.textContent"))

    def test_several_objectives_show_their_front_in_each_plane(self):
        """Three metrics of a real program, as simulations have one."""
        (self.directory / "trial.sh").write_text(
            """awk -v x="$1" -v y="$2" 'BEGIN { printf "{\\"report\\": {\\"a\\": %.6f, \\"b\\": %.6f, \\"c\\": %.6f}}\\n", x, x * x + y, (1 - y) * (1 - y) }' >&"$RANKTUNE_FD"\n""")
        (self.directory / "three.toml").write_text("""[study]
name = "goals"
metric = ["a", "b", "c"]
mode = ["max", "min", "min"]
num_trials = 24
max_iterations = 1
[trainable]
command = "sh trial.sh {x} {y}"
checkpoints = false
[space]
x = "uniform(0, 1)"
y = "uniform(0, 1)"
""")
        ranktune("run", "three.toml", "--local", "2", "--fresh", "-o", "goals", directory=self.directory)
        ranktune("report", "goals", "-o", "goals.html", directory=self.directory)
        front = json.loads(ranktune("best", "goals", "--format", "json", directory=self.directory))["front"]
        self.browser.open(self.directory / "goals.html")
        left, top, width, height = self.browser.place(self.chart("Trials by a and b"))
        dots = "[...document.querySelectorAll('circle.front')].map(c => [+c.getAttribute('cx'), +c.getAttribute('cy')])"
        first = self.browser.run(dots)
        self.assertEqual(len(first), len(front))
        self.assertTrue(all(0 <= x <= width and 0 <= y <= height for x, y in first), first)
        self.browser.run("const box = document.querySelector('select[aria-label=\"Objectives to draw\"]'); box.value = '1 2'; box.dispatchEvent(new Event('change'))")
        self.browser.settle()
        self.assertNotEqual(self.browser.run(dots), first)
        self.assertRegex(self.text(self.chart("Trials by b and c")), "b.*c|c.*b")
        x, y = self.browser.run(dots)[0]
        self.browser.mouse("mouseMoved", left + x, top + y)
        self.browser.settle()
        self.assertRegex(self.browser.run("document.body.textContent"), r"#\d+[^:]*: a [-.0-9]+, b [-.0-9]+, c [-.0-9]+")

    def test_copies_of_a_configuration_are_one_row(self):
        page = simulated(self.directory, "thrice", 12, 9, 4, "repeats = 3")
        trials = json.loads(ranktune("export", "thrice", "--format", "json", directory=self.directory))["trials"]
        means = {first: statistics.mean(trial["best"]["value"] for trial in trials[first:first + 3]) for first in range(0, 12, 3)}
        order = sorted(means, key=means.get, reverse=True)
        self.browser.open(page)
        rows = self.browser.run("[...document.querySelectorAll('#best-so-far table')[0].querySelectorAll('tbody tr')].map(row => [...row.children].map(cell => cell.textContent))")
        self.assertEqual([row[0] for row in rows], [f"#{first} to #{first + 2}" for first in order])
        for row, first in zip(rows, order):
            self.assertAlmostEqual(float(row[1]), means[first], delta=2e-4)
            self.assertEqual(row[3], "3")
        self.assertTrue(self.text(".big").startswith(rows[0][1]), (self.text(".big"), rows))
        self.assertIn("Up to 3 runs of each", self.text("#best-so-far"))
        self.assertNotIn("One run of each", self.text("main"))

    def test_three_trials_make_a_page_too(self):
        page = simulated(self.directory, "three", 3, 9, 2, "")
        self.browser.open(page)
        self.browser.scroll_through()
        self.assertIn("3 trials of 3", self.text("main"))
        self.assertNotIn("Rungs", self.browser.run("[...document.querySelectorAll('h2')].map(h => h.textContent)"))
        self.check_on_screens_and_paper(page)

    def test_three_hundred_trials_fit_every_screen_and_paper(self):
        self.check_on_screens_and_paper(self.asha)

    def test_several_studies_side_by_side(self):
        simulated(self.directory, "fifo", 20, 27, 8, "")
        ranktune("report", "asha", "fifo", "-o", "both.html", directory=self.directory)
        self.browser.open(self.directory / "both.html")
        self.assertEqual(self.text("h1"), "2 studies side by side")
        self.assertEqual(self.browser.run("document.querySelectorAll('.chart[aria-label^=\"Best score\"] path.best').length"), 2)
        self.browser.run("const box = document.querySelector('select'); box.value = '1'; box.dispatchEvent(new Event('change'))")
        self.browser.settle()
        self.browser.scroll_through()
        self.assertIn("20 trials of 20", self.text("main"))

    def test_names_and_messages_are_text(self):
        text = self.asha.read_text()
        page = self.directory / "hostile.html"
        raw = json.dumps(HOSTILE)[1:-1].replace("<", "\\u003c")
        found = text.index('<script type="application/json" id="data">')
        data = text[found:].replace('"name":"page"', f'"name":"{raw}"').replace('"texts":["', f'"texts":["{raw}').replace('"name":"lr"', f'"name":"{raw}"').replace('["lr",', f'["{raw}",')
        page.write_text(text[:found] + data)
        self.browser.open(page)
        self.browser.scroll_through()
        self.assertEqual(self.text("h1"), HOSTILE)
        self.assertEqual(self.browser.run("document.images.length"), 0)

    def test_nothing_but_the_scripts_of_the_page_may_run(self):
        page = self.directory / "injected.html"
        page.write_text(self.asha.read_text().replace("</main>", "<script>document.title = 'broken in'</script><img src='http://127.0.0.1:9/x'></main>"))
        self.browser.open(page)
        self.assertEqual(self.browser.run("document.title"), "page")
        self.assertTrue(any("Content Security Policy" in line for line in self.browser.console), self.browser.console)
        self.browser.console.clear()
        self.browser.requests.clear()

    def test_without_scripts_there_are_tables_and_pictures(self):
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.browser.call("Page.navigate", url=self.asha.resolve().as_uri())
            self.browser.wait_for("document.readyState === 'complete' && document.querySelector('main h1')")
            shown = self.browser.run("document.querySelectorAll('main table, main svg').length")
            self.assertGreater(shown, 4)
            self.assertIn("Best result", self.text("main"))
        finally:
            self.browser.call("Emulation.setScriptExecutionDisabled", value=False)

    # ---- size

    def test_three_hundred_trials_take_less_than_a_megabyte(self):
        self.assertLess(self.asha.stat().st_size, 1_000_000)

    def test_ten_thousand_trials_stay_below_ten_megabytes(self):
        page = simulated(self.directory, "large", 10_000, 81, 256, '[scheduler]\ntype = "asha"')
        self.assertLess(page.stat().st_size, 10_000_000)
        self.browser.open(page)
        left, top, width, height = self.browser.place(self.chart("Learning curves"))
        self.browser.drag((left + 70, top + 30), (left + width * 0.5, top + height * 0.9), steps=3)
        self.assertTrue(0 < self.selected() <= 10_000)
        self.check_on_screens_and_paper(page)
        full = simulated(self.directory, "full", 10_000, 100, 1000, "")  # a million reports
        self.assertLess(full.stat().st_size, 10_000_000)


if __name__ == "__main__":
    if find_browser() is None:
        print("skipped: no Chromium (Debian: chromium)")
        sys.exit(77)
    result = unittest.main(argv=[sys.argv[0], *sys.argv[3:]], exit=False).result
    sys.exit(77 if result.skipped else int(not result.wasSuccessful()))
