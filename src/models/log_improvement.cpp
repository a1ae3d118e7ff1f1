// SPDX-License-Identifier: Apache-2.0
#include "models/log_improvement.hpp"

#include <cmath>
#include <numbers>

namespace ranktune::models {
namespace {

const double log_root_2_pi = 0.5 * std::log(2.0 * std::numbers::pi);

/// Below it the difference in h loses the digits; above it the series below has too few terms.
constexpr double tail = -25.0;

} // namespace

LogImprovement log_improvement(double z) {
    if (z > tail) {
        const double density = std::exp(-0.5 * z * z - log_root_2_pi);
        const double below = 0.5 * std::erfc(-z / std::numbers::sqrt2);
        const double h = density + z * below;
        return {std::log(h), below / h};
    }
    // With Phi(z) = phi(z) / |z| (1 - q + 3 q^2 - 15 q^3 + ...), q = 1 / z^2, the leading terms of h cancel:
    // h = phi(z) q (1 - 3 q + 15 q^2 - 105 q^3 + ...).
    const double q = 1.0 / (z * z);
    const double below = 1.0 - q * (1.0 - 3.0 * q * (1.0 - 5.0 * q * (1.0 - 7.0 * q)));
    const double rest = -3.0 * q * (1.0 - 5.0 * q * (1.0 - 7.0 * q * (1.0 - 9.0 * q * (1.0 - 11.0 * q))));
    return {-0.5 * z * z - log_root_2_pi - 2.0 * std::log(-z) + std::log1p(rest), -z * below / (1.0 + rest)};
}

LogProbability log_normal_probability(double z) {
    if (z > tail) {
        const double density = std::exp(-0.5 * z * z - log_root_2_pi);
        const double below = 0.5 * std::erfc(-z / std::numbers::sqrt2);
        return {z > 5.0 ? std::log1p(-0.5 * std::erfc(z / std::numbers::sqrt2)) : std::log(below), density / below};
    }
    const double q = 1.0 / (z * z);
    const double rest = -q * (1.0 - 3.0 * q * (1.0 - 5.0 * q * (1.0 - 7.0 * q)));
    return {-0.5 * z * z - log_root_2_pi - std::log(-z) + std::log1p(rest), -z / (1.0 + rest)};
}

} // namespace ranktune::models
