// SPDX-License-Identifier: Apache-2.0
#pragma once
// What HDF5's filters did to a chunk is undone here, so that threads decode without the library's lock (HDF5 File
// Format Specification 3.0, IV.A.2.l, and the library's filters of these names).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ranktune::data {

enum class ChunkFilter : std::uint8_t { deflate, shuffle, fletcher32 };

/// The bytes of a chunk. `filters` are in the order in which they were applied; bit i of `skipped`: filter i was not.
/// Throws base::FormatError with the reason, without a place, unless the result has `size` bytes.
[[nodiscard]] std::vector<std::byte> undo_filters(std::vector<std::byte> chunk, std::span<const ChunkFilter> filters,
                                                  std::uint32_t skipped, std::size_t element, std::size_t size);

} // namespace ranktune::data
