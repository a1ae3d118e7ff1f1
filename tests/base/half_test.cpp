// SPDX-License-Identifier: Apache-2.0
// Every bit pattern of the 16-bit types, against a reference that does not use the bits of a float: it computes values
// from sign, exponent and fraction with ldexp, and rounds by comparing distances to the neighbours.
#include "ranktune/base/half.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "ranktune/study/schema.hpp"
#include "support/catch.hpp"

namespace half_test {

using namespace ranktune::base;

namespace {

struct Float16Format {
    using Type = Float16;
    static constexpr int exponent_bits = 5;
    static constexpr int fraction_bits = 10;
};
struct BFloat16Format {
    using Type = BFloat16;
    static constexpr int exponent_bits = 8;
    static constexpr int fraction_bits = 7;
};

constexpr std::uint32_t patterns = 65'536;

/// For finite patterns.
template <class Format>
double reference_value(std::uint32_t bits) {
    constexpr int bias = (1 << (Format::exponent_bits - 1)) - 1;
    const auto exponent = static_cast<int>((bits >> Format::fraction_bits) & ((1U << Format::exponent_bits) - 1));
    const double fraction = std::ldexp(bits & ((1U << Format::fraction_bits) - 1), -Format::fraction_bits);
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1.0 + fraction, exponent - bias);
    return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

/// The first pattern that is not finite.
template <class Format>
constexpr std::uint32_t infinity_bits = ((1U << Format::exponent_bits) - 1) << Format::fraction_bits;

/// The magnitudes of all finite patterns, and of the one that would follow if the exponent went on.
template <class Format>
std::vector<double> magnitudes() {
    std::vector<double> values;
    for (std::uint32_t bits = 0; bits < infinity_bits<Format>; ++bits) values.push_back(reference_value<Format>(bits));
    values.push_back(std::ldexp(1.0, 1 << (Format::exponent_bits - 1)));
    return values;
}

/// Nearest, ties to even, by search; the last magnitude stands for infinity.
std::uint32_t reference_bits(const std::vector<double>& magnitudes, double value) {
    const std::uint32_t sign = std::signbit(value) ? 0x8000U : 0U;
    const double magnitude = std::abs(value);
    const auto above = std::lower_bound(magnitudes.begin(), magnitudes.end(), magnitude);
    if (above == magnitudes.end()) return sign | static_cast<std::uint32_t>(magnitudes.size() - 1);
    auto nearest = static_cast<std::uint32_t>(above - magnitudes.begin());
    if (nearest > 0) {
        const double up = magnitudes[nearest] - magnitude;
        const double down = magnitude - magnitudes[nearest - 1];
        if (down < up || (down == up && nearest % 2 != 0)) --nearest;
    }
    return sign | nearest;
}

template <class Format>
std::uint32_t encoded(float value) {
    return typename Format::Type(value).bits();
}

template <class Format>
float decoded(std::uint32_t bits) {
    return static_cast<float>(Format::Type::from_bits(static_cast<std::uint16_t>(bits)));
}

/// Counts instead of 65,536 assertions.
template <class Format>
void check_every_pattern() {
    std::uint32_t wrong_values = 0;
    std::uint32_t wrong_patterns = 0;
    for (std::uint32_t bits = 0; bits < patterns; ++bits) {
        const float value = decoded<Format>(bits);
        const std::uint32_t magnitude = bits & 0x7FFFU;
        if (magnitude < infinity_bits<Format>) {
            const double expected = reference_value<Format>(bits);
            if (static_cast<double>(value) != expected || std::signbit(value) != std::signbit(expected)) ++wrong_values;
            if (encoded<Format>(value) != bits) ++wrong_patterns;
        } else if (magnitude == infinity_bits<Format>) {
            if (!std::isinf(value) || std::signbit(value) != (bits > 0x8000U)) ++wrong_values;
            if (encoded<Format>(value) != bits) ++wrong_patterns;
        } else {
            if (!std::isnan(value) || std::signbit(value) != (bits > 0x8000U)) ++wrong_values;
            const std::uint32_t quiet = bits | (1U << (Format::fraction_bits - 1));
            if (encoded<Format>(value) != quiet) ++wrong_patterns; // sign and payload stay
        }
    }
    CHECK(wrong_values == 0);
    CHECK(wrong_patterns == 0);
}

/// Between any two neighbours: the middle, the floats next to it, and the floats next to the neighbours.
template <class Format>
void check_rounding() {
    const auto all = magnitudes<Format>();
    std::uint32_t wrong = 0;
    const auto check = [&](float value) {
        for (const float signed_value : {value, -value})
            if (encoded<Format>(signed_value) != reference_bits(all, static_cast<double>(signed_value))) ++wrong;
    };
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
        const auto low = static_cast<float>(all[i]);
        const auto middle = static_cast<float>((all[i] + all[i + 1]) / 2.0);
        for (const float value :
             {std::nextafter(low, infinity), std::nextafter(middle, 0.0F), middle, std::nextafter(middle, infinity)})
            check(value);
    }
    check(std::numeric_limits<float>::max());
    check(std::numeric_limits<float>::denorm_min());
    RngStream random(1, Purpose::fault, 0, 0);
    for (int i = 0; i < 200'000; ++i) {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random.below(std::uint64_t{1} << 32U)));
        if (std::isfinite(value)) check(value);
    }
    CHECK(wrong == 0);
    CHECK(encoded<Format>(infinity) == infinity_bits<Format>);
    CHECK(encoded<Format>(-infinity) == (infinity_bits<Format> | 0x8000U));
}

} // namespace

