// SPDX-License-Identifier: Apache-2.0
#include "models/gaussian_process.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace ranktune::models {
namespace {

using Eigen::Index;

const double root_5 = std::sqrt(5.0);
/// Prior variance of the mean; see GpKernel.
constexpr double mean_variance = 1.0;

double matern(double squared_radius) {
    const double s = root_5 * std::sqrt(squared_radius);
    return (1.0 + s + s * s / 3.0) * std::exp(-s);
}
/// The derivative by the squared radius.
double matern_slope(double squared_radius) {
    const double s = root_5 * std::sqrt(squared_radius);
    return -5.0 / 6.0 * (1.0 + s) * std::exp(-s);
}

/// Half the derivative of d^2 by the first coordinate.
double half_slope(double a, double b) {
    if (std::isnan(a)) return 0.0;
    return a - (std::isnan(b) ? 0.5 : b);
}

Index index_of(std::size_t i) { return static_cast<Index>(i); }

} // namespace

double squared_distance(double a, double b, bool category) {
    if (std::isnan(a) || std::isnan(b)) {
        if (std::isnan(a) && std::isnan(b)) return 0.0;
        const double from_middle = (std::isnan(a) ? b : a) - 0.5;
        return category ? 1.0 : from_middle * from_middle + 0.75;
    }
    if (category) return a == b ? 0.0 : 1.0;
    return (a - b) * (a - b);
}

GaussianProcess::GaussianProcess(std::vector<bool> categories, GpKernel kernel)
    : categories_(std::move(categories)), kernel_(std::move(kernel)) {
    assert(!categories_.empty() && kernel_.weights.size() == categories_.size());
    for (const bool category : categories_) is_number_.push_back(category ? 0 : 1);
}

double GaussianProcess::squared_radius(std::span<const double> a, std::span<const double> b) const {
    // squared_distance, with the usual case first: most of the time of a suggestion is spent here.
    double sum = 0.0;
    for (std::size_t j = 0; j < is_number_.size(); ++j) {
        const double gap = a[j] - b[j];
        if (std::isnan(gap))
            sum += kernel_.weights[j] * squared_distance(a[j], b[j], is_number_[j] == 0);
        else
            sum += is_number_[j] != 0 ? kernel_.weights[j] * gap * gap : (gap == 0.0 ? 0.0 : kernel_.weights[j]);
    }
    return sum;
}

Eigen::VectorXd GaussianProcess::covariances(std::span<const double> x) const {
    Eigen::VectorXd all(index_of(size()));
    for (std::size_t i = 0; i < size(); ++i)
        all[index_of(i)] = kernel_.scale * matern(squared_radius(x, point(i))) + mean_variance;
    return all;
}

void GaussianProcess::append(std::span<const double> x) {
    const std::size_t n = size();
    if (index_of(n) == factor_.rows()) {
        const Index room = std::max<Index>(64, 2 * factor_.rows());
        factor_.conservativeResize(room, room);
    }
    // Row n of the factor: L l = k, and what is left of the diagonal.
    auto row = factor_.row(index_of(n)).head(index_of(n));
    if (n > 0) row = factor(n).solve(covariances(x)).transpose();
    const double left = kernel_.scale + mean_variance + kernel_.noise - row.squaredNorm();
    // By rounding, or for equal points without noise.
    factor_(index_of(n), index_of(n)) = std::sqrt(std::max(left, 1e-10 * kernel_.scale));
    points_.insert(points_.end(), x.begin(), x.end());
}

void GaussianProcess::keep(std::size_t size) { points_.resize(std::min(size, this->size()) * categories_.size()); }

void GaussianProcess::set_targets(std::span<const double> targets) {
    assert(targets.size() <= size());
    const auto lower = factor(targets.size());
    targets_ = Eigen::Map<const Eigen::VectorXd>(targets.data(), index_of(targets.size()));
    alpha_ = lower.transpose().solve(Eigen::VectorXd(lower.solve(targets_)));
}

std::vector<double> GaussianProcess::smoothed() const {
    // (K + noise) alpha = targets.
    const Eigen::VectorXd means = targets_ - kernel_.noise * alpha_;
    return {means.begin(), means.end()};
}

GpPosterior GaussianProcess::posterior(std::span<const double> x) const { return posteriors(x).front(); }

std::vector<GpPosterior> GaussianProcess::posteriors(std::span<const double> points) const {
    const std::size_t d = categories_.size();
    const std::size_t count = points.size() / d;
    Eigen::MatrixXd k(index_of(size()), index_of(count));
    for (std::size_t i = 0; i < count; ++i) k.col(index_of(i)) = covariances(points.subspan(i * d, d));
    const Eigen::VectorXd means = k.topRows(alpha_.size()).transpose() * alpha_;
    if (size() > 0) factor(size()).solveInPlace(k);
    std::vector<GpPosterior> all(count);
    for (std::size_t i = 0; i < count; ++i)
        all[i] = {means[index_of(i)], std::max(0.0, kernel_.scale + mean_variance - k.col(index_of(i)).squaredNorm())};
    return all;
}

GpPosterior GaussianProcess::posterior(std::span<const double> x, std::span<double> mean_gradient,
                                       std::span<double> variance_gradient) const {
    const auto lower = factor(size());
    const Eigen::VectorXd k = covariances(x);
    const Eigen::VectorXd v = lower.solve(k);
    const Eigen::VectorXd w = lower.transpose().solve(v);
    std::ranges::fill(mean_gradient, 0.0);
    std::ranges::fill(variance_gradient, 0.0);
    for (std::size_t i = 0; i < size(); ++i) {
        const std::span<const double> other = point(i);
        const double slope = 2.0 * kernel_.scale * matern_slope(squared_radius(x, other));
        const double for_mean = index_of(i) < alpha_.size() ? alpha_[index_of(i)] * slope : 0.0;
        const double for_variance = -2.0 * w[index_of(i)] * slope;
        for (std::size_t j = 0; j < x.size(); ++j) {
            if (categories_[j]) continue;
            const double change = kernel_.weights[j] * half_slope(x[j], other[j]);
            mean_gradient[j] += for_mean * change;
            variance_gradient[j] += for_variance * change;
        }
    }
    return {k.head(alpha_.size()).dot(alpha_), std::max(0.0, kernel_.scale + mean_variance - v.squaredNorm())};
}

} // namespace ranktune::models
