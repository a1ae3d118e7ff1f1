#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows pages of the documentation word for word, in a fresh folder with a clone's jobs/:

    follow.py PROGRAM SOURCE_ROOT PAGE...

A block whose first line is a comment with a file's name is that file. Blocks of kind sh are run one after the other, in one
shell that ends at the first error; blocks of kind bash are not: they need a cluster, or install something. A block of TOML
without a name is a part of a study file: it is put in the place of the same tables of the page's own study file, and
checked with --dry-run."""
import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

PATIENCE = 280  # seconds for the commands of a page
# What the two pages about moving to ranktune call "your code".
MODEL = """
import json, math
class Model:
    def __init__(self, lr, layers, optimizer="adam", momentum=0.0):
        assert momentum == 0.0 or optimizer == "sgd"
        self.lr, self.layers, self.epoch = lr, layers, 0
    def train_epoch(self):
        self.epoch += 1
        return 1 - (abs(math.log10(self.lr) + 2) / 9 + 0.5) / (self.epoch + 1) - 0.01 * self.layers
    def save(self, path):
        with open(path, "w") as file:
            json.dump(self.__dict__, file)
    def load(self, path):
        with open(path) as file:
            self.__dict__ = json.load(file)
"""


def blocks(page):
    """[(kind, name of the file or None, text)]"""
    found = []
    for kind, text in re.findall(r"^```(\w*)\n(.*?)^```$", page, re.M | re.S):
        name = re.match(r"(?:#|//) ([\w-]+\.\w+)\n", text)
        found.append((kind, name[1] if name else None, text))
    return found


def environment(program):
    """Like a login shell's, with the program on the PATH: no variable of ranktune, of a job, or of a Python environment."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("RANKTUNE_", "PYTHON", "SLURM_", "PMI", "OMPI_UNIVERSE")) and name not in ("NO_COLOR", "COLUMNS")}
    python = pathlib.Path(sys.executable).parent
    return dict(env, PATH=f"{program.parent}:{python}:{env['PATH']}", RANKTUNE_STAND_IN_DELAY="20")


def shell(script, folder, env):
    process = subprocess.run(["bash", "-euxo", "pipefail", "-c", script], cwd=folder, env=env, text=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
    print(process.stdout, flush=True)
    assert process.returncode == 0, f"the commands of the page ended with code {process.returncode}"
    return process.stdout


def write_files(page, folder):
    """The page's files, and the name of its study file; programs in Python must compile."""
    study = None
    for kind, name, text in blocks(page):
        if kind == "python":
            ast.parse(text)
        if name:
            assert not (folder / name).exists(), f"{name} is on the page twice"
            (folder / name).write_text(text)
        if kind == "toml" and name:
            tomllib.loads(text)
            study = name
    return study


def check_parts(page, folder, study, program, source, env):
    """Each part of a study file makes the page's own study another valid one."""
    sys.path.insert(0, str(source / "tools/python"))
    from ranktune_studies.toml import dumps
    parts = [tomllib.loads(text) for kind, name, text in blocks(page) if kind == "toml" and not name]
    for number, part in enumerate(parts):
        whole = tomllib.loads((folder / study).read_text())
        for table, keys in part.items():
            # A table with `type` or `command` is a whole one; another one adds to what is there.
            whole[table] = keys if {"type", "command"} & keys.keys() else {**whole.get(table, {}), **keys}
        (folder / f"part-{number}.toml").write_text(dumps(whole))
        shell(f"ranktune run part-{number}.toml --dry-run", folder, env)
    return len(parts)


def check_optuna(folder, env):
    """Optuna's half of the page runs, too, where there is an Optuna."""
    script = folder / "optuna_study.py"
    if not script.exists():
        return
    if subprocess.run([sys.executable, "-c", "import optuna"], capture_output=True).returncode != 0:
        print("not tried: there is no Optuna (Debian: python3-optuna)")
        return
    script.write_text(script.read_text().replace("n_trials=60", "n_trials=4"))
    assert "'optimizer'" in shell(f"{sys.executable} {script.name}", folder, env)


def follow(page, program, source, env, folder):
    text = (source / page).read_text()
    shutil.copytree(source / "jobs", folder / "jobs", ignore=shutil.ignore_patterns("__pycache__"))
    moving = "migrating" in page
    if moving:
        (folder / "model.py").write_text(MODEL)
    study = write_files(text, folder)
    if study is None:  # the page shows parts of a job's study file
        jobs = {line for path in (source / "jobs").rglob("*.toml") for line in path.read_text().splitlines()}
        shown = [line for kind, _, block in blocks(text) if kind == "toml" for line in block.splitlines()]
        assert shown and jobs.issuperset(shown), [line for line in shown if line not in jobs]
    if moving:
        (folder / study).write_text((folder / study).read_text().replace("num_trials = 60", "num_trials = 12"))
        assert check_parts(text, folder, study, program, source, env) >= 2
        check_optuna(folder, env)
    commands = "".join(block for kind, name, block in blocks(text) if kind == "sh")
    assert commands, f"{page} has no commands"
    return shell(commands, folder, env)


def main():
    program, source = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    env = environment(program)
    for page in sys.argv[3:]:
        with tempfile.TemporaryDirectory(prefix="ranktune-page-") as folder:
            out = follow(page, program, source, env, pathlib.Path(folder))
        assert re.search(r"\d+ trials, \d+ ok", out) or "best" in out, out
        print(f"ok: {page}", flush=True)


if __name__ == "__main__":
    main()
