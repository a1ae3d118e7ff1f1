// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which errors of the operating system say something about storage, and nothing about the program that met them.

#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace ranktune::storage {

class FileSystem;

/// Whether a file cannot be written there, whoever writes it: no space, quota, read-only, the limit of file sizes.
[[nodiscard]] bool cannot_be_written(const std::error_code& code);

/// The same, and errors of the file system itself: input/output error, stale handle.
[[nodiscard]] bool is_of_storage(const std::error_code& code);

/// Whether what a program says names an error of the first kind (`saving`: of the second one), in the words of the
/// operating system or of libraries that hide its code: SQLite, NumPy, PyTorch.
[[nodiscard]] bool names_refusal(std::string_view text, bool saving = false);

/// Why nobody can write there: no space or quota is left. Tries it. Nothing: it is possible, or fails for another
/// cause.
[[nodiscard]] std::optional<std::string> why_full(FileSystem& files, const std::string& folder);

} // namespace ranktune::storage
