#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The stand-ins define exactly what the module imports from NVIDIA's libraries, with the same versions.

Usage: symbols.py MODULE STAND_IN...
"""
import re
import subprocess
import sys

OURS = re.compile(r"(__cuda|cuda|cublas|nccl)\w+")


def symbols(file, *options):
    lines = subprocess.run(["nm", "-D", *options, file], capture_output=True, text=True, check=True).stdout.splitlines()
    names = {line.split()[-1].replace("@@", "@") for line in lines if line.split()}
    return {name for name in names if OURS.match(name)}


wanted = symbols(sys.argv[1], "--undefined-only")
found = set().union(*(symbols(file, "--defined-only") for file in sys.argv[2:]))
found -= {name for name in found if re.fullmatch(r"lib\w+\.so\.\d+", name)}
for name in sorted(wanted - found):
    print(f"the module imports {name}, which no stand-in defines")
for name in sorted(found - wanted):
    print(f"a stand-in defines {name}, which the module does not import")
print(f"{len(wanted)} symbols imported, {len(found)} defined")
sys.exit(1 if wanted != found or not wanted else 0)
