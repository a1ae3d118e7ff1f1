// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers brought closer to a normal distribution.

#include <span>
#include <vector>

namespace ranktune::models {

/// The values less their mean, divided by their standard deviation (of the population); zeros if all are equal. Finite
/// for finite values of any size.
[[nodiscard]] std::vector<double> standardised(std::span<const double> values);

/// Yeo and Johnson, "A new family of power transformations to improve normality or symmetry", Biometrika 2000,
/// equation 2.1: strictly increasing, the identity for power 1.
[[nodiscard]] double yeo_johnson(double value, double power);

/// The power in [-2, 4] with which the values are most likely to be normal (equation 3.1), to about 0.01; 1 if they are
/// equal.
[[nodiscard]] double most_normal_power(std::span<const double> values);

} // namespace ranktune::models
