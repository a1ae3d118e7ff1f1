// SPDX-License-Identifier: Apache-2.0
#pragma once
// What Python programs import, compiled into ranktune: tools/python/ranktune.py.

#include <cstddef>
#include <span>

namespace ranktune::trainables {

[[nodiscard]] std::span<const std::byte> python_module();
/// tools/python/ranktune_function.py, which calls the function of a study.
[[nodiscard]] std::span<const std::byte> python_function();
/// tools/python/ranktune_data.py, ranktune_files.py and ranktune_order.py, which ranktune.dataset() imports.
[[nodiscard]] std::span<const std::byte> python_data();
[[nodiscard]] std::span<const std::byte> python_files();
[[nodiscard]] std::span<const std::byte> python_order();
/// tools/python/ranktune_torch.py, which the batches of such a data set import for PyTorch.
[[nodiscard]] std::span<const std::byte> python_torch();
/// tools/python/ranktune_tasks.py, which ranktune.tasks() imports.
[[nodiscard]] std::span<const std::byte> python_tasks();

} // namespace ranktune::trainables
