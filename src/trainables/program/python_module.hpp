// SPDX-License-Identifier: Apache-2.0
#pragma once
// tools/python/ranktune.py, which Python programs import, compiled into ranktune.

#include <cstddef>
#include <span>

namespace ranktune::trainables {

[[nodiscard]] std::span<const std::byte> python_module();

} // namespace ranktune::trainables
