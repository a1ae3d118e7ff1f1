// SPDX-License-Identifier: Apache-2.0
#include "tuner/values/repeats.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "schedulers/checks.hpp"
#include "tuner/rules/causes.hpp"

namespace ranktune::tuner {

Repetitions repetitions_of(TrialId trial, const Trials& trials, const study::StudySpec& spec) {
    const std::uint32_t repeats = spec.searcher.repeats;
    Repetitions all;
    all.first = first_repeat(trial, repeats);
    std::vector<double> values;
    std::uint32_t over = 0;
    for (std::uint32_t i = all.first.value(); i < std::min<std::size_t>(all.first.value() + repeats, trials.size());
         ++i) {
        const Trial& t = trials[i];
        ++all.created;
        over += is_final(t.phase) ? 1 : 0;
        if (t.phase == TrialPhase::failed) {
            ++all.failed;
            continue;
        }
        values.push_back(t.best);
        const auto take = [&](std::optional<TrialId>& best) {
            const auto ranked = [&](TrialId id) {
                return study::Ranked{study::score(trials[id].best, spec.objective.mode), id};
            };
            if (!best || study::better(ranked(TrialId{i}), ranked(*best))) best = TrialId{i};
        };
        take(all.best);
        if (is_final(t.phase) && !std::isnan(t.best)) take(all.leader);
    }
    all.complete = over == repeats;
    double sum = 0.0;
    for (const double value : values) sum += value;
    if (!values.empty()) all.mean = sum / static_cast<double>(values.size());
    if (!std::isfinite(all.mean)) {
        all.mean = not_a_number;
        all.best.reset();
    } else if (values.size() > 1) {
        double squares = 0.0;
        for (const double value : values) squares += (value - all.mean) * (value - all.mean);
        all.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
    }
    return all;
}

bool is_better(const Repetitions& a, const Repetitions& b, study::Mode mode) {
    if (std::isnan(a.mean)) return false;
    return std::isnan(b.mean) ||
           study::better({study::score(a.mean, mode), a.first}, {study::score(b.mean, mode), b.first});
}

std::optional<TrialId> best_by_mean(const Trials& trials, const study::StudySpec& spec) {
    Repetitions best;
    for (std::uint32_t first = 0; first < trials.size(); first += spec.searcher.repeats) {
        const Repetitions each = repetitions_of(TrialId{first}, trials, spec);
        if (each.complete && is_better(each, best, spec.objective.mode)) best = each;
    }
    return best.best;
}

std::optional<LastResults::Result> LastResults::mean_of(const Repetitions& all, const Trials& trials) const {
    std::array<double, study::Score::max_objectives> sums{};
    std::size_t objectives = 0;
    bool feasible = true;
    double violation = 0.0;
    std::vector<double> distances;
    for (std::uint32_t i = all.first.value(); i < all.first.value() + all.created; ++i) {
        if (trials[i].phase == TrialPhase::failed) continue;
        const auto found = results_.find(TrialId{i});
        if (found == results_.end()) return {};
        const study::Score& score = found->second.score;
        feasible = feasible && score.feasible;
        violation += score.violation;
        objectives = score.values().size();
        for (std::size_t k = 0; k < objectives; ++k) sums[k] += score.values()[k];
        distances.resize(found->second.distances.size());
        for (std::size_t k = 0; k < distances.size(); ++k) distances[k] += found->second.distances[k];
    }
    if (all.counted() == 0) return {};
    const auto counted = static_cast<double>(all.counted());
    for (double& each : sums) each /= counted;
    for (double& each : distances) each /= counted;
    study::Score mean(std::span<const double>(sums).first(objectives), feasible);
    mean.violation = violation / counted;
    return Result{mean, std::move(distances)};
}

void LastResults::check_invariants(const Trials& trials, const study::StudySpec& spec) const {
    schedulers::require(results_.empty() || spec.searcher.repeats > 1, "results wait for repeats that there are not");
    for (const auto& [trial, result] : results_) {
        schedulers::require(trial.value() < trials.size(), named(trial) + " has a result and does not exist");
        schedulers::require(!repetitions_of(trial, trials, spec).complete,
                            named(trial) + " keeps a result although its configuration is judged");
    }
}

void LastResults::forget(const Repetitions& all) {
    results_.erase(results_.lower_bound(all.first), results_.lower_bound(TrialId{all.first.value() + all.created}));
}

} // namespace ranktune::tuner
