#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks tests/architecture/failures.md, which names the tests, against the rows of docs/guides/failure.md and the tests.

Usage: failures.py SOURCE_ROOT
Prints one line per row without a test, and per test that does not exist, and exits 1 if there is any.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()


def table(page):
    """{row: {column: cell}} of the page's table of failures."""
    rows, columns = {}, []
    for line in (ROOT / page).read_text().splitlines():
        if line.startswith("| failure |"):
            columns = [cell.strip() for cell in line.strip("|").split("|")][1:]
        elif columns and line.startswith("|---"):
            continue
        elif columns and line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            rows[cells[0]] = dict(zip(columns, cells[1:], strict=True))
        elif columns:
            break
    return rows


def functions(*files):
    return {name for file in files for name in re.findall(r"^ *def (\w+)", (ROOT / file).read_text(), re.M)}


def known():
    listed = subprocess.run([sys.executable, ROOT / "tests/slurm/slurm_test.py", "ranktune", ROOT, "--list"], check=True,
                            capture_output=True, text=True).stdout.split()
    return {"slurm": set(listed),
            "mpi": functions("tests/mpi/endings.py", "tests/mpi/programs.py"),
            "cli": functions("tests/cli/supervise_test.py", "tests/cli/survival_test.py", "tests/cli/resume_test.py",
                             "tests/cli/full_disk_test.py", "tests/cli/stalled_head_test.py", "tests/cli/surroundings_test.py"),
            "scenario": {path.stem for path in (ROOT / "tests/scenarios").rglob("*.txt")},
            "unit": set(re.findall(r'TEST_CASE\(\s*"([^"]*)"', "".join(p.read_text() for p in (ROOT / "tests").rglob("*.cpp"))))}


def exists(word, tests):
    kind, _, name = word.partition(":")
    if kind == "unit":
        return any(test.startswith(name) for test in tests["unit"])
    return name in tests.get(kind, ())


def main():
    told, tested, tests = table("docs/guides/failure.md"), table("tests/architecture/failures.md"), known()
    problems = [f"{row}: only in one of the two tables" for row in told.keys() ^ tested.keys()]
    if not told:
        problems.append("docs/guides/failure.md has no table of failures")
    for row, cells in tested.items():
        if all(cell in "-<" for cell in cells.values()):
            problems.append(f"{row}: no test")
        for column, cell in cells.items():
            for word in [] if cell in "-<" else re.split(r", (?=\w+:)", cell):
                if not exists(word, tests):
                    problems.append(f"{row}, {column}: there is no test '{word}'")
    print("\n".join(sorted(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
