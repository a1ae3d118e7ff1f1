// SPDX-License-Identifier: Apache-2.0
#include "searchers/gp/gp_limits.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/log_improvement.hpp"

namespace ranktune::searchers {
namespace {

constexpr int limit_fit_evaluations = 40;

struct LimitTargets {
    std::vector<double> values; ///< mean 0, variance 1
    double bound = 0.0;
};

/// What the model of constraint `k` learns.
LimitTargets limit_targets(const GpLimits::Results& results, std::size_t k) {
    std::vector<double> sizes;
    double largest = 0.0;
    for (const auto& distances : results.distances) {
        if (!std::isfinite(distances[k])) continue;
        largest = std::max(largest, distances[k]);
        if (distances[k] != 0.0) sizes.push_back(std::abs(distances[k]));
    }
    double scale = 1.0;
    if (!sizes.empty()) {
        const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
        std::ranges::nth_element(sizes, middle);
        scale = *middle;
    }
    if (largest == 0.0) largest = scale; // a value that is not finite violates the constraint
    LimitTargets targets;
    double sum = 0.0;
    for (const auto& distances : results.distances) {
        targets.values.push_back(std::asinh((std::isfinite(distances[k]) ? distances[k] : largest) / scale));
        sum += targets.values.back();
    }
    const auto count = static_cast<double>(targets.values.size());
    const double mean = sum / count;
    double squares = 0.0;
    for (const double value : targets.values) squares += (value - mean) * (value - mean);
    double deviation = std::sqrt(squares / count);
    if (!(deviation > 1e-12)) deviation = 1.0;
    for (double& value : targets.values) value = (value - mean) / deviation;
    targets.bound = -mean / deviation;
    return targets;
}

double log_kept(const models::GpPosterior& posterior, double bound) {
    return models::log_normal_probability((bound - posterior.mean) / posterior.deviation()).value;
}

} // namespace

bool same_point(std::span<const double> a, std::span<const double> b) {
    return std::ranges::equal(a, b, [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

void GpSurface::hold(std::vector<std::vector<double>> all) {
    std::size_t same = 0;
    while (same < std::min(all.size(), points.size()) && same_point(all[same], points[same])) ++same;
    process.keep(same);
    for (std::size_t i = same; i < all.size(); ++i) process.append(all[i]);
    points = std::move(all);
}

void GpLimits::fit(const Results& results) {
    limits_.clear();
    if (results.points.empty()) return;
    std::vector<double> flat;
    for (const Point& point : results.points) flat.insert(flat.end(), point.begin(), point.end());
    for (std::size_t k = 0; k < results.distances.front().size(); ++k) {
        const auto kernel =
            models::fit_kernel(categories_, flat, limit_targets(results, k).values, limit_fit_evaluations);
        limits_.push_back({GpSurface{models::GaussianProcess(categories_, kernel)}, 0.0});
    }
}

void GpLimits::learn(const Results& results, const std::vector<Point>& others) {
    for (std::size_t k = 0; k < limits_.size(); ++k) {
        std::vector<Point> points = results.points;
        points.insert(points.end(), others.begin(), others.end());
        limits_[k].surface.hold(std::move(points));
        const LimitTargets targets = limit_targets(results, k);
        limits_[k].surface.process.set_targets(targets.values);
        limits_[k].bound = targets.bound;
    }
}

double GpLimits::log_probability(std::span<const double> point) const {
    double sum = 0.0;
    for (const Limit& limit : limits_) sum += log_kept(limit.surface.process.posterior(point), limit.bound);
    return sum;
}

double GpLimits::log_probability(std::span<const double> point, std::span<double> gradient) const {
    double sum = 0.0;
    std::vector<double> of_mean(point.size());
    std::vector<double> of_variance(point.size());
    for (const Limit& limit : limits_) {
        const auto posterior = limit.surface.process.posterior(point, of_mean, of_variance);
        const double deviation = posterior.deviation();
        const double z = (limit.bound - posterior.mean) / deviation;
        const models::LogProbability p = models::log_normal_probability(z);
        sum += p.value;
        for (std::size_t j = 0; j < point.size(); ++j)
            gradient[j] -= p.slope * (of_mean[j] + z * 0.5 * of_variance[j] / deviation) / deviation;
    }
    return sum;
}

std::vector<double> GpLimits::log_probabilities(std::span<const double> points, std::size_t count) const {
    std::vector<double> sums(count, 0.0);
    for (const Limit& limit : limits_) {
        const auto posteriors = limit.surface.process.posteriors(points);
        for (std::size_t i = 0; i < count; ++i) sums[i] += log_kept(posteriors[i], limit.bound);
    }
    return sums;
}

} // namespace ranktune::searchers
