// SPDX-License-Identifier: Apache-2.0
#pragma once
// The logarithm of expected improvement.

namespace ranktune::models {

/// log h(z) and its derivative, where h(z) = phi(z) + z Phi(z) is the expected improvement of a standard normal
/// variable over -z. Accurate where h underflows (Ament et al., "Unexpected improvements to expected improvement for
/// Bayesian optimization", NeurIPS 2023, section 4.1). Any finite z up to 1e150 in size.
struct LogImprovement {
    double value = 0.0;
    double slope = 0.0; ///< Phi(z) / h(z)
};
[[nodiscard]] LogImprovement log_improvement(double z);

} // namespace ranktune::models
