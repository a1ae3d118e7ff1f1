// SPDX-License-Identifier: Apache-2.0
#pragma once
// What Python programs import, compiled into ranktune: tools/python/ranktune.py.

#include <cstddef>
#include <span>

namespace ranktune::trainables {

[[nodiscard]] std::span<const std::byte> python_module();
/// tools/python/ranktune_function.py, which calls the function of a study.
[[nodiscard]] std::span<const std::byte> python_function();

} // namespace ranktune::trainables
