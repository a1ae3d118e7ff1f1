#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a file into a C++ array, so that the program needs no data directory: embed.py INPUT OUTPUT NAME [ROOM]."""
import sys

source, target, name = sys.argv[1:4]
room = sys.argv[4] if len(sys.argv) > 4 else "cli"
data = open(source, "rb").read()
with open(target, "w") as out:
    out.write(f"// Made by embed.py from a data file. {len(data)} bytes.\n#include <cstddef>\n#include <span>\n")
    out.write(f"namespace ranktune::{room} {{\nnamespace {{\n")
    out.write(f"alignas(8) constexpr unsigned char {name}_bytes[] = {{\n")
    for i in range(0, len(data), 64):
        out.write(",".join(str(b) for b in data[i : i + 64]) + ",\n")
    out.write("};\n} // namespace\n")
    out.write(f"std::span<const std::byte> {name}() {{ return std::as_bytes(std::span({name}_bytes)); }}\n")
    out.write(f"}} // namespace ranktune::{room}\n")
