// SPDX-License-Identifier: Apache-2.0
// Commands that the state implies: what a driver sends again after it lost a connection. Changes nothing.

#include <algorithm>
#include <iterator>

#include "tuner/core.hpp"

namespace ranktune::tuner {

std::vector<study::Command> Tuner::Impl::pending_commands() const {
    std::vector<study::Command> commands;
    if (state.ended) {
        commands.emplace_back(study::EndStudy{state.outcome, state.end_reason, state.end_message});
        return commands;
    }
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const TrialId id{i};
        const TrialState& t = state.trials[i];
        if (!holds_ranks(t)) continue;
        if (t.abandoned) {
            std::vector<Rank> living;
            std::copy_if(t.ranks.begin(), t.ranks.end(), std::back_inserter(living),
                         [&](Rank rank) { return state.workers[rank.value() - 1].alive; });
            commands.emplace_back(study::Abandon{id, t.attempt, state.incarnation, std::move(living)});
            continue;
        }
        const Iteration start = t.checkpoints.empty() ? 0 : t.checkpoints.back().iteration;
        if (t.phase == TrialPhase::running && t.attempt_iteration == start) {
            commands.emplace_back(start_command(id));
        } else {
            const Iteration next = t.verdict.verb == Verb::go_on ? t.decision_point : 0;
            commands.emplace_back(
                study::Decide{id, t.attempt, state.incarnation, t.attempt_iteration, as_told(id, t.verdict), next});
        }
        if (leaving.contains(id) && !t.winding) {
            commands.emplace_back(
                study::Interrupt{id, t.attempt, state.incarnation, {Verb::pause, Reason::yielded, 0.0, 0.0}});
        }
        if (state.draining && t.phase == TrialPhase::running) {
            commands.emplace_back(
                study::Interrupt{id, t.attempt, state.incarnation, {Verb::pause, Reason::draining, 0.0, 0.0}});
        }
    }
    if (const auto timer = next_timer(slowest_running()); timer && !state.draining)
        commands.emplace_back(study::SetTimer{*timer});
    return commands;
}

} // namespace ranktune::tuner
