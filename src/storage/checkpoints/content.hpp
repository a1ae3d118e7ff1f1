// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a file holds, in a few words: to know it again wherever it lies.

#include <string>

#include "storage/file_system.hpp"

namespace ranktune::storage {

/// A file up to this size is read whole; of a larger one `content_blocks` blocks, from the first byte to the last.
inline constexpr std::uint64_t content_whole_bytes = std::uint64_t{256} << 20;
inline constexpr std::uint64_t content_block_bytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t content_blocks = 64;

/// "1797693 bytes, XXH64 0123456789abcdef": the same for the same bytes, other for any others in practice; of a file
/// that is not read whole only where the size differs or a block does ("XXH64 of 64 MiB"). Throws base::IoError.
[[nodiscard]] std::string content_text(FileSystem& files, const std::string& path);

} // namespace ranktune::storage
