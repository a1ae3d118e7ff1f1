#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts faults into the code for GPUs, one after the other, and requires that a named test on the stand-in finds each within 10 s.

usage: tools/campaign/sabotage.py [NAME...] [-- OPTIONS]    NAME: of faults (default: all)    OPTIONS: of meson setup
       tools/campaign/sabotage.py --check                   whether the faults still fit the code, and their tests exist
Works in a copy of the tree, and needs nvcc 13 and NCCL; no GPU. The exit code is 0 when every fault was found.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WITHIN = 10  # seconds
BUILD = "build/sabotage"  # as deep as build/test, so that a compiler cache knows its files
# Name, file in src, text, what it becomes, test program, name of the test.
FAULTS = [
    ("blind-look", "ddp/gradients/device_groups.cpp",
     "                static_cast<void>(kept_.communicator->settled());\n                abort_if_overdue();\n            });\n",
     "                abort_if_overdue();\n            });\n",
     "lost", "an error that reaches the last bucket after the status word is a lost group"),
    ("blind-mlp", "trainables/mlp/device_engine.cpp", "            if (sums_ != nullptr) sums_->look();\n", "",
     "trainer", "sums that fail after the end of their step end the validation that follows"),
    ("silent-loser", "ddp/collective/protocol_collective.cpp",
     "        call();\n    } catch (const GroupLost&) {\n        tell_lost();\n", "        call();\n    } catch (const GroupLost&) {\n",
     "lost", "what NCCL fails at is a lost group with a cause; the next trial forms a new one"),
    ("lone-keeper", "ddp/gradients/device_groups.cpp", "reuse = low == high && kept", "reuse = (low == high || true) && kept",
     "lost", "a rank that has lost its communicator alone forms a new one with those that kept theirs"),
    ("patient-watch", "ddp/gradients/device_groups.cpp", "        lost_ = true;\n        abandon();\n", "        lost_ = true;\n",
     "lost", "a sum that hangs is given up after its time, and the next trial forms a new group"),
    ("deaf-watch", "ddp/gradients/device_groups.cpp",
     "            static_cast<void>(kept_.communicator->settled());\n            abort_if_overdue();\n            if",
     "            abort_if_overdue();\n            if",
     "groups", "a rank that waits inside another library hears that its sums are lost"),
    ("deaf-to-others", "ddp/gradients/device_groups.cpp", "!abandoned_ && ties_.gives_up()", "!abandoned_ && false",
     "groups", "a rank that waits inside another library hears that its sums are lost"),
    ("no-relief", "device/cuda/budget.hpp", "            relieve_();\n", "",
     "groups", "an allocation without room is tried once more when others have freed what they keep"),
    ("no-trim", "device/cuda/accelerator.cpp", "cudaMemPoolTrimTo(pool, 0);", "cudaMemPoolTrimTo(pool, 1);",
     "groups", "memory that a stream has released can be allocated by others"),
    ("silent-shortage", "ddp/gradients/device_groups.cpp", "        if (state != formed) ties.go_on();\n", "",
     "groups", "a group forms when one rank has freed what it keeps"),
    ("stale-graph", "trainables/mlp/step_graphs.cpp", "    shapes_.clear();\n    closes_ =", "    closes_ =",
     "trainer", "a state that is loaded when batches are recorded already trains on with the bits of steps that are issued"),
    ("memory-error-stays", "device/cuda/streams.cpp",
     "    static_cast<void>(cudaGetLastError()); // an error that is not sticky is forgotten\n", "",
     "compute", "neither a full memory nor a query of work in progress makes the next launch fail"),
    ("query-stays", "device/cuda/streams.cpp", "    static_cast<void>(cudaGetLastError()); // or the next launch may return it\n", "",
     "compute", "neither a full memory nor a query of work in progress makes the next launch fail"),
    ("open-group", "device/cuda/nccl.cpp", "            if (failed(result)) break;\n", '            check_nccl(result, "ncclSend");\n',
     "nccl", "a send that fails ends its group: its thread goes on with other communicators"),
    ("early-free", "device/cuda/accelerator.cpp", "                finish_all();\n                cudaFreeHost", "                cudaFreeHost",
     "compute", "memory of the host that copies use is freed when they have run"),
    ("unchecked-sum", "ddp/gradients/device_groups.cpp", "(*number != static_cast<float>(group.size()))",
     "(*number != static_cast<float>(group.size()) && group.size() < 0)",
     "lost", "NCCL that adds wrongly is found before the first step"),
    ("early-memory", "ddp/gradients/device_groups.cpp",
     "    const auto on_device = or_lost([&] { return base::allocate(base::Place(on), sizeof(float)); });\n    Kept kept;\n",
     "    Kept kept;\n    const auto on_device = or_lost([&] { return base::allocate(base::Place(on), sizeof(float)); });\n",
     "lost", "a communicator that cannot be formed in time is a lost group"),
    ("other-sum", "device/cuda/nccl.cpp", "native_type, ncclSum,", "native_type, ncclMax,",
     "nccl", "ranks sum numbers in device memory, in the order of streams"),
]


