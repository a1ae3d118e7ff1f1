#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the sources in other units of compilation than those of the tests, which are eight files each (syntax and warnings alone):
  rooms: all files of a room as one: names local to a file are unique in the room (tools/quickstart compiles several at a time)
  files: each file by itself, as a plain `meson setup` does it: it includes what it uses, and no name shadows another
Usage: units.py rooms|files SOURCE_ROOT BUILD_DIRECTORY"""
import os
import pathlib
import subprocess
import sys

kind, root, build = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
options = {"rooms": ["-Dunity=on", "-Dunity_size=1000"], "files": ["-Dunity=off", "--buildtype=release"]}[kind]
environment = {key: value for key, value in os.environ.items() if key not in ("NINJA_STATUS", "MESON_TESTTHREADS")}


def run(*words):
    return subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def required(*words):
    done = run(*words)
    if done.returncode != 0:
        sys.exit(done.stdout)


if not (build / "build.ninja").exists():
    required("meson", "setup", str(build), root, "-Dtests=disabled", "-Doptimization=0", *options)
    required("meson", "configure", str(build), "-Dcpp_args=-fsyntax-only")  # not at setup, which runs the programs that it compiles
targets = run("ninja", "-C", str(build), "-t", "targets", "all").stdout.splitlines()
objects = [line.split(":")[0] for line in targets if line.endswith(": cpp_COMPILER")]
units = [name for name in objects if ("-unity" in name if kind == "rooms" else name.startswith("src/"))]
if len(units) < 10:
    sys.exit(f"only {len(units)} {kind} are compiled; Meson has changed the names of its files: {objects[:5]}")
done = run("ninja", "-k", "0", "-C", str(build), *units)
if done.returncode != 0:
    sys.exit("\n".join(line for line in done.stdout.splitlines() if ": error: " in line or ": note: " in line) or done.stdout)
print(f"{len(units)} {kind}")
