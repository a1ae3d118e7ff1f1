// SPDX-License-Identifier: Apache-2.0
#include "ranktune/base/digest.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace ranktune::base {
namespace {

// Little-endian hosts only: the files and messages of this project are little-endian and written as they are.
static_assert(std::endian::native == std::endian::little, "ranktune writes little-endian files without conversion");

template <class T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

constexpr std::array<std::uint32_t, 256> crc_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t crc = i;
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
        table[i] = crc;
    }
    return table;
}

std::uint32_t crc_portable(std::span<const std::byte> bytes, std::uint32_t crc) {
    static constexpr auto table = crc_table();
    for (const std::byte byte : bytes) crc = (crc >> 8) ^ table[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xFFU];
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc_sse42(std::span<const std::byte> bytes, std::uint32_t crc) {
    std::uint64_t wide = crc;
    const std::byte* at = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 8; left -= 8, at += 8) wide = _mm_crc32_u64(wide, load<std::uint64_t>(at));
    auto narrow = static_cast<std::uint32_t>(wide);
    for (; left > 0; --left, ++at) narrow = _mm_crc32_u8(narrow, std::to_integer<unsigned char>(*at));
    return narrow;
}
#endif

constexpr std::uint64_t prime1 = 0x9E3779B185EBCA87ULL;
constexpr std::uint64_t prime2 = 0xC2B2AE3D27D4EB4FULL;
constexpr std::uint64_t prime3 = 0x165667B19E3779F9ULL;
constexpr std::uint64_t prime4 = 0x85EBCA77C2B2AE63ULL;
constexpr std::uint64_t prime5 = 0x27D4EB2F165667C5ULL;

std::uint64_t round(std::uint64_t lane, std::uint64_t input) { return std::rotl(lane + input * prime2, 31) * prime1; }

std::uint64_t merge(std::uint64_t hash, std::uint64_t lane) { return (hash ^ round(0, lane)) * prime1 + prime4; }

} // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) {
    const std::uint32_t start = ~seed;
#if defined(__x86_64__)
    static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
    if (has_instruction) return ~crc_sse42(bytes, start);
#endif
    return ~crc_portable(bytes, start);
}

Digest::Digest(std::uint64_t seed) : lanes_{seed + prime1 + prime2, seed + prime2, seed, seed - prime1}, seed_(seed) {}

Digest& Digest::add(std::span<const std::byte> bytes) {
    total_ += bytes.size();
    const auto block = [this](const std::byte* at) {
        for (std::size_t i = 0; i < 4; ++i) lanes_[i] = round(lanes_[i], load<std::uint64_t>(at + 8 * i));
    };
    while (!bytes.empty()) {
        if (tail_size_ == 0 && bytes.size() >= sizeof tail_) {
            block(bytes.data());
            bytes = bytes.subspan(sizeof tail_);
            continue;
        }
        const std::size_t taken = std::min(bytes.size(), sizeof tail_ - tail_size_);
        std::memcpy(tail_ + tail_size_, bytes.data(), taken);
        tail_size_ += taken;
        bytes = bytes.subspan(taken);
        if (tail_size_ == sizeof tail_) {
            block(tail_);
            tail_size_ = 0;
        }
    }
    return *this;
}

std::uint64_t Digest::value() const {
    std::uint64_t hash = seed_ + prime5;
    if (total_ >= sizeof tail_) {
        hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
        for (const std::uint64_t lane : lanes_) hash = merge(hash, lane);
    }
    hash += total_;
    const std::byte* at = tail_;
    std::size_t left = tail_size_;
    for (; left >= 8; left -= 8, at += 8)
        hash = std::rotl(hash ^ round(0, load<std::uint64_t>(at)), 27) * prime1 + prime4;
    if (left >= 4) {
        hash = std::rotl(hash ^ (load<std::uint32_t>(at) * prime1), 23) * prime2 + prime3;
        left -= 4;
        at += 4;
    }
    for (; left > 0; --left, ++at) hash = std::rotl(hash ^ (std::to_integer<std::uint64_t>(*at) * prime5), 11) * prime1;
    hash = (hash ^ (hash >> 33)) * prime2;
    hash = (hash ^ (hash >> 29)) * prime3;
    return hash ^ (hash >> 32);
}

std::uint64_t digest_of(std::string_view text) { return Digest().add(std::as_bytes(std::span(text))).value(); }

} // namespace ranktune::base
