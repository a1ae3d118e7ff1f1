// SPDX-License-Identifier: Apache-2.0
#include "models/welch.hpp"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstddef>

namespace ranktune::models {
namespace {

struct Sample {
    explicit Sample(std::span<const double> values) {
        for (const double value : values) {
            if (!std::isfinite(value)) continue;
            ++count;
            const double from_mean = value - mean;
            mean += from_mean / static_cast<double>(count);
            squares += from_mean * (value - mean);
        }
    }
    /// The variance of the mean.
    [[nodiscard]] double variance() const {
        return squares / static_cast<double>(count - 1) / static_cast<double>(count);
    }
    std::size_t count = 0;
    double mean = 0.0;
    double squares = 0.0; ///< sum of the squared distances from the mean
};

} // namespace

WelchTest welch_test(std::span<const double> a, std::span<const double> b) {
    const Sample one(a);
    const Sample other(b);
    if (one.count < 2 || other.count < 2) return {};
    const double difference = one.mean - other.mean;
    const double variance = one.variance() + other.variance();
    if (!(variance > 0.0)) return {difference, difference == 0.0 ? 1.0 : 0.0};
    const double t = difference / std::sqrt(variance);
    const auto share = [&](const Sample& sample) {
        const double part = sample.variance() / variance;
        return part * part / static_cast<double>(sample.count - 1);
    };
    const double degrees = 1.0 / (share(one) + share(other)); // Welch-Satterthwaite
    if (!std::isfinite(t) || !std::isfinite(degrees)) return {difference, 0.0};
    const boost::math::students_t_distribution<double> distribution(degrees);
    return {difference, 2.0 * boost::math::cdf(boost::math::complement(distribution, std::abs(t)))};
}

} // namespace ranktune::models
