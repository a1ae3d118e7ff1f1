// SPDX-License-Identifier: Apache-2.0
#include "models/kernel_density.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace ranktune::models {
namespace {

constexpr double below_one = 1.0 - 0x1p-53;

/// Standard deviation of column j, with the divisor n.
double spread(std::span<const double> rows, std::size_t j, std::size_t columns) {
    const auto n = static_cast<double>(rows.size() / columns);
    double mean = 0.0;
    for (std::size_t at = j; at < rows.size(); at += columns) mean += rows[at] / n;
    double squares = 0.0;
    for (std::size_t at = j; at < rows.size(); at += columns) squares += (rows[at] - mean) * (rows[at] - mean);
    return std::sqrt(squares / n);
}

double normal_below(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

} // namespace

KernelDensity::KernelDensity(std::vector<double> rows, std::vector<std::uint32_t> levels, double min_bandwidth)
    : rows_(std::move(rows)), levels_(std::move(levels)), size_(rows_.size() / levels_.size()) {
    assert(size_ > 0 && rows_.size() % levels_.size() == 0);
    const auto n = static_cast<double>(size_);
    const double shrink = std::pow(n, -1.0 / (4.0 + static_cast<double>(levels_.size())));
    log_scale_ = -std::log(n);
    for (std::size_t j = 0; j < levels_.size(); ++j) {
        double width = std::max(1.06 * spread(rows_, j, levels_.size()) * shrink, min_bandwidth);
        const double count = levels_[j];
        Coordinate coordinate;
        if (levels_[j] == 0) {
            coordinate.inverse = 1.0 / width;
            log_scale_ -= std::log(width) + 0.5 * std::log(2.0 * std::numbers::pi);
        } else {
            width = std::min(width, (count - 1.0) / count);
            coordinate.same = std::log1p(-width);
            if (levels_[j] > 1) coordinate.other = std::log(width / (count - 1.0));
        }
        bandwidths_.push_back(width);
        coordinates_.push_back(coordinate);
    }
}

double KernelDensity::log_density(std::span<const double> point) const {
    // The sum of exponentials, each relative to the largest exponent so far.
    double largest = -std::numeric_limits<double>::infinity();
    double sum = 0.0;
    for (std::size_t i = 0; i < size_; ++i) {
        const std::span<const double> at = row(i);
        double exponent = 0.0;
        for (std::size_t j = 0; j < at.size(); ++j) {
            const Coordinate& coordinate = coordinates_[j];
            const double z = (point[j] - at[j]) * coordinate.inverse; // 0 for a category
            exponent -= 0.5 * z * z;
            exponent += point[j] == at[j] ? coordinate.same : coordinate.other; // 0 for a number
        }
        if (exponent <= largest) {
            sum += std::exp(exponent - largest);
        } else {
            sum = sum * std::exp(largest - exponent) + 1.0;
            largest = exponent;
        }
    }
    return log_scale_ + largest + std::log(sum);
}

std::vector<double> KernelDensity::draw_near(base::RngStream& random, double widening) const {
    const std::span<const double> centre = row(random.below(size_));
    std::vector<double> point(centre.begin(), centre.end());
    for (std::size_t j = 0; j < point.size(); ++j) {
        const double u = random.uniform_open();
        if (levels_[j] == 0)
            point[j] = truncated_normal(u, centre[j], widening * bandwidths_[j]);
        else if (u >= 1.0 - bandwidths_[j])
            point[j] = static_cast<double>(random.below(levels_[j]));
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
