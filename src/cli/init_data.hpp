// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `ranktune init` writes, compiled into the program.

#include <cstddef>
#include <span>

namespace ranktune::cli {

/// jobs/digits/digits.h5, and jobs/digits/digits.toml with its comments.
[[nodiscard]] std::span<const std::byte> digits_data();
[[nodiscard]] std::span<const std::byte> digits_study();
/// jobs/program/train.py, and jobs/program/program.toml.
[[nodiscard]] std::span<const std::byte> program_script();
[[nodiscard]] std::span<const std::byte> program_study();
/// jobs/printed/train.sh, and jobs/printed/printed.toml.
[[nodiscard]] std::span<const std::byte> printed_script();
[[nodiscard]] std::span<const std::byte> printed_study();

} // namespace ranktune::cli
