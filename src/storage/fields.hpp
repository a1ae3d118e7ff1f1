// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads and writes numbers at fixed offsets of a byte block, little-endian (the codec refuses other machines).

#include <cstddef>
#include <cstring>
#include <span>

namespace ranktune::storage {

/// Requires that the value fits between `at` and the end of `bytes`; so does `get`.
template <class T>
void put(std::span<std::byte> bytes, std::size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <class T>
[[nodiscard]] T get(std::span<const std::byte> bytes, std::size_t at) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

} // namespace ranktune::storage
