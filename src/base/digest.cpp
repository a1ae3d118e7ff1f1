// SPDX-License-Identifier: Apache-2.0
#include "ranktune/base/digest.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>
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
/// The factor that advances a CRC over `bytes` zero bytes: x^(8 * bytes - 33) modulo the polynomial, reflected. (A
/// carry-less product of two reflected numbers has one factor x too many, and the CRC instruction multiplies by x^32
/// while it reduces.)
constexpr std::uint32_t crc_over_zeros(std::size_t bytes) {
    std::uint32_t power = 0x80000000U;
    for (std::size_t i = 0; i < 8 * bytes - 33; ++i) power = (power >> 1) ^ ((power & 1U) != 0 ? 0x82F63B78U : 0U);
    return power;
}

__attribute__((target("sse4.2,pclmul"))) inline std::uint64_t past_zeros(std::uint64_t crc, std::uint32_t factor) {
    const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(crc)),
                                                 _mm_cvtsi64_si128(static_cast<long long>(factor)), 0);
    return _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(product)));
}

/// The CRC instruction has a throughput of one per cycle and a latency of three cycles, so three chains of `Third`
/// bytes run side by side and are joined by carry-less products.
template <std::size_t Third>
__attribute__((target("sse4.2,pclmul"))) std::uint64_t crc_in_thirds(const std::byte*& at, std::size_t& left,
                                                                     std::uint64_t crc) {
    constexpr std::uint32_t over_one = crc_over_zeros(Third);
    constexpr std::uint32_t over_two = crc_over_zeros(2 * Third);
    for (; left >= 3 * Third; left -= 3 * Third, at += 3 * Third) {
        std::uint64_t second = 0;
        std::uint64_t third = 0;
        for (std::size_t i = 0; i < Third; i += 8) {
            crc = _mm_crc32_u64(crc, load<std::uint64_t>(at + i));
            second = _mm_crc32_u64(second, load<std::uint64_t>(at + Third + i));
            third = _mm_crc32_u64(third, load<std::uint64_t>(at + 2 * Third + i));
        }
        crc = past_zeros(crc, over_two) ^ past_zeros(second, over_one) ^ third;
    }
    return crc;
}

__attribute__((target("sse4.2,pclmul"))) std::uint32_t crc_instruction(std::span<const std::byte> bytes,
                                                                       std::uint32_t crc) {
    const std::byte* at = bytes.data();
    std::size_t left = bytes.size();
    std::uint64_t wide = crc_in_thirds<1024>(at, left, crc);
    wide = crc_in_thirds<64>(at, left, wide);
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
    static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0;
    if (has_instruction) return ~crc_instruction(bytes, start);
#endif
    return ~crc_portable(bytes, start);
}

Digest::Digest(std::uint64_t seed) : lanes_{seed + prime1 + prime2, seed + prime2, seed, seed - prime1}, seed_(seed) {}

Digest& Digest::add(std::span<const std::byte> bytes) {
    total_ += bytes.size();
    std::array<std::uint64_t, 4> lanes{lanes_[0], lanes_[1], lanes_[2], lanes_[3]}; // in registers: bytes alias members
    const auto block = [&lanes](const std::byte* at) {
        for (std::size_t i = 0; i < 4; ++i) lanes[i] = round(lanes[i], load<std::uint64_t>(at + 8 * i));
    };
    const auto keep = [&] {
        const std::size_t taken = std::min(bytes.size(), sizeof tail_ - tail_size_);
        if (taken != 0) std::memcpy(tail_ + tail_size_, bytes.data(), taken);
        tail_size_ += taken;
        bytes = bytes.subspan(taken);
    };
    if (tail_size_ != 0) keep();
    if (tail_size_ == sizeof tail_) {
        block(tail_);
        tail_size_ = 0;
    }
    for (; bytes.size() >= sizeof tail_; bytes = bytes.subspan(sizeof tail_)) block(bytes.data());
    std::copy(lanes.begin(), lanes.end(), lanes_);
    keep();
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
