// SPDX-License-Identifier: Apache-2.0
#include "searchers/results/largest_budget.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ranktune::searchers {
namespace {

constexpr double worst = -std::numeric_limits<double>::infinity();

} // namespace

void LargestBudget::read(const Observations& table) {
    std::size_t line = reading_.next(table);
    if (line == 0) {
        iteration_ = 0;
        budgets_.clear();
        failed_.clear();
    }
    for (; line < table.size(); ++line) read(table[line]);
}

void LargestBudget::read(const Observation& line) {
    if (line.kind == Observation::Kind::asked || line.kind == Observation::Kind::paused) return;
    failed_.erase(line.trial);
    if (line.kind == Observation::Kind::reported) {
        const bool ordered = violators_ == Violators::ordered;
        enter(line.iteration, {ordered ? line.score.order() : reported_value(line), line.trial, line.point});
    } else if (line.phase == study::TrialPhase::failed) {
        failed_[line.trial] = {line.point, line.iteration + 1};
        enter(line.iteration + 1, {worst, line.trial, line.point});
    }
}

void LargestBudget::enter(base::Iteration iteration, const Point& point) {
    if (iteration < iteration_) return;
    Budget& budget = budgets_[iteration];
    const auto [at, added] = budget.points.insert({point.trial, point});
    if (!added) budget.finite -= std::isfinite(at->second.score) ? 1 : 0;
    at->second = point;
    budget.finite += std::isfinite(point.score) ? 1 : 0;
    if (iteration == iteration_ || !enough_(budget.points.size(), budget.finite)) return;
    iteration_ = iteration;
    budgets_.erase(budgets_.begin(), budgets_.find(iteration));
}

std::vector<LargestBudget::Point> LargestBudget::points() const {
    std::vector<Point> all;
    if (iteration_ == 0) return all;
    for (const auto& [trial, point] : budgets_.at(iteration_).points) all.push_back(point);
    for (const auto& [trial, failure] : failed_)
        if (failure.at < iteration_) all.push_back({worst, trial, failure.number});
    std::ranges::sort(all, [](const Point& a, const Point& b) {
        return study::better({a.score, a.trial}, {b.score, b.trial});
    });
    return all;
}

std::optional<LargestBudget::Point> LargestBudget::point_of(base::TrialId trial) const {
    if (iteration_ == 0) return {};
    const auto& reached = budgets_.at(iteration_).points;
    if (const auto point = reached.find(trial); point != reached.end()) return point->second;
    const auto failure = failed_.find(trial);
    if (failure == failed_.end() || failure->second.at >= iteration_) return {};
    return Point{worst, trial, failure->second.number};
}

} // namespace ranktune::searchers
