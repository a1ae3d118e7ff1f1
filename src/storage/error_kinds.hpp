// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which errors of the operating system say something about storage, and nothing about the program that met them.

#include <system_error>

namespace ranktune::storage {

/// Whether a file cannot be written there, whoever writes it: no space, quota, read-only, the limit of file sizes.
[[nodiscard]] bool cannot_be_written(const std::error_code& code);

/// The same, and errors of the file system itself: input/output error, stale handle.
[[nodiscard]] bool is_of_storage(const std::error_code& code);

} // namespace ranktune::storage