def check():
    problems = []
    for name, file, text, _, program, test in FAULTS:
        count = (ROOT / "src" / file).read_text().count(text)
        if count != 1:
            problems.append(f"{name}: its text is {count} times in src/{file}; write it as the code is now")
        tests = (ROOT / "tests/device" / f"{program}_test.cpp").read_text()
        if f'TEST_CASE("{test}"' not in tests:
            problems.append(f"{name}: tests/device/{program}_test.cpp has no test '{test}'")
    print("\n".join(problems) or f"{len(FAULTS)} faults fit")
    return 1 if problems else 0


def run_test(copy, program, test):
    """Its exit code and seconds; 124: it did not end in time."""
    build = copy / BUILD
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{build}/tests/device/stand_in:{build}/src/device"}
    begin = time.monotonic()
    try:
        done = subprocess.run([build / "tests/device" / f"test_device_{program}", test.replace(",", "\\,")], env=environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=3 * WITHIN)
        code = done.returncode
    except subprocess.TimeoutExpired:
        code = 124
    return code, time.monotonic() - begin


def build(copy):
    libraries = ["src/device/libranktune-cuda.so." + (copy / BUILD / "version").read_text().strip()]
    libraries += [f"tests/device/stand_in/lib{name}" for name in ("cudart.so.13", "cublas.so.13", "nccl.so.2")]
    programs = [f"tests/device/test_device_{program}" for program in sorted({fault[4] for fault in FAULTS})]
    subprocess.run(["ninja", "-C", copy / BUILD, *libraries, *programs], check=True, stdout=subprocess.DEVNULL)


def main(names, options):
    faults = [fault for fault in FAULTS if not names or fault[0] in names]
    with tempfile.TemporaryDirectory(prefix="ranktune-sabotage-") as folder:
        copy = pathlib.Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=lambda path, _: {"build", ".git"} if pathlib.Path(path) == ROOT else set(), symlinks=True)
        subprocess.run(["meson", "setup", copy / BUILD, copy, "-Dcuda=enabled", "-Dnccl=enabled", *options], check=True, stdout=subprocess.DEVNULL)
        version = subprocess.run(["meson", "introspect", "--projectinfo", copy / BUILD], check=True, capture_output=True, text=True).stdout
        (copy / BUILD / "version").write_text(version.split('"version": "')[1].split('"')[0])
        build(copy)
        well = {fault[4:]: run_test(copy, *fault[4:])[0] for fault in faults}
        wrong = 0
        for name, file, text, other, program, test in faults:
            before, path = well[program, test], copy / "src" / file
            original = path.read_text()
            path.write_text(original.replace(text, other))
            build(copy)
            code, seconds = run_test(copy, program, test)
            path.write_text(original)
            found = before == 0 and code not in (0, 77, 124) and seconds < WITHIN
            wrong += 0 if found else 1
            print(f"{'found ' if found else 'MISSED'} {seconds:5.1f} s  {name} (src/{file}): {test} (exit {before}, then {code})", flush=True)
    print(f"{len(faults)} faults, {wrong} not found within {WITHIN} s")
    return 1 if wrong or not faults else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(check())
    words = sys.argv[1:] + ["--"]
    end = words.index("--")
    sys.exit(check() or main(words[:end], [word for word in words[end:] if word != "--"] or ["--buildtype=debugoptimized", "-Db_ndebug=false"]))
