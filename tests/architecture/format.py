#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that all sources are formatted by .clang-format. Skipped (exit 77) without clang-format 14: other versions format differently."""
import pathlib
import re
import shutil
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
tool = shutil.which("clang-format-14") or shutil.which("clang-format")
version = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout if tool else ""
if not re.search(r"version 14\.", version):
    print(f"clang-format 14 is not installed ({version.strip() or 'none found'})")
    sys.exit(77)
files = [str(p) for top in ("include", "src", "tests", "tools", "jobs", "docs") for p in sorted((root / top).rglob("*")) if p.suffix in (".hpp", ".cpp", ".cu", ".cuh")]
result = subprocess.run([tool, "--dry-run", "-Werror", *files], capture_output=True, text=True)
badly = sorted({line.split(":")[0] for line in result.stderr.splitlines() if "code should be clang-formatted" in line})
for name in badly:
    print(f"{pathlib.Path(name).relative_to(root)}: run clang-format -i")
print(f"{len(files)} files, {len(badly)} to be formatted")
sys.exit(1 if badly else 0)
