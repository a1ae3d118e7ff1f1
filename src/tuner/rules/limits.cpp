// SPDX-License-Identifier: Apache-2.0
#include "tuner/rules/limits.hpp"

#include "ranktune/space/value.hpp"
#include "tuner/rules/causes.hpp"

namespace ranktune::tuner {

bool is_limit(Reason reason) {
    return reason == Reason::study_time || reason == Reason::target_reached || reason == Reason::no_better ||
           reason == Reason::iterations_used || reason == Reason::enough_trials;
}

std::optional<StudyLimit> limit_reached(const State& state, const study::StudySpec& spec, StudyTime now) {
    const study::StudyStop& stop = spec.stop.study;
    const study::Mode mode = spec.objective.mode;
    if (stop.target && state.best) {
        const Trial& best = state.trials[*state.best];
        if (study::score(best.best, mode) >= study::score(*stop.target, mode))
            return StudyLimit{Reason::target_reached, "the target is reached (stop.study.target): " +
                                                          named(*state.best) + " has " + space::number_text(best.best) +
                                                          " at iteration " + std::to_string(best.best_iteration)};
    }
    if (stop.no_better_in && state.since_better >= *stop.no_better_in)
        return StudyLimit{Reason::no_better, "nothing better in the last " + std::to_string(state.since_better) +
                                                 " trials (stop.study.no_better_in)"};
    if (stop.iterations && state.reports >= *stop.iterations)
        return StudyLimit{Reason::iterations_used, "all trials together have reported " +
                                                       std::to_string(state.reports) +
                                                       " iterations (stop.study.iterations)"};
    if (stop.trials_ok && state.ended_well >= *stop.trials_ok)
        return StudyLimit{Reason::enough_trials,
                          std::to_string(state.ended_well) + " trials have ended well (stop.study.trials_ok)"};
    if (spec.time_budget && now >= StudyTime{*spec.time_budget})
        return StudyLimit{Reason::study_time, "study.time_budget is used up"};
    return std::nullopt;
}

} // namespace ranktune::tuner
