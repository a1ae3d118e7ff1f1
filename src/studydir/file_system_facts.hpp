// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the file system of a study is, for its log: most trouble at night is a full or a slow one.

#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

namespace ranktune::studydir {

struct FileSystemFacts {
    std::string type = "unknown";             ///< "lustre", "nfs", "ext4"; "0x1234" when its number is not known
    std::uint64_t free_bytes = 0;             ///< for this user
    std::optional<std::uint64_t> free_inodes; ///< for this user; nothing where there is no limit (btrfs)
    std::error_code error;                    ///< why the rest is not known
};
/// Asks the system about the file system that holds `path`.
[[nodiscard]] FileSystemFacts file_system_facts(const std::string& path);

/// Name of a file system by the number that statfs(2) gives it.
[[nodiscard]] std::string file_system_name(std::uint64_t number);

/// "12TiB", "840MiB", "0B": no blank, for a field of the log.
[[nodiscard]] std::string binary_size(std::uint64_t bytes);

} // namespace ranktune::studydir
