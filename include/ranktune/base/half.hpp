// SPDX-License-Identifier: Apache-2.0
#pragma once
// Float16 and BFloat16: numbers of 16 bits, for storage and transfer. Arithmetic is done in float.

#include <bit>
#include <cstdint>
#include <span>

namespace ranktune::base {

/// IEEE 754 binary16: 1 sign bit, 5 exponent bits, 10 fraction bits. Largest finite value 65504, smallest normal one
/// 2^-14, smallest subnormal one 2^-24.
class Float16 {
  public:
    constexpr Float16() = default;
    /// Rounds to nearest, ties to even; what rounds to 65536 or more becomes infinite. A NaN becomes a quiet NaN with
    /// the same sign and the upper bits of its payload.
    constexpr explicit Float16(float value) : bits_(encode(value)) {}
    /// Exact. A NaN becomes quiet.
    [[nodiscard]] constexpr explicit operator float() const;

    [[nodiscard]] static constexpr Float16 from_bits(std::uint16_t bits) {
        Float16 number;
        number.bits_ = bits;
        return number;
    }
    [[nodiscard]] constexpr std::uint16_t bits() const { return bits_; }

  private:
    static constexpr std::uint16_t encode(float value);
    std::uint16_t bits_ = 0;
};

/// bfloat16: the upper half of an IEEE 754 binary32, with 8 exponent bits and 7 fraction bits: the range of float with
/// 2 to 3 decimal digits.
class BFloat16 {
  public:
    constexpr BFloat16() = default;
    /// Rounds to nearest, ties to even; what is too large becomes infinite. NaN as for Float16.
    constexpr explicit BFloat16(float value) : bits_(encode(value)) {}
    /// Exact. A NaN becomes quiet.
    [[nodiscard]] constexpr explicit operator float() const;

    [[nodiscard]] static constexpr BFloat16 from_bits(std::uint16_t bits) {
        BFloat16 number;
        number.bits_ = bits;
        return number;
    }
    [[nodiscard]] constexpr std::uint16_t bits() const { return bits_; }

  private:
    static constexpr std::uint16_t encode(float value);
    std::uint16_t bits_ = 0;
};

/// The conversions above for arrays of the same length.
void convert(std::span<const Float16> from, std::span<float> to);
void convert(std::span<const BFloat16> from, std::span<float> to);
void convert(std::span<const float> from, std::span<Float16> to);
void convert(std::span<const float> from, std::span<BFloat16> to);

// ---- implementation ----

constexpr Float16::operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits_ & 0x8000U) << 16U;
    const std::uint32_t magnitude = bits_ & 0x7FFFU;
    if (magnitude < 0x0400U) { // zero or subnormal: a multiple of 2^-24
        const auto value = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);
        return std::bit_cast<float>(sign | value);
    }
    if (magnitude < 0x7C00U) return std::bit_cast<float>(sign | ((magnitude << 13U) + (112U << 23U)));
    const std::uint32_t quiet = magnitude > 0x7C00U ? 0x0040'0000U : 0U;
    return std::bit_cast<float>(sign | 0x7F80'0000U | quiet | ((magnitude & 0x03FFU) << 13U));
}

constexpr std::uint16_t Float16::encode(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = (bits >> 16U) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7FFF'FFFFU;
    std::uint32_t half = 0;
    if (magnitude > 0x7F80'0000U) {
        half = 0x7E00U | ((magnitude >> 13U) & 0x03FFU);
    } else if (magnitude >= 0x4780'0000U) { // 65536 or more
        half = 0x7C00U;
    } else if (magnitude < 0x3880'0000U) { // below 2^-14: floats from 0.5 on are 2^-24 apart, so the addition rounds
        half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F00'0000U;
    } else {
        half = (magnitude - (112U << 23U) + 0x0FFFU + ((magnitude >> 13U) & 1U)) >> 13U;
    }
    return static_cast<std::uint16_t>(sign | half);
}

constexpr BFloat16::operator float() const {
    const auto bits = static_cast<std::uint32_t>(bits_) << 16U;
    const bool nan = (bits & 0x7FFF'FFFFU) > 0x7F80'0000U;
    return std::bit_cast<float>(bits | (nan ? 0x0040'0000U : 0U));
}

constexpr std::uint16_t BFloat16::encode(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7FFF'FFFFU) > 0x7F80'0000U) return static_cast<std::uint16_t>((bits >> 16U) | 0x0040U);
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

} // namespace ranktune::base
