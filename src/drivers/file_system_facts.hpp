// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the file system of a study is, for its log: most trouble at night is a full or a slow one.

#include <cstdint>
#include <string>

namespace ranktune::drivers {

struct FileSystemFacts {
    std::string type;              ///< "lustre", "nfs", "ext4"; "0x1234" when its number is not known; "unknown"
    std::uint64_t free_bytes = 0;  ///< for this user
    std::uint64_t free_inodes = 0; ///< 0 where there is no limit, too
};
/// Asks the system about the file system that holds `path`; all fields as they are above when it cannot.
[[nodiscard]] FileSystemFacts file_system_facts(const std::string& path);

/// Name of a file system by the number that statfs(2) gives it.
[[nodiscard]] std::string file_system_name(std::uint64_t number);

/// "12TiB", "840MiB", "0B": no blank, for a field of the log.
[[nodiscard]] std::string binary_size(std::uint64_t bytes);

} // namespace ranktune::drivers