TEST_CASE("every float16 has its value, and comes back from it", "[base]") { check_every_pattern<Float16Format>(); }

TEST_CASE("every bfloat16 has its value, and comes back from it", "[base]") { check_every_pattern<BFloat16Format>(); }

TEST_CASE("floats round to the nearest float16, ties to even, also subnormal and too large ones", "[base]") {
    check_rounding<Float16Format>();
}

TEST_CASE("floats round to the nearest bfloat16, ties to even, also subnormal and too large ones", "[base]") {
    check_rounding<BFloat16Format>();
}

TEST_CASE("16-bit numbers have the known bit patterns", "[base]") {
    CHECK(Float16(1.0F).bits() == 0x3C00);
    CHECK(Float16(-2.0F).bits() == 0xC000);
    CHECK(Float16(65504.0F).bits() == 0x7BFF);
    CHECK(Float16(65519.996F).bits() == 0x7BFF);
    CHECK(Float16(65520.0F).bits() == 0x7C00);
    CHECK(Float16(0x1p-24F).bits() == 0x0001);
    CHECK(Float16(0x1p-25F).bits() == 0x0000);
    CHECK(BFloat16(1.0F).bits() == 0x3F80);
    CHECK(BFloat16(3.14159265F).bits() == 0x4049);
    CHECK(BFloat16(std::numeric_limits<float>::max()).bits() == 0x7F80);
    static_assert(Float16(0.333251953125F).bits() == 0x3555); // at compile time, too
    static_assert(static_cast<float>(BFloat16::from_bits(0x4049)) == 3.140625F);
    // A signalling NaN whose payload lies in the bits that are cut off stays a NaN.
    CHECK(BFloat16(std::bit_cast<float>(0x7F80'0001U)).bits() == 0x7FC0);
    CHECK(Float16(std::bit_cast<float>(0xFF80'0001U)).bits() == 0xFE00);
}

TEST_CASE("arrays are converted number by number", "[base]") {
    const std::vector<float> floats{0.1F, -7.0F, 1e30F};
    std::vector<Float16> halves(3);
    std::vector<BFloat16> brains(3);
    std::vector<float> back(3);
    convert(floats, halves);
    convert(halves, back);
    CHECK(back == std::vector<float>{0.0999755859375F, -7.0F, std::numeric_limits<float>::infinity()});
    convert(floats, brains);
    convert(brains, back);
    CHECK(back[0] == static_cast<float>(BFloat16(0.1F)));
    CHECK(std::abs(back[2] / 1e30F - 1.0F) < 0x1p-8F);
}

} // namespace half_test
