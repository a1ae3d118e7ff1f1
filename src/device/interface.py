#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes built.hpp: what Meson found, and a version that differs whenever the interface of the module does.

Usage: interface.py OUTPUT MODULE_NAME VERSION LIBRARIES HEADER...
"""
import hashlib
import pathlib
import sys

output, module, version, libraries, *headers = sys.argv[1:]
interface = hashlib.sha256(b"".join(pathlib.Path(header).read_bytes() for header in headers)).hexdigest()[:12]
pathlib.Path(output).write_text(f"""// SPDX-License-Identifier: Apache-2.0
#pragma once
// Written by interface.py.

namespace ranktune::device::built {{
inline constexpr const char* module_name = "{module}";
inline constexpr const char* module_version = "{version}, interface {interface}";
inline constexpr const char* libraries = "{libraries}";
}} // namespace ranktune::device::built
""")
