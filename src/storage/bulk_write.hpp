// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes large parts of a new file while another thread computes something from them.

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

/// Writes the parts and runs `meanwhile` on the calling thread; a large total is written by a second thread. `direct`:
/// where the file system supports it, the whole pages of large parts whose offset and memory are multiples of 4096
/// bypass the page cache; everything else goes to the kernel block by block, so that the disk starts early. Throws
/// base::IoError, or what `meanwhile` threw. Syncs nothing.
void write_parts(File& file, const std::vector<WrittenPart>& parts, bool direct,
                 const std::function<void()>& meanwhile);

/// Returns the CRC-32C of `bytes` and calls `also` with each piece first. A piece fits in the CPU's cache, so main
/// memory is read once, by `also`. (The CRC reads three streams: slow from main memory, fast from the cache.)
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
