// SPDX-License-Identifier: Apache-2.0
#include "storage/checkpoints/content.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "ranktune/base/digest.hpp"

namespace ranktune::storage {

std::string content_text(FileSystem& files, const std::string& path) {
    const auto file = files.open(path, FileSystem::Open::read);
    const std::uint64_t size = file->size();
    const bool whole = size <= content_whole_bytes;
    const std::uint64_t blocks = whole ? (size + content_block_bytes - 1) / content_block_bytes : content_blocks;
    std::vector<std::byte> block(content_block_bytes);
    base::Digest digest;
    for (std::uint64_t i = 0; i < blocks; ++i) {
        // Of a large file the last block ends where the file does.
        const std::uint64_t at = whole ? i * content_block_bytes : (size - content_block_bytes) / (blocks - 1) * i;
        const std::uint64_t from = !whole && i + 1 == blocks ? size - content_block_bytes : at;
        digest.add(std::span(block).first(file->read_at(from, block)));
    }
    char text[96];
    std::snprintf(text, sizeof text, "%llu bytes, XXH64%s %016llx", static_cast<unsigned long long>(size),
                  whole ? "" : " of 64 MiB", static_cast<unsigned long long>(digest.value()));
    return text;
}

} // namespace ranktune::storage
