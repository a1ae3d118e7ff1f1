// SPDX-License-Identifier: Apache-2.0
#include "models/hypervolume_gain.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "models/log_improvement.hpp"
#include "models/log_sum.hpp"

namespace ranktune::models {
namespace {

constexpr double nothing = -std::numeric_limits<double>::infinity();

/// A logarithm, and its derivatives by mean and deviation.
struct Slopes {
    double value = nothing;
    double by_mean = 0.0;
    double by_deviation = 0.0;
};

/// Of the expected improvement over a bound.
Slopes over(double bound, double mean, double deviation) {
    const double z = (mean - bound) / deviation;
    const LogImprovement h = log_improvement(z);
    return {h.value + std::log(deviation), h.slope / deviation, (1.0 - z * h.slope) / deviation};
}

/// Of the expected length between two bounds, from the improvements over each.
Slopes between(const Slopes& low, const Slopes& high) {
    const double ratio = std::exp(high.value - low.value);
    const double rest = -std::expm1(high.value - low.value);
    if (!(rest > 0.0)) return {};
    return {low.value + std::log(rest), (low.by_mean - ratio * high.by_mean) / rest,
            (low.by_deviation - ratio * high.by_deviation) / rest};
}

} // namespace

HypervolumeGain::HypervolumeGain(std::vector<std::vector<double>> front, std::vector<double> reference)
    : reference_(std::move(reference)) {
    if (reference_.empty()) reference_.push_back(std::ranges::max(front).front());
    std::erase_if(front, [&](const std::vector<double>& point) {
        return !std::ranges::equal(point, reference_, std::greater<>());
    });
    bounds_.resize(reference_.size());
    for (std::size_t k = 0; k < reference_.size(); ++k) {
        bounds_[k].push_back(reference_[k]);
        for (const std::vector<double>& point : front) bounds_[k].push_back(point[k]);
        std::ranges::sort(bounds_[k]);
        bounds_[k].erase(std::unique(bounds_[k].begin(), bounds_[k].end()), bounds_[k].end());
    }
    std::vector<Side> box;
    cut(front, box);
}

std::size_t HypervolumeGain::place(std::size_t objective, double value) const {
    const auto& bounds = bounds_[objective];
    return static_cast<std::size_t>(std::ranges::lower_bound(bounds, value) - bounds.begin());
}

/// Adds the boxes inside `box`, which has its sides in the last objectives, that no point covers in the others.
void HypervolumeGain::cut(const Points& front, std::vector<Side>& box) { // NOLINT(misc-no-recursion)
    const std::size_t k = objectives() - box.size() - 1;                 // the objective that is cut
    Points sorted = front;
    std::ranges::stable_sort(sorted, std::ranges::greater{}, [k](const auto& point) { return point[k]; });
    if (k == 0) {
        const double best = sorted.empty() ? reference_[0] : sorted.front()[0];
        boxes_.insert(boxes_.end(), box.begin(), box.end());
        boxes_.push_back({place(0, best), bounds_[0].size()});
        return;
    }
    // From above: between two neighbours, those that are at least as large can cover something.
    std::size_t high = bounds_[k].size();
    for (std::size_t i = 0; i <= sorted.size(); ++i) {
        const std::size_t low = place(k, i < sorted.size() ? sorted[i][k] : reference_[k]);
        if (low == high) continue; // equal values
        box.push_back({low, high});
        cut({sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(i)}, box);
        box.pop_back();
        high = low;
    }
}

double HypervolumeGain::log_expected(std::span<const double> means, std::span<const double> deviations) const {
    std::vector<double> unused(2 * objectives());
    return log_expected(means, deviations, std::span(unused).first(objectives()), std::span(unused).last(objectives()));
}

double HypervolumeGain::log_expected(std::span<const double> means, std::span<const double> deviations,
                                     std::span<double> by_means, std::span<double> by_deviations) const {
    const std::size_t m = objectives();
    std::vector<std::vector<Slopes>> improvements(m); // over each bound; over infinity: nothing
    for (std::size_t k = 0; k < m; ++k) {
        for (const double bound : bounds_[k]) improvements[k].push_back(over(bound, means[k], deviations[k]));
        improvements[k].emplace_back();
    }
    std::vector<double> logarithms;
    std::vector<Slopes> lengths;
    LogSum sum;
    for (auto side = boxes_.begin(); side != boxes_.end();) {
        logarithms.push_back(0.0);
        for (std::size_t k = m; k-- > 0; ++side) {
            lengths.push_back(between(improvements[k][side->low], improvements[k][side->high]));
            logarithms.back() += lengths.back().value;
        }
        sum.add(logarithms.back());
    }
    std::ranges::fill(by_means, 0.0);
    std::ranges::fill(by_deviations, 0.0);
    const double value = sum.value();
    if (!std::isfinite(value)) return nothing;
    auto length = lengths.begin();
    for (const double logarithm : logarithms) {
        const double share = std::exp(logarithm - value);
        for (std::size_t k = m; k-- > 0; ++length) {
            if (share == 0.0) continue;
            by_means[k] += share * length->by_mean;
            by_deviations[k] += share * length->by_deviation;
        }
    }
    return value;
}

} // namespace ranktune::models
