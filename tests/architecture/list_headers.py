#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints every header of include/ and src/ as it is included, one per line."""
import pathlib
import sys

root = pathlib.Path(sys.argv[1])
for top in ("include", "src"):
    for path in sorted((root / top).rglob("*.hpp")):
        print(path.relative_to(root / top))
