#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what tools/bench/search.py --raw has written, one trial at a time or the fewest at a time in the file:

    plot_search.py search.json search.svg

Per function: simple regret after 25, 50, 100 and 200 evaluations, median and quartiles over the seeds."""
import json
import statistics
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

OWN = ("#0072b2", "#009e73", "#56b4e9", "#000000", "#882255", "#44aa99")
PEERS = ("#d55e00", "#e69f00", "#cc79a7", "#767676")
SMALLEST = 1e-12


def main():
    plt.rcParams.update({"svg.hashsalt": "ranktune", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    with open(sys.argv[1], encoding="utf-8") as file:
        results = json.load(file)["results"]
    workers = min(result["workers"] for result in results)
    results = [result for result in results if result["workers"] == workers]
    functions = list(dict.fromkeys(result["function"] for result in results))
    names = list(dict.fromkeys(result["searcher"] for result in results))
    is_peer = {name: name == "smac" or name.startswith(("smac@", "optuna-")) for name in names}
    own, peers = ([name for name in names if is_peer[name] is peer] for peer in (False, True))
    colours = {name: palette[i % len(palette)] for group, palette in ((own, OWN), (peers, PEERS)) for i, name in enumerate(group)}
    columns = min(3, len(functions))
    lines = -(-len(functions) // columns)
    figure, panels = plt.subplots(lines, columns, figsize=(3.4 * columns, 2.8 * lines), squeeze=False)
    for panel in panels.flat[len(functions):]:
        panel.set_visible(False)
    for panel, function in zip(panels.flat, functions):
        all_marks = sorted({int(mark) for each in results if each["function"] == function for mark in each["regrets"]})
        for result in (each for each in results if each["function"] == function):
            name = result["searcher"]
            marks = sorted(map(int, result["regrets"]))
            quartiles = [statistics.quantiles((max(SMALLEST, value) for value in result["regrets"][str(mark)]), n=4, method="inclusive")
                         for mark in marks]
            low, middle, high = zip(*quartiles)
            panel.fill_between(marks, low, high, color=colours[name], alpha=0.12, linewidth=0)
            panel.plot(marks, middle, "s--" if is_peer[name] else "o-", color=colours[name], markersize=3, linewidth=1.2, label=name)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xticks(all_marks, [str(mark) for mark in all_marks])
        panel.minorticks_off()
        panel.set_title(function, fontsize=9)
        panel.grid(axis="y", color="#dddddd", linewidth=0.6)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    handles = {label: handle for panel in panels.flat for handle, label in zip(*panel.get_legend_handles_labels())}
    figure.legend(handles.values(), handles.keys(), loc="upper center", ncols=min(5, len(handles)), frameon=False)
    figure.supxlabel("evaluations" + (f", {workers} at a time" if workers > 1 else ""), fontsize=9)
    figure.tight_layout(rect=(0, 0, 1, 0.92))
    figure.savefig(sys.argv[2], metadata={"Date": None})


main()
