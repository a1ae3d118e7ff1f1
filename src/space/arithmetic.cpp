// SPDX-License-Identifier: Apache-2.0
#include "space/arithmetic.hpp"

#include <algorithm>
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

/// A number as digits x 10^-decimals, in the shortest form that reads back as the number.
struct Decimal {
    double digits = 0.0;
    int decimals = 0;
};

Decimal decimal(double number) {
    std::array<char, 32> text{};
    const char* const end =
        std::to_chars(text.data(), text.data() + text.size(), std::abs(number), std::chars_format::scientific).ptr;
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
    return {std::copysign(digits, number), behind - exponent};
}

/// The number x 10^decimals as a whole number; beyond `exact_limit` if it has no such exact form.
double shifted(const Decimal& number, int decimals) {
    const int zeros = decimals - number.decimals;
    if (number.digits == 0.0) return 0.0;
    if (zeros < 0 || static_cast<std::size_t>(zeros) >= powers.size()) return 2.0 * exact_limit;
    return number.digits * powers[static_cast<std::size_t>(zeros)];
}

} // namespace

Multiples::Multiples(double quantum, double origin) : quantum_(quantum), origin_(origin) {
    assert(std::isfinite(quantum) && quantum > 0.0 && std::isfinite(origin));
    const Decimal step = decimal(quantum);
    const Decimal start = decimal(origin);
    const int decimals = origin == 0.0 ? step.decimals : std::max(step.decimals, start.decimals);
    if (decimals <= 0 || static_cast<std::size_t>(decimals) >= powers.size()) return;
    const double digits = shifted(step, decimals);
    const double origin_digits = shifted(start, decimals);
    if (digits >= exact_limit || std::abs(origin_digits) >= exact_limit) return;
    digits_ = digits;
    origin_digits_ = origin_digits;
    scale_ = powers[static_cast<std::size_t>(decimals)];
}

double Multiples::at(double k) const {
    // Both operands are whole numbers without rounding, so the quotient is the double nearest to the decimal number.
    const double numerator = origin_digits_ + k * digits_;
    if (digits_ != 0.0 && std::abs(k * digits_) <= exact_limit && std::abs(numerator) <= exact_limit)
        return numerator / scale_ + 0.0; // never -0.0
    return origin_ + k * quantum_ + 0.0;
}

double Multiples::nearest(double x) const { return std::round((x - origin_) / quantum_); }

double Multiples::ceiling(double x) const {
    double k = std::floor((x - origin_) / quantum_) - 1.0;
    while (at(k) < x) k += 1.0;
    return k;
}

double Multiples::floor(double x) const {
    double k = std::ceil((x - origin_) / quantum_) + 1.0;
    while (at(k) > x) k -= 1.0;
    return k;
}

Steps steps(const IntRange& range) {
    if (range.from_lower && range.quantum > 1) {
        const std::uint64_t span = static_cast<std::uint64_t>(range.upper) - static_cast<std::uint64_t>(range.lower);
        const std::uint64_t last = span / static_cast<std::uint64_t>(range.quantum);
        return {0, static_cast<std::int64_t>(last), range.lower, range.quantum};
    }
    // Rounded towards the inside; C++ division rounds towards zero.
    const std::int64_t first = range.lower / range.quantum + (range.lower % range.quantum > 0 ? 1 : 0);
    const std::int64_t last = range.upper / range.quantum - (range.upper % range.quantum < 0 ? 1 : 0);
    return {first, last, 0, range.quantum};
}

} // namespace ranktune::space
