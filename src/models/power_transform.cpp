// SPDX-License-Identifier: Apache-2.0
#include "models/power_transform.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace ranktune::models {
namespace {

struct Moments {
    double mean = 0.0;
    double variance = 0.0;
};

template <class Of>
Moments moments(std::span<const double> values, Of of) {
    Moments m;
    const auto count = static_cast<double>(values.size());
    for (const double value : values) m.mean += of(value) / count;
    for (const double value : values) m.variance += (of(value) - m.mean) * (of(value) - m.mean) / count;
    return m;
}

double log_likelihood(std::span<const double> values, double power) {
    const Moments m = moments(values, [power](double value) { return yeo_johnson(value, power); });
    double logarithms = 0.0;
    for (const double value : values) logarithms += std::copysign(std::log1p(std::abs(value)), value);
    return -0.5 * static_cast<double>(values.size()) * std::log(m.variance) + (power - 1.0) * logarithms;
}

} // namespace

Standardisation::Standardisation(std::span<const double> values) {
    double largest = 0.0;
    for (const double value : values) largest = std::max(largest, std::abs(value));
    if (largest == 0.0) {
        inverse_ = 0.0;
        return;
    }
    largest_ = largest;
    const Moments m = moments(values, [largest](double value) { return value / largest; });
    mean_ = m.mean;
    // Equal values differ from their mean by rounding.
    inverse_ = m.variance < 1e-30 ? 0.0 : 1.0 / std::sqrt(m.variance);
}

double yeo_johnson(double value, double power) {
    if (value >= 0.0) return power == 0.0 ? std::log1p(value) : std::expm1(power * std::log1p(value)) / power;
    const double other = 2.0 - power;
    return other == 0.0 ? -std::log1p(-value) : -std::expm1(other * std::log1p(-value)) / other;
}

double inverse_yeo_johnson(double transformed, double power) {
    if (transformed >= 0.0)
        return power == 0.0 ? std::expm1(transformed) : std::expm1(std::log1p(power * transformed) / power);
    const double other = 2.0 - power;
    return other == 0.0 ? -std::expm1(-transformed) : -std::expm1(std::log1p(-other * transformed) / other);
}

double most_normal_power(std::span<const double> values) {
    const auto [low_value, high_value] = std::ranges::minmax_element(values);
    if (values.empty() || *low_value == *high_value) return 1.0;
    // The likelihood has one maximum (Yeo and Johnson, section 3): golden sections.
    double low = -2.0;
    double high = 4.0;
    const double part = 1.0 / std::numbers::phi;
    double a = high - part * (high - low);
    double b = low + part * (high - low);
    double at_a = log_likelihood(values, a);
    double at_b = log_likelihood(values, b);
    while (high - low > 0.01) {
        if (at_a < at_b) {
            low = std::exchange(a, b);
            at_a = at_b;
            b = low + part * (high - low);
            at_b = log_likelihood(values, b);
        } else {
            high = std::exchange(b, a);
            at_b = at_a;
            a = high - part * (high - low);
            at_a = log_likelihood(values, a);
        }
    }
    return 0.5 * (low + high);
}

} // namespace ranktune::models
