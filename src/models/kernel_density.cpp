// SPDX-License-Identifier: Apache-2.0
#include "models/kernel_density.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numbers>
#include <utility>

#include "models/log_sum.hpp"

namespace ranktune::models {
namespace {

constexpr double below_one = 1.0 - 0x1p-53;
constexpr std::size_t at_a_time = 64; ///< kernels at a time

/// Standard deviation, with the divisor n.
double spread(std::span<const double> values) {
    const auto n = static_cast<double>(values.size());
    double mean = 0.0;
    for (const double value : values) mean += value / n;
    double squares = 0.0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    return std::sqrt(squares / n);
}

double normal_below(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

} // namespace

KernelDensity::KernelDensity(const std::vector<double>& rows, std::vector<std::uint32_t> levels, double min_bandwidth)
    : levels_(std::move(levels)), size_(rows.size() / levels_.size()) {
    assert(size_ > 0 && rows.size() % levels_.size() == 0);
    const auto n = static_cast<double>(size_);
    const double shrink = std::pow(n, -1.0 / (4.0 + static_cast<double>(levels_.size())));
    log_scale_ = -std::log(n);
    for (std::size_t j = 0; j < levels_.size(); ++j) {
        Coordinate coordinate;
        for (std::size_t at = j; at < rows.size(); at += levels_.size()) coordinate.values.push_back(rows[at]);
        double width = std::max(1.06 * spread(coordinate.values) * shrink, min_bandwidth);
        const double count = levels_[j];
        if (levels_[j] == 0) {
            coordinate.inverse = 1.0 / width;
            log_scale_ -= std::log(width) + 0.5 * std::log(2.0 * std::numbers::pi);
        } else {
            width = std::min(width, (count - 1.0) / count);
            coordinate.same = std::log1p(-width);
            if (levels_[j] > 1) coordinate.other = std::log(width / (count - 1.0));
        }
        bandwidths_.push_back(width);
        coordinates_.push_back(std::move(coordinate));
    }
}

void KernelDensity::exponents(std::span<const double> point, std::size_t begin, std::span<double> result) const {
    std::ranges::fill(result, 0.0);
    for (std::size_t j = 0; j < point.size(); ++j) {
        const Coordinate& coordinate = coordinates_[j];
        const double here = point[j];
        const double* at = &coordinate.values[begin];
        if (levels_[j] == 0) {
            for (std::size_t i = 0; i < result.size(); ++i) {
                const double z = (here - at[i]) * coordinate.inverse;
                result[i] -= 0.5 * z * z;
            }
        } else {
            for (std::size_t i = 0; i < result.size(); ++i)
                result[i] += here == at[i] ? coordinate.same : coordinate.other;
        }
    }
}

double KernelDensity::log_density(std::span<const double> point) const {
    LogSum sum;
    std::array<double, at_a_time> kernels;
    for (std::size_t begin = 0; begin < size_; begin += at_a_time) {
        const auto some = std::span(kernels).first(std::min(at_a_time, size_ - begin));
        exponents(point, begin, some);
        for (const double exponent : some) sum.add(exponent);
    }
    return log_scale_ + sum.value();
}

std::vector<double> KernelDensity::draw_near(base::RngStream& random, double widening) const {
    const std::size_t centre = random.below(size_);
    std::vector<double> point;
    for (std::size_t j = 0; j < coordinates_.size(); ++j) {
        const double value = coordinates_[j].values[centre];
        const double u = random.uniform_open();
        if (levels_[j] == 0)
            point.push_back(truncated_normal(u, value, widening * bandwidths_[j]));
        else
            point.push_back(u < 1.0 - bandwidths_[j] ? value : static_cast<double>(random.below(levels_[j])));
    }
    return point;
}

double truncated_normal(double p, double mean, double sd) {
    const double below = normal_below((0.0 - mean) / sd);
    const double up_to = normal_below((1.0 - mean) / sd);
    const double inside = std::clamp(below + p * (up_to - below), 0x1p-1000, below_one);
    return std::clamp(mean + sd * base::inverse_normal(inside), 0.0, below_one);
}

} // namespace ranktune::models
