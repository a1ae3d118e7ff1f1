#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/learning-curve.png with the five lines of docs/reference/files.md, taken from that page:

    plot_learning_curve.py STUDY_DIRECTORY TRIAL OUTPUT.png

It replaces the trial number 7 of the page and the metric val_accuracy; nothing else changes."""
import os
import pathlib
import re
import sys

import h5py

study, trial, output = pathlib.Path(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3]).absolute()
page = pathlib.Path(__file__).parents[2] / "docs/reference/files.md"
code = next(block for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S) if "savefig" in block)
with h5py.File(study / "metrics.h5") as results:
    metric = results.attrs["metric"]
code = code.replace("== 7", f"== {trial}").replace("val_accuracy", metric).replace("learning-curve.png", str(output))
os.environ.setdefault("MPLBACKEND", "Agg")
os.chdir(study)
exec(compile(code, str(page), "exec"))
