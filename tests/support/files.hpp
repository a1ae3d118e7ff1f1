// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files as texts.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace ranktune::testing {

/// All bytes of a file; nothing when it cannot be read.
inline std::string read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace ranktune::testing
