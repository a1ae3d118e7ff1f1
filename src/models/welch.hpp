// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace ranktune::models {

/// Two-sided p-value of Welch's test that both samples have the same mean, whatever their variances (Welch, "The
/// generalization of Student's problem when several different population variances are involved", Biometrika 1947).
/// Values that are not finite are left out. 1 where one sample has fewer than two values; where neither varies, 0 or 1.
[[nodiscard]] double welch_p_value(std::span<const double> a, std::span<const double> b);

} // namespace ranktune::models
