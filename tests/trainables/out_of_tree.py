#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the build into a temporary prefix, copies jobs/custom-trainable out of the tree, builds it there against the
installed library with nothing but pkg-config, and runs a small study with it.

usage: out_of_tree.py BUILD_DIR SOURCE_DIR PREFIX
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def run(command, **kwargs):
    print("+", *command, flush=True)
    return subprocess.run([str(part) for part in command], check=True, **kwargs)


def main():
    build, source, prefix = sys.argv[1:]
    for tool in ("meson", "make", "pkg-config"):
        if shutil.which(tool) is None:
            print(f"skipped: no {tool}")
            return 77
    with tempfile.TemporaryDirectory(prefix="ranktune-out-of-tree-") as directory:
        root = pathlib.Path(directory)
        run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", root / "install"])
        installed = root / "install" / pathlib.Path(prefix).relative_to("/")
        for script in ("cpu.sbatch", "gpu.sbatch"):  # for those who have the installation and no clone
            assert os.access(installed / "share/ranktune/slurm" / script, os.X_OK), script
        job = root / "job"
        shutil.copytree(pathlib.Path(source) / "jobs/custom-trainable", job)
        package = next(installed.rglob("ranktune.pc"))
        run(["make", f"PKG_CONFIG_PATH={package.parent}", f"PKG_CONFIG=pkg-config --define-variable=prefix={installed}"], cwd=job)
        environment = dict(os.environ, NO_COLOR="1")
        run(["./curve_fit", "validate", "curve_fit.toml"], cwd=job, env=environment)
        run(["./curve_fit", "run", "--local", "2", "curve_fit.toml", "study.num_trials=6"], cwd=job, env=environment,
            timeout=100)
        text = run(["./curve_fit", "export", "curve-fit", "--format", "json"], cwd=job, env=environment,
                   stdout=subprocess.PIPE, text=True).stdout
        trials = json.loads(text)["trials"]
        assert len(trials) == 6, f"{len(trials)} trials instead of 6"
    return 0


if __name__ == "__main__":
    sys.exit(main())
