#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that all files of a room compile as one unit (tools/quickstart compiles several at a time): names local to a file must be unique
in the room. Usage: one_compilation.py SOURCE_ROOT BUILD_DIRECTORY"""
import os
import pathlib
import subprocess
import sys

root, build = sys.argv[1], pathlib.Path(sys.argv[2])
environment = {key: value for key, value in os.environ.items() if key not in ("NINJA_STATUS", "MESON_TESTTHREADS")}


def run(*words):
    return subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def required(*words):
    done = run(*words)
    if done.returncode != 0:
        sys.exit(done.stdout)


if not (build / "build.ninja").exists():
    required("meson", "setup", str(build), root, "-Dtests=disabled", "-Doptimization=0", "-Dunity=on", "-Dunity_size=1000")
    required("meson", "configure", str(build), "-Dcpp_args=-fsyntax-only")  # not at setup, which runs the programs that it compiles
targets = run("ninja", "-C", str(build), "-t", "targets", "all").stdout.splitlines()
objects = [line.split(":")[0] for line in targets if line.endswith(": cpp_COMPILER")]
rooms = [name for name in objects if "-unity" in name]
if len(rooms) < 10:
    sys.exit(f"only {len(rooms)} rooms are compiled as one; Meson has changed the names of its files: {objects[:5]}")
done = run("ninja", "-k", "0", "-C", str(build), *rooms)
if done.returncode != 0:
    sys.exit("\n".join(line for line in done.stdout.splitlines() if ": error: " in line or ": note: " in line) or done.stdout)
print(f"{len(rooms)} rooms, each one compilation")
