// SPDX-License-Identifier: Apache-2.0
#include "space/arithmetic.hpp"

#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstddef>

namespace ranktune::space {
namespace {

constexpr double exact_limit = 0x1p53; ///< up to here every whole number is a double

/// The powers of ten that a double holds exactly.
constexpr std::array<double, 23> powers = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                           1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

} // namespace

Multiples::Multiples(double quantum) : quantum_(quantum) {
    assert(std::isfinite(quantum) && quantum > 0.0);
    std::array<char, 32> text{};
    const char* const end =
        std::to_chars(text.data(), text.data() + text.size(), quantum, std::chars_format::scientific).ptr;
    // d.ddde-NN: the digits without the point, and how many of them follow it.
    double digits = 0.0;
    int behind = 0;
    const char* at = text.data();
    for (; at != end && *at != 'e'; ++at) {
        if (*at == '.') continue;
        digits = digits * 10.0 + (*at - '0');
        if (at != text.data()) ++behind;
    }
    int exponent = 0;
    const char* const from = at + (at[1] == '+' ? 2 : 1);
    std::from_chars(from, end, exponent);
    const int decimals = behind - exponent;
    if (digits < exact_limit && decimals > 0 && static_cast<std::size_t>(decimals) < powers.size()) {
        digits_ = digits;
        scale_ = powers[static_cast<std::size_t>(decimals)];
    }
}

double Multiples::at(double k) const {
    // Both operands are whole numbers without rounding, so the quotient is the double nearest to the decimal number.
    const double numerator = k * digits_;
    if (digits_ != 0.0 && std::abs(numerator) <= exact_limit) return numerator / scale_ + 0.0; // never -0.0
    return k * quantum_ + 0.0;
}

double Multiples::nearest(double x) const { return std::round(x / quantum_); }

double Multiples::ceiling(double x) const {
    double k = std::floor(x / quantum_) - 1.0;
    while (at(k) < x) k += 1.0;
    return k;
}

double Multiples::floor(double x) const {
    double k = std::ceil(x / quantum_) + 1.0;
    while (at(k) > x) k -= 1.0;
    return k;
}

Steps steps(const IntRange& range) {
    // Rounded towards the inside; C++ division rounds towards zero.
    const std::int64_t first = range.lower / range.quantum + (range.lower % range.quantum > 0 ? 1 : 0);
    const std::int64_t last = range.upper / range.quantum - (range.upper % range.quantum < 0 ? 1 : 0);
    return {first, last};
}

} // namespace ranktune::space
