// SPDX-License-Identifier: Apache-2.0
#include "data/chunk_filters.hpp"

#include <zlib.h>

#include <cstring>
#include <string>

#include "ranktune/base/error.hpp"

namespace ranktune::data {

namespace {

std::vector<std::byte> inflated(const std::vector<std::byte>& packed, std::size_t size) {
    std::vector<std::byte> plain(size);
    uLongf length = size;
    const int code = uncompress(reinterpret_cast<Bytef*>(plain.data()), &length,
                                reinterpret_cast<const Bytef*>(packed.data()), packed.size());
    if (code != Z_OK) throw base::FormatError("deflate: zlib says " + std::string(zError(code)));
    plain.resize(length);
    return plain;
}

/// First all first bytes of the elements, then all second ones, and so on; what is left over comes last, as it is.
std::vector<std::byte> unshuffled(const std::vector<std::byte>& mixed, std::size_t element) {
    std::vector<std::byte> plain = mixed;
    const std::size_t count = mixed.size() / element;
    for (std::size_t byte = 0; byte < element; ++byte)
        for (std::size_t i = 0; i < count; ++i) plain[i * element + byte] = mixed[byte * count + i];
    return plain;
}

/// HDF5's form of Fletcher's checksum: big-endian words of 16 bits, sums modulo 65,535.
std::uint32_t fletcher32(std::span<const std::byte> bytes) {
    std::uint32_t first = 0;
    std::uint32_t second = 0;
    const auto fold = [](std::uint32_t x) { return (x & 0xFFFFU) + (x >> 16U); };
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
        const auto low = i + 1 < bytes.size() ? static_cast<std::uint32_t>(bytes[i + 1]) : 0U;
        first = fold(first + (static_cast<std::uint32_t>(bytes[i]) << 8U | low));
        second = fold(second + first);
    }
    return fold(second) << 16U | fold(first);
}

void take_checksum(std::vector<std::byte>& bytes) {
    std::uint32_t stored = 0;
    if (bytes.size() < sizeof stored) throw base::FormatError("the checksum is missing");
    const std::size_t size = bytes.size() - sizeof stored;
    std::memcpy(&stored, bytes.data() + size, sizeof stored);
    bytes.resize(size);
    if (fletcher32(bytes) != stored) throw base::FormatError("the checksum (fletcher32) is wrong");
}

} // namespace

std::vector<std::byte> undo_filters(std::vector<std::byte> chunk, std::span<const ChunkFilter> filters,
                                    std::uint32_t skipped, std::size_t element, std::size_t size) {
    for (std::size_t i = filters.size(); i-- > 0;) {
        if (i < 32 && (skipped >> i & 1U) != 0) continue;
        // A checksum may have been added before the bytes were packed.
        if (filters[i] == ChunkFilter::deflate) chunk = inflated(chunk, size + 4 * i);
        if (filters[i] == ChunkFilter::shuffle && element > 1) chunk = unshuffled(chunk, element);
        if (filters[i] == ChunkFilter::fletcher32) take_checksum(chunk);
    }
    if (chunk.size() != size)
        throw base::FormatError("has " + std::to_string(chunk.size()) + " bytes instead of " + std::to_string(size));
    return chunk;
}

} // namespace ranktune::data
