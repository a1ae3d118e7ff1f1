// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace ranktune::models {

struct WelchTest {
    double difference = 0.0; ///< mean of the first sample minus that of the second
    double p_value = 1.0;    ///< two-sided
};
/// Welch's test that both samples have the same mean, whatever their variances (Welch, "The generalization of Student's
/// problem when several different population variances are involved", Biometrika 1947). Values that are not finite are
/// left out. Difference 0 and p-value 1 where one sample has fewer than two values; p-value 0 or 1 where neither
/// varies.
[[nodiscard]] WelchTest welch_test(std::span<const double> a, std::span<const double> b);

} // namespace ranktune::models
