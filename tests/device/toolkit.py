#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What src/device/cuda says about NVIDIA's headers, compared with those that are installed.

Usage: toolkit.py SOURCE_ROOT CUDA_INCLUDE COMPILER...
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT, INCLUDE = (pathlib.Path(path) for path in sys.argv[1:3])
COMPILER = sys.argv[3:]
CUDA = ROOT / "src/device/cuda"


class Toolkit(unittest.TestCase):
    def test_errors_after_which_a_process_has_to_end_are_sticky(self):
        header = (INCLUDE / "driver_types.h").read_text()
        documented = re.findall(r"/\*\*((?:(?!\*/).)*)\*/\s*(cudaError\w+)\s*=\s*(\d+)", header, re.DOTALL)
        sticky = {name: number for text, name, number in documented if "terminated and relaunched" in " ".join(text.replace("*", " ").split())}
        self.assertGreater(len(sticky), 8)
        function = re.search(r"bool is_sticky\(.*?\n}", (CUDA / "streams.cpp").read_text(), re.DOTALL)[0]
        for name, number in sticky.items():
            self.assertTrue(re.search(rf"case {name}:|= {number};", function), f"is_sticky does not know {name} ({number})")

    def test_an_nccl_without_names_of_communicators_compiles(self):
        header = (INCLUDE / "nccl.h").read_text()
        self.assertIn("commName", header)
        old = re.sub(r"^.*commName.*\n", "", header, flags=re.MULTILINE)
        self.assertNotIn("commName", old)
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "nccl.h").write_text(old)
            done = subprocess.run([*COMPILER, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
                                   f"-I{folder}", f"-I{ROOT}/src", f"-I{ROOT}/include", "-isystem", str(INCLUDE), str(CUDA / "nccl.cpp")],
                                  capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
