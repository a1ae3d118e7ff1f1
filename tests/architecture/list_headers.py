#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints every header of include/ and src/ as it is included, one per line, but those in or below a PATH.

Usage: list_headers.py SOURCE_ROOT [PATH...]"""
import pathlib
import sys

root = pathlib.Path(sys.argv[1])
for top in ("include", "src"):
    for path in sorted((root / top).rglob("*.hpp")):
        if not any(path.is_relative_to(root / without) for without in sys.argv[2:]):
            print(path.relative_to(root / top))
