// SPDX-License-Identifier: Apache-2.0
#include "tuner/values/front.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <stdexcept>

#include "models/pareto.hpp"

namespace ranktune::tuner {

study::Score standing_of(const Trial& trial, const study::Objective& objective) {
    if (std::isnan(trial.best)) return {};
    std::array<double, study::Score::max_objectives> values{study::score(trial.best, objective.mode)};
    for (std::size_t i = 0; i < trial.others.size(); ++i)
        values.at(i + 1) = study::score(trial.others[i], objective.others.at(i).mode);
    return {std::span<const double>(values).first(trial.others.size() + 1), true};
}

bool beats(const study::Score& a, const study::Score& b) {
    return models::dominates({a.values(), a.trouble()}, {b.values(), b.trouble()});
}

std::vector<std::int64_t> pareto_ranks(const Trials& trials, const study::Objective& objective) {
    std::vector<study::Score> scores;
    std::vector<models::ParetoPoint> points;
    for (const Trial& trial : trials) scores.push_back(standing_of(trial, objective));
    for (const study::Score& score : scores) points.push_back({score.values(), score.trouble()});
    const std::vector<std::uint32_t> ranks = models::nondominated_ranks(points);
    std::vector<std::int64_t> numbers(ranks.begin(), ranks.end());
    for (std::size_t i = 0; i < numbers.size(); ++i)
        if (scores[i].values().empty()) numbers[i] = -1;
    return numbers;
}

bool Front::contains(TrialId id) const { return std::ranges::binary_search(members_, id); }

void Front::moved(TrialId id, const study::Score& before, const Trials& trials, const study::Objective& objective) {
    const study::Score now = standing_of(trials[id], objective);
    const bool got_worse = now != before && !beats(now, before);
    if (contains(id) && got_worse) return find(trials, objective);
    enter(id, trials, objective);
}

void Front::find(const Trials& trials, const study::Objective& objective) {
    members_.clear();
    for (std::uint32_t i = 0; i < trials.size(); ++i) enter(TrialId{i}, trials, objective);
}

void Front::enter(TrialId id, const Trials& trials, const study::Objective& objective) {
    const study::Score own = standing_of(trials[id], objective);
    if (own.values().empty()) return;
    const auto of = [&](TrialId other) { return standing_of(trials[other], objective); };
    if (std::ranges::any_of(members_, [&](TrialId other) { return other != id && beats(of(other), own); })) return;
    std::erase_if(members_, [&](TrialId other) { return other != id && beats(own, of(other)); });
    const auto place = std::ranges::lower_bound(members_, id);
    if (place == members_.end() || *place != id) members_.insert(place, id);
}

void Front::check_invariants(const Trials& trials, const study::Objective& objective) const {
    Front again;
    if (objective.several()) again.find(trials, objective);
    if (again.members_ != members_) throw std::logic_error("the Pareto front is not the front of all trials");
}

} // namespace ranktune::tuner
