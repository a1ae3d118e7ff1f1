// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

namespace ranktune::models {

/// The logarithm of a sum of exponentials, kept relative to the largest of them.
class LogSum {
  public:
    /// Nothing yet.
    LogSum() = default;
    /// weight x e^exponent.
    LogSum(double exponent, double weight) : largest_(exponent), sum_(weight) {}

    /// Whether e^exponent would not be lost in the rounding of the sum.
    [[nodiscard]] bool matters(double exponent) const { return exponent > largest_ - negligible; }
    /// Adds weight x e^exponent, if it matters.
    void add(double exponent, double weight = 1.0) {
        if (!matters(exponent)) return;
        if (exponent <= largest_) {
            sum_ += weight * std::exp(exponent - largest_);
        } else {
            sum_ = sum_ * std::exp(largest_ - exponent) + weight;
            largest_ = exponent;
        }
    }
    [[nodiscard]] double value() const { return largest_ + std::log(sum_); }

  private:
    static constexpr double negligible = 40.0;

    double largest_ = -std::numeric_limits<double>::infinity();
    double sum_ = 0.0;
};

} // namespace ranktune::models
