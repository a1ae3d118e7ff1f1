// SPDX-License-Identifier: Apache-2.0
#include "searchers/tpe/tpe_densities.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace ranktune::searchers {
namespace {

constexpr std::size_t most_good = 25;
/// Kernels may be half as wide as in Optuna: found by measuring (docs/developer/decisions.md).
constexpr double narrowing = 2.0;

bool is_finite(const std::optional<double>& score) { return score && std::isfinite(*score); }

/// A single coordinate that a point lacks makes no kernel; in a joint density such a kernel has the prior there.
bool has_kernel(std::span<const double> part) { return part.size() > 1 || !std::isnan(part.front()); }

std::size_t best_of(std::span<const double> gains) {
    return static_cast<std::size_t>(std::ranges::max_element(gains) - gains.begin());
}

} // namespace

std::size_t good_results(std::size_t results, double gamma) {
    if (results == 0) return 0;
    const auto share = static_cast<std::size_t>(std::ceil(gamma * static_cast<double>(results)));
    return std::clamp<std::size_t>(share, 1, std::min(most_good, results));
}

double good_share(double gamma, std::size_t pending) {
    constexpr double few = 5.0;
    const double others = pending > 0 ? static_cast<double>(pending - 1) : 0.0;
    return gamma / std::sqrt(1.0 + others / few);
}

TpeDensities::TpeDensities(std::span<const models::ParzenColumn> columns, const TpeOptions& options) {
    const std::size_t size = options.multivariate ? columns.size() : 1;
    for (std::size_t begin = 0; begin < columns.size(); begin += size) {
        const models::ParzenEstimator empty(columns.subspan(begin, size), options.prior_weight, narrowing);
        groups_.push_back({begin, size, empty, empty});
    }
}

bool TpeDensities::is_good(base::TrialId trial) const { return std::ranges::binary_search(good_, trial); }

void TpeDensities::enter(base::TrialId trial, const Member& member, bool good) {
    for (Group& group : groups_) {
        const auto part = std::span(member.point).subspan(group.begin, group.size);
        if (has_kernel(part)) (good ? group.good : group.bad).insert(trial.value(), part);
    }
}

void TpeDensities::leave(base::TrialId trial, const Member& member, bool good) {
    for (Group& group : groups_) {
        const auto part = std::span(member.point).subspan(group.begin, group.size);
        if (has_kernel(part)) (good ? group.good : group.bad).erase(trial.value());
    }
}

void TpeDensities::put(base::TrialId trial, std::span<const double> point, std::optional<double> score) {
    const auto [at, added] = members_.try_emplace(trial);
    Member& member = at->second;
    if (added) {
        member.point.assign(point.begin(), point.end());
        enter(trial, member, false);
    } else if (is_finite(member.score)) {
        ranking_.erase({*member.score, trial});
    }
    member.score = score;
    if (is_finite(score)) ranking_.insert({*score, trial});
}

void TpeDensities::remove(base::TrialId trial) {
    const auto at = members_.find(trial);
    if (at == members_.end()) return;
    leave(trial, at->second, is_good(trial));
    std::erase(good_, trial);
    if (is_finite(at->second.score)) ranking_.erase({*at->second.score, trial});
    members_.erase(at);
}

void TpeDensities::settle(double gamma) {
    std::vector<base::TrialId> now;
    const std::size_t wanted = good_results(ranking_.size(), gamma);
    for (auto at = ranking_.begin(); now.size() < wanted; ++at) now.push_back(at->trial);
    std::ranges::sort(now);
    const auto move = [this](base::TrialId trial, bool to_good) {
        const Member& member = members_.at(trial);
        leave(trial, member, !to_good);
        enter(trial, member, to_good);
    };
    std::vector<base::TrialId> changed;
    std::ranges::set_difference(good_, now, std::back_inserter(changed));
    for (const base::TrialId trial : changed) move(trial, false);
    changed.clear();
    std::ranges::set_difference(now, good_, std::back_inserter(changed));
    for (const base::TrialId trial : changed) move(trial, true);
    good_ = std::move(now);
    for (Group& group : groups_) {
        group.good.settle();
        group.bad.settle();
    }
}

std::vector<double> TpeDensities::draw(base::RngStream& random) const {
    std::vector<double> point;
    for (const Group& group : groups_) std::ranges::copy(group.good.draw(random), std::back_inserter(point));
    return point;
}

std::vector<double> TpeDensities::draw_best(std::uint32_t candidates, base::RngStream& random) const {
    std::vector<double> point;
    std::vector<double> good(candidates);
    std::vector<double> bad(candidates);
    for (const Group& group : groups_) {
        std::vector<double> drawn;
        for (std::uint32_t i = 0; i < candidates; ++i) drawn.push_back(group.good.draw(random).front());
        group.good.log_density(drawn, good);
        group.bad.log_density(drawn, bad);
        for (std::uint32_t i = 0; i < candidates; ++i) good[i] -= bad[i];
        point.push_back(drawn[best_of(good)]);
    }
    return point;
}

std::vector<double> TpeDensities::gains(std::span<const double> points) const {
    const Group& group = groups_.front();
    std::vector<double> good(points.size() / group.size);
    std::vector<double> bad(good.size());
    group.good.log_density(points, good);
    group.bad.log_density(points, bad);
    for (std::size_t i = 0; i < good.size(); ++i) good[i] -= bad[i];
    return good;
}

} // namespace ranktune::searchers
