#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The installed headers need no other header of the project (that each compiles alone is the slow test `each header`), and each is
shown by an example, which compiles with nothing but them.

usage: installed.py SOURCE_ROOT HEADER... -- COMPILER...
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Examples for headers that are installed only where the build found a library.
OPTIONAL = {"torch.cpp": "ranktune/torch.hpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](ranktune/[^>"]+)[>"]', re.M)


def examples(root, headers):
    return [path for path in sorted((root / "docs/examples").glob("*.cpp")) if OPTIONAL.get(path.name, headers[0]) in headers]


def problems_of(root, headers):
    """Problems that the includes of headers and examples show."""
    listed = set(headers)
    for header in headers:
        path = root / "include" / header
        if not path.is_file():
            yield f"{header} is to be installed and does not exist"
            continue
        for other in sorted(set(INCLUDE.findall(path.read_text())) - listed):
            yield f"{header} is installed and includes {other}, which is not"
    shown = {}
    for example in examples(root, headers):
        for header in INCLUDE.findall(example.read_text()):
            shown.setdefault(header, example.name)
            if header not in listed:
                yield f"docs/examples/{example.name} includes {header}, which is not installed"
    for header in sorted(listed - shown.keys()):
        yield f"{header} is installed, and no example in docs/examples includes it"


def sources(root, headers, folder):
    """All headers, twice, in one file; the examples; and the jobs that users copy. LibTorch's headers take 15 s: of what
    includes them, only the example is compiled."""
    usual = [header for header in headers if not header.startswith(("ranktune/libtorch/", "ranktune/torch.hpp"))]
    path = folder / "all.cpp"
    path.write_text("".join(f"#include <{header}>\n" for header in usual + usual[::-1]))
    yield path
    yield from examples(root, headers)
    for job in ("custom-scheduler", "custom-trainable"):
        yield from sorted((root / "jobs" / job).glob("*.cpp"))


def main():
    root = pathlib.Path(sys.argv[1])
    split = sys.argv.index("--")
    headers, compiler = sys.argv[2:split], sys.argv[split + 1:]
    problems = list(problems_of(root, headers))
    with tempfile.TemporaryDirectory(prefix="ranktune-installed-") as name:
        folder = pathlib.Path(name)
        for header in headers:
            if (root / "include" / header).is_file():
                (folder / "include" / header).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / "include" / header, folder / "include" / header)
        command = [*compiler, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fsyntax-only", f"-I{folder}/include"]
        compile_one = lambda path: (path, subprocess.run([*command, str(path)], capture_output=True, text=True))
        with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            done = list(pool.map(compile_one, sources(root, headers, folder)))
        problems += [f"{path.name} does not compile with the installed headers alone:\n{result.stderr}" for path, result in done if result.returncode]
    for problem in problems:
        print(problem)
    print(f"{len(headers)} headers, {len(done)} files compiled, {len(problems)} problems")
    return 1 if problems or len(headers) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
