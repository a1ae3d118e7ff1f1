// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers brought closer to a normal distribution.

#include <span>

namespace ranktune::models {

/// A value less the mean of all, divided by their standard deviation (of the population); zero if all are equal. Finite
/// for finite values of any size.
class Standardisation {
  public:
    Standardisation() = default;
    explicit Standardisation(std::span<const double> values);
    [[nodiscard]] double operator()(double value) const { return (value / largest_ - mean_) * inverse_; }
    /// If all values were equal, that value.
    [[nodiscard]] double back(double standard) const {
        return (inverse_ == 0.0 ? mean_ : standard / inverse_ + mean_) * largest_;
    }

  private:
    double largest_ = 1.0;
    double mean_ = 0.0;
    double inverse_ = 1.0; ///< of the deviation
};

/// Yeo and Johnson, "A new family of power transformations to improve normality or symmetry", Biometrika 2000,
/// equation 2.1: strictly increasing, the identity for power 1.
[[nodiscard]] double yeo_johnson(double value, double power);

/// The value whose `yeo_johnson` is `transformed`; infinite, or NaN, where there is none.
[[nodiscard]] double inverse_yeo_johnson(double transformed, double power);

/// The power in [-2, 4] with which the values are most likely to be normal (equation 3.1), to about 0.01; 1 if they are
/// equal.
[[nodiscard]] double most_normal_power(std::span<const double> values);

} // namespace ranktune::models
