// SPDX-License-Identifier: Apache-2.0
#pragma once
// The logarithms of expected improvement and of the normal distribution function.

namespace ranktune::models {

/// log h(z) and its derivative, where h(z) = phi(z) + z Phi(z) is the expected improvement of a standard normal
/// variable over -z. Accurate where h underflows (Ament et al., "Unexpected improvements to expected improvement for
/// Bayesian optimization", NeurIPS 2023, section 4.1). Any finite z up to 1e150 in size.
struct LogImprovement {
    double value = 0.0;
    double slope = 0.0; ///< Phi(z) / h(z)
};
[[nodiscard]] LogImprovement log_improvement(double z);

/// log Phi(z) and its derivative, also where Phi underflows. Any finite z up to 1e150 in size.
struct LogProbability {
    double value = 0.0;
    double slope = 0.0; ///< phi(z) / Phi(z)
};
[[nodiscard]] LogProbability log_normal_probability(double z);

} // namespace ranktune::models
