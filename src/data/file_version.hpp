// SPDX-License-Identifier: Apache-2.0
#pragma once
// FileVersion: tells whether a file was replaced or written to since it was read.

#include <cstdint>
#include <string>

namespace ranktune::data {

struct FileVersion {
    std::int64_t bytes = -1;
    std::int64_t modified_ns = 0;
    friend bool operator==(FileVersion, FileVersion) = default;
};
/// Throws base::IoError.
[[nodiscard]] FileVersion version_of(const std::string& path);

} // namespace ranktune::data
