#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/schedulers.svg from the table of docs/guides/choosing.md, which has the figures of tools/campaign/choose.py:

    plot_schedulers.py docs/images/schedulers.svg

Per number of groups: time until the best trial is within 1 % of the best reachable, median and quartiles over the seeds."""
import pathlib
import re
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

PAGE = pathlib.Path(__file__).parents[2] / "docs/guides/choosing.md"
HOURS = {"d": 24.0, "h": 1.0, "m": 1 / 60, "s": 1 / 3600}
BLUE, GREY = "#0072b2", "#767676"  # told apart without red and green


def hours(text):
    return sum(float(number) * HOURS[unit] for number, unit in re.findall(r"(\d+)([dhms])", text))


def rows():
    """(groups, method, median, lower quartile, upper quartile, seeds that got there), in hours."""
    head, _, *lines = ("| method |" + PAGE.read_text().split("| method |")[1].split("\n\n")[0]).splitlines()
    counts = [int(cell.split()[0]) for cell in head.split("|")[2:-2]]
    for line in lines:
        method, *times = (cell.strip() for cell in line.split("|")[1:-2])
        for groups, time in zip(counts, times, strict=True):
            median, low, high, seeds = re.fullmatch(r"(\S+) \((\S+) to (\S+)\)(?: \[(\S+)\])?", time).groups()
            yield groups, method, hours(median), hours(low), hours(high), seeds or "20/20"


def main():
    plt.rcParams.update({"svg.hashsalt": "ranktune", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    data = list(rows())
    groups = sorted({row[0] for row in data})
    order = [row[1] for row in sorted((row for row in data if row[0] == groups[0]), key=lambda row: -row[2])]
    figure, panels = plt.subplots(1, len(groups), figsize=(10, 3.6), sharey=True)
    for panel, count in zip(panels, groups):
        for _, method, median, low, high, seeds in (row for row in data if row[0] == count):
            y = order.index(method)
            baseline = method.endswith("to the end")
            colour = GREY if baseline else BLUE
            panel.plot([low, high], [y, y], color=colour, linewidth=2, solid_capstyle="round")
            panel.plot([median], [y], "s" if baseline else "o", color=colour, markersize=5)
            if seeds.split("/")[0] != seeds.split("/")[1]:
                panel.annotate(seeds, (high, y), xytext=(4, -3), textcoords="offset points", fontsize=7, color=GREY)
        panel.set_xscale("log")
        ticks = [t for t in (0.5, 1, 2, 4, 8, 16, 32, 64) if min(r[3] for r in data if r[0] == count) <= 1.2 * t
                 and t <= 1.2 * max(r[4] for r in data if r[0] == count)]
        panel.set_xticks(ticks, [f"{t:g}" for t in ticks])
        panel.minorticks_off()
        panel.set_title(f"{count} groups", fontsize=9)
        panel.grid(axis="x", color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
        for side in ("top", "right", "left"):
            panel.spines[side].set_visible(False)
        panel.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(order)), order)
    panels[len(panels) // 2].set_xlabel("hours of virtual time to within 1 % of the best reachable (median, quartiles over 20 seeds)")
    figure.tight_layout()
    figure.savefig(sys.argv[1], metadata={"Date": None})


main()
