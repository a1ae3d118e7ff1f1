// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arithmetic of domains: evenly spaced values, sizes of cross products.

#include <cstdint>

#include "ranktune/space/domain.hpp"

namespace ranktune::space {

/// Values origin + k x quantum, each the double nearest to the decimal number: with the quantum 0.1, at(3) is 0.3 and
/// not 0.30000000000000004. So a bound written `0.3` in a study file is a multiple of `0.1`.
class Multiples {
  public:
    /// Requires a finite quantum > 0 and a finite origin.
    explicit Multiples(double quantum, double origin = 0.0);

    /// `k` is a whole number.
    [[nodiscard]] double at(double k) const;
    /// Number of the nearest multiple; of two equally near ones the one farther from zero.
    [[nodiscard]] double nearest(double x) const;
    /// Number of the smallest multiple >= x and of the largest <= x. Require |x - origin| / quantum <= 2^50.
    [[nodiscard]] double ceiling(double x) const;
    [[nodiscard]] double floor(double x) const;

  private:
    double quantum_;
    double origin_;
    double digits_ = 0.0;        ///< quantum = digits / scale, both whole numbers; 0: no such short form
    double origin_digits_ = 0.0; ///< origin = origin_digits / scale
    double scale_ = 1.0;
};

/// The values origin + k x quantum of an integer range: k = first ... last; first > last: there is none.
struct Steps {
    std::int64_t first;
    std::int64_t last;
    std::int64_t origin;
    std::int64_t quantum;

    /// 0: 2^64
    [[nodiscard]] std::uint64_t count() const {
        return static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first) + 1;
    }
    [[nodiscard]] std::int64_t at(std::uint64_t index) const {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(first) + index);
    }
    /// The value of k.
    [[nodiscard]] std::int64_t value(std::int64_t k) const {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(origin) +
                                         static_cast<std::uint64_t>(k) * static_cast<std::uint64_t>(quantum));
    }
    /// The k of a value of the range.
    [[nodiscard]] std::int64_t number(std::int64_t value) const {
        if (origin == 0) return value / quantum;
        return static_cast<std::int64_t>((static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(origin)) /
                                         static_cast<std::uint64_t>(quantum));
    }
};

/// Requires a quantum >= 1.
[[nodiscard]] Steps steps(const IntRange& range);

/// a x b, at most 2^63.
[[nodiscard]] constexpr std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t most = std::uint64_t{1} << 63;
    if (a == 0 || b == 0) return 0;
    return a > most / b ? most : a * b;
}

} // namespace ranktune::space
