// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checksums: CRC-32C to find damage, XXH64 to compare states.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace ranktune::base {

/// CRC-32C (Castagnoli, RFC 3720 B.4). `seed` is the value of the bytes before, so that a file can be checked in pieces
/// and frames can be chained. Uses the CPU's instruction where there is one; the result does not depend on it.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);

/// Streaming XXH64 (Collet's specification 0.1.1): a 64-bit digest for comparing parameters across ranks and states of
/// the core across lives. Not a cryptographic hash.
class Digest {
  public:
    explicit Digest(std::uint64_t seed = 0);

    Digest& add(std::span<const std::byte> bytes);
    template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T> Digest& add(const T& value) {
        return add(std::as_bytes(std::span(&value, 1)));
    }

    [[nodiscard]] std::uint64_t value() const;

  private:
    std::uint64_t lanes_[4];
    std::uint64_t seed_;
    std::uint64_t total_ = 0;
    std::byte tail_[32];
    std::size_t tail_size_ = 0;
};

/// XXH64 of a text.
[[nodiscard]] std::uint64_t digest_of(std::string_view text);

} // namespace ranktune::base
