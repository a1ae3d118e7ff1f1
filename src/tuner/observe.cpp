// SPDX-License-Identifier: Apache-2.0
// What searchers learn from a record.

#include <algorithm>

#include "tuner/apply.hpp"

namespace ranktune::tuner {
namespace {

/// Searchers see a configuration as one trial, the first one, with one result: the mean of the last values, once all
/// are over. A trial that is reopened later does not change a mean that they have seen.
void observe_repeats(Core& core, TrialId id) {
    const Repetitions all = repetitions_of(id, core.state.trials, core.spec);
    if (!all.complete) return;
    Iteration iteration = core.state.trials[all.first].iteration;
    TrialPhase phase = TrialPhase::failed;
    for (std::uint32_t i = all.first.value(); i < all.first.value() + all.created; ++i) {
        const Trial& t = core.state.trials[i];
        if (t.phase == TrialPhase::failed) continue;
        iteration = phase == TrialPhase::failed ? t.iteration : std::min(iteration, t.iteration);
        phase = phase == TrialPhase::stopped ? phase : t.phase;
    }
    if (const auto mean = core.state.last_results.mean_of(all, core.state.trials))
        core.state.observations.reported(all.first, iteration, mean->score, mean->distances);
    core.state.observations.over(all.first, iteration, phase);
    core.state.last_results.forget(all);
}

} // namespace

/// Writes what takes effect into the table that searchers learn from.
void observe(Core& core, const study::Record& record) {
    auto& table = core.state.observations;
    const auto asked = [&](TrialId id, Iteration iteration) {
        table.asked(id, iteration, core.spec.space, core.state.trials[id].configuration);
    };
    if (const auto* warm = std::get_if<study::WarmStarted>(&record))
        for (const study::EarlierTrial& trial : warm->trials)
            table.earlier(trial, core.spec.space, core.spec.objective.mode);
    const bool repeats = core.spec.searcher.repeats > 1;
    if (const auto* created = std::get_if<study::TrialCreated>(&record);
        created != nullptr && created->origin.kind != Origin::Kind::repeat)
        asked(created->trial, 0);
    if (const auto* exploited = std::get_if<study::Exploited>(&record)) asked(exploited->trial, exploited->iteration);
    if (const auto* undone = std::get_if<study::ExploitUndone>(&record))
        asked(undone->trial, start_of(core.state.trials[undone->trial]).iteration);
    if (const auto* closed = std::get_if<study::TrialClosed>(&record)) {
        if (repeats) return observe_repeats(core, closed->trial);
        table.over(closed->trial, core.state.trials[closed->trial].iteration, closed->phase);
    }
    if (const auto* report = std::get_if<study::Reported>(&record)) {
        const auto reading = core.objective.read(report->metrics);
        if (reading.complete && repeats)
            core.state.last_results.note(report->trial,
                                         {core.objective.score(reading), core.objective.distances(report->metrics)});
        else if (reading.complete)
            table.reported(report->trial, report->iteration, core.objective.score(reading),
                           core.objective.distances(report->metrics));
        // Not a pause for the core's own reasons: the trial goes on by itself then.
        const Reason reason = report->verdict.reason;
        if (report->verdict.verb == Verb::pause && reason != Reason::draining && reason != Reason::yielded)
            table.paused(report->trial, report->iteration);
    }
}

} // namespace ranktune::tuner
