// SPDX-License-Identifier: Apache-2.0
#pragma once
// The multiples of a quantum as a person would write them.

namespace ranktune::space {

/// Multiples k x quantum, each the double nearest to the decimal number: with the quantum 0.1, at(3) is 0.3 and not
/// 0.30000000000000004. So a bound written `0.3` in a study file is a multiple of `0.1`.
class Multiples {
  public:
    /// Requires a finite quantum > 0.
    explicit Multiples(double quantum);

    /// `k` is a whole number.
    [[nodiscard]] double at(double k) const;
    /// Number of the nearest multiple; of two equally near ones the one farther from zero.
    [[nodiscard]] double nearest(double x) const;
    /// Number of the smallest multiple >= x and of the largest <= x. Require |x / quantum| <= 2^50.
    [[nodiscard]] double ceiling(double x) const;
    [[nodiscard]] double floor(double x) const;

  private:
    double quantum_;
    double digits_ = 0.0; ///< quantum = digits / scale, both whole numbers; 0: no such short form
    double scale_ = 1.0;
};

} // namespace ranktune::space
