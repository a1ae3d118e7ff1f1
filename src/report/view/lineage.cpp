// SPDX-License-Identifier: Apache-2.0
#include "report/view/lineage.hpp"

#include <algorithm>

namespace ranktune::report {

namespace {

/// How many takeovers of a trial its weights had behind them after `iteration`.
std::size_t generation_at(const tuner::TrialState& trial, study::Iteration iteration) {
    const auto later = std::ranges::find_if(
        trial.takeovers, [&](const tuner::Takeover& takeover) { return takeover.iteration >= iteration; });
    return static_cast<std::size_t>(later - trial.takeovers.begin());
}

} // namespace

std::vector<Stretch> lineage(const tuner::State& state, study::TrialId trial, study::Iteration iteration) {
    std::vector<Stretch> stretches;
    std::size_t generation = generation_at(state.trial(trial), iteration);
    while (true) {
        const tuner::TrialState& t = state.trial(trial);
        const space::Configuration& configuration =
            generation < t.takeovers.size() ? t.takeovers[generation].before : t.configuration;
        if (generation == 0) {
            stretches.push_back({trial, 0, iteration, &configuration});
            break;
        }
        const tuner::Takeover& takeover = t.takeovers[generation - 1];
        if (iteration > takeover.iteration) stretches.push_back({trial, takeover.iteration, iteration, &configuration});
        // Every takeover is of a state that was saved before it: the way ends.
        trial = takeover.donor.trial;
        iteration = takeover.donor.checkpoint.iteration;
        generation = takeover.donor.checkpoint.generation;
    }
    std::ranges::reverse(stretches);
    return stretches;
}

} // namespace ranktune::report
