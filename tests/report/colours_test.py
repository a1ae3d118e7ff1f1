#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The colours of states on the HTML report differ for everyone, and stand out from the paper: colours_test.py SOURCE_ROOT [TEST...]"""
import itertools
import pathlib
import re
import sys
import unittest

CSS = pathlib.Path(sys.argv[1]).resolve() / "src/report/page/page.css"
STATES = ("finished", "stopped", "paused", "failed", "running")
LEAST_DIFFERENCE = 20.0  # CIE76; about 2 is just visible side by side
LEAST_CONTRAST = 3.0     # WCAG 2.1, 1.4.11: graphical objects

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
VISION = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}
# Linear sRGB to XYZ, D65.
XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
WHITE = tuple(sum(row) for row in XYZ)


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def linear(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def lab(rgb):
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (a / b for a, b in zip(times(XYZ, rgb), WHITE)))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(one, other, vision):
    seen = [lab([min(1.0, max(0.0, part)) for part in times(vision, linear(colour))]) for colour in (one, other)]
    return sum((a - b) ** 2 for a, b in zip(*seen)) ** 0.5


def contrast(one, other):
    darker, lighter = sorted(times(XYZ, linear(colour))[1] for colour in (one, other))
    return (lighter + 0.05) / (darker + 0.05)


def themes():
    """The variables of the light theme and of the dark one."""
    found = re.findall(r":root[^{]*\{(.*?)\}", CSS.read_text(), re.S)
    light, dark = (dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in found)
    return {"light": light, "dark": {**light, **dark}}


class Colours(unittest.TestCase):
    def test_the_measures_give_known_values(self):
        self.assertAlmostEqual(contrast("#ffffff", "#000000"), 21.0, 3)
        self.assertAlmostEqual(difference("#ffffff", "#000000", VISION["usual"]), 100.0, 2)
        self.assertAlmostEqual(difference("#ff0000", "#00ff00", VISION["usual"]), 170.6, 0)
        self.assertLess(difference("#ff0000", "#00ff00", VISION["protanopia"]), 130.0)

    def test_states_differ_for_everyone(self):
        for theme, colours in themes().items():
            for (vision, matrix), (a, b) in itertools.product(VISION.items(), itertools.combinations(STATES, 2)):
                with self.subTest(theme=theme, vision=vision, states=(a, b)):
                    self.assertGreaterEqual(difference(colours[a], colours[b], matrix), LEAST_DIFFERENCE)

    def test_states_stand_out_from_the_paper(self):
        for theme, colours in themes().items():
            for state in STATES:
                with self.subTest(theme=theme, state=state):
                    self.assertGreaterEqual(contrast(colours[state], colours["paper"]), LEAST_CONTRAST)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
