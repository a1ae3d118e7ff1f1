// SPDX-License-Identifier: Apache-2.0
#include "tuner/lineage.hpp"

#include <algorithm>

namespace ranktune::tuner {

namespace {

std::vector<Stretch> behind(const State& state, TrialId trial, Iteration iteration, std::uint32_t takeover) {
    std::vector<Stretch> stretches;
    while (true) {
        const Origins from = origins_of(state.trial(trial), takeover);
        const Iteration begin = from.takeover == nullptr ? 0 : from.takeover->iteration;
        if (iteration > begin || from.takeover == nullptr)
            stretches.push_back({trial, begin, iteration, from.configuration});
        if (from.takeover == nullptr) break;
        // Every takeover is of a state that was saved before it: the way ends.
        trial = from.takeover->donor.trial;
        iteration = from.takeover->donor.checkpoint.iteration;
        takeover = from.takeover->donor_takeover;
    }
    std::ranges::reverse(stretches);
    return stretches;
}

} // namespace

std::vector<Stretch> lineage(const State& state, TrialId trial) {
    const Trial& t = state.trial(trial);
    return behind(state, trial, t.newest_iteration, t.newest_takeover);
}

std::vector<Stretch> lineage_of_best(const State& state, TrialId trial) {
    const Trial& t = state.trial(trial);
    return behind(state, trial, t.best_iteration, t.best_takeover);
}

std::vector<Stretch> lineage(const State& state, TrialId trial, const CheckpointRef& checkpoint) {
    return behind(state, trial, checkpoint.iteration, takeover_of(state.trial(trial), checkpoint.generation));
}

} // namespace ranktune::tuner
