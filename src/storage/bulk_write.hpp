// SPDX-License-Identifier: Apache-2.0
#pragma once
// Large parts of a new file, written while something else is computed from them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ranktune/base/digest.hpp"
#include "storage/file_system.hpp"

namespace ranktune::storage {

/// Bytes and their place in the file.
struct WrittenPart {
    std::uint64_t offset = 0;
    std::span<const std::byte> bytes;
};

/// Writes the parts and runs `meanwhile` on the calling thread; the writing has a thread of its own when it is worth
/// one. `direct`: of large parts whose offset and memory are multiples of 4096, whole pages go past the page cache
/// where the file system can; the rest, and everything elsewhere, is handed to the kernel block by block so that the
/// disk starts early. Throws base::IoError, or what `meanwhile` threw. Nothing is synced.
void write_parts(File& file, const std::vector<WrittenPart>& parts, bool direct,
                 const std::function<void()>& meanwhile);

/// The CRC-32C of bytes, which `also` gets in pieces that stay in the CPU's cache: memory is read once, by `also`. (The
/// CRC's three streams come from memory at half the speed of one, and from the cache faster than any.)
template <class Also>
[[nodiscard]] std::uint32_t in_pieces(std::span<const std::byte> bytes, Also&& also) {
    constexpr std::size_t piece_bytes = std::size_t{128} * 1024;
    std::uint32_t crc = 0;
    while (!bytes.empty()) {
        const auto piece = bytes.first(std::min(piece_bytes, bytes.size()));
        also(piece);
        crc = base::crc32c(piece, crc);
        bytes = bytes.subspan(piece.size());
    }
    return crc;
}

} // namespace ranktune::storage
