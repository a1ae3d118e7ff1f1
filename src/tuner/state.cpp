// SPDX-License-Identifier: Apache-2.0
#include "tuner/state.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ranktune/space/value.hpp"
#include "study/constraint.hpp"
#include "study/printed_values.hpp"
#include "tuner/rules/limits.hpp"

namespace ranktune::tuner {
namespace {

double allowed(const State& state, const study::FailureSpec& limits) {
    return limits.tolerate * static_cast<double>(state.trials.size());
}

} // namespace

std::optional<StudyTime> held_until(const State& state) {
    constexpr auto grace = std::chrono::seconds(10);
    const bool busy = state.trials.live_attempts() > 0;
    if (state.trials.on_hold().empty() || busy || !state.trials.waiting().empty()) return std::nullopt;
    return state.began + grace;
}

bool would_be_started_again(const State& state) {
    return state.draining && (state.drain_reason == Reason::deadline || state.drain_reason == Reason::draining);
}

bool stops_early(const State& state) { return state.draining && !is_limit(state.drain_reason); }

bool goes_on_beside(const State& state) {
    return state.draining && !stops_early(state) && !(state.side.running().empty() && state.side.waiting().empty());
}

base::Duration mean_time_between_failures(const State& state, const study::CheckpointSpec& spec) {
    const base::Duration seen = spec.mean_time_between_failures + state.now.time_since_epoch();
    return seen / static_cast<base::Duration::rep>(1 + state.interruptions);
}

std::optional<StudyTime> last_start(const State& state) { return state.pace.last_start(); }

std::uint64_t progress_of(const State& state) {
    std::uint64_t figure = state.blame.deaths_alone() + state.side.over();
    for (const Trial& trial : state.trials) figure += trial.iteration + (is_final(trial.phase) ? 1U : 0U);
    return figure;
}

bool too_many_failed(const State& state, const study::FailureSpec& limits) {
    return static_cast<double>(state.in(study::TrialPhase::failed)) > allowed(state, limits);
}

std::vector<TrialId> tasks_to_repeat(const State& state, const study::StudySpec& spec) {
    std::vector<TrialId> units;
    if (spec.after_trial.command.empty()) return units;
    for (const auto& [unit, work] : state.side.all()) {
        if (work.task.kind != SideTask::Kind::after_trial || work.phase != SideWork::Phase::failed) continue;
        if (!spec.evaluates_checkpoints() || !state.trials[work.task.trial].checkpoints.empty()) units.push_back(unit);
    }
    return units;
}

bool reopens(const State& state, const study::SideEnded& record) {
    const SideWork* work = state.side.find(record.task);
    return record.retry && work != nullptr && work->phase == SideWork::Phase::failed;
}

std::uint64_t ranges_not_begun(const State& state, const study::StudySpec& spec) {
    if (!study::predicts(spec) || spec.space.parameters().empty()) return 0;
    const auto ranges = space::cardinality(spec.space.parameters().front().domain).value_or(0);
    return ranges - std::min<std::uint64_t>(ranges, state.trials.size());
}

std::string failures_sentence(const State& state, const study::FailureSpec& limits) {
    const std::size_t all = state.trials.size();
    return std::to_string(state.in(study::TrialPhase::failed)) + " of " + std::to_string(all) +
           (all == 1 ? " trial" : " trials") + " failed; failure.tolerate = " + space::float_text(limits.tolerate) +
           " allows " + std::to_string(static_cast<std::uint64_t>(std::floor(allowed(state, limits))));
}

std::string never_finite_sentence(const State& state, const study::StudySpec& spec) {
    const std::string reports =
        state.reports == 1 ? "the only report" : "all " + std::to_string(state.reports) + " reports";
    if (!spec.objective.constraints.empty())
        return "no report had a finite " + study::metrics_text(spec.objective) + " and kept study.constraints (" +
               study::text(spec.objective.constraints) + ") in " + reports +
               ". Look at what trials reported; loosen the constraints or the space, and begin again with --fresh";
    if (spec.objective.several())
        return "no report had a finite " + study::metrics_text(spec.objective) + ": one was nan or infinite in " +
               reports + ". Look at what trials reported, and begin again with --fresh";
    return spec.objective.metric + " was never finite: it was nan or infinite in " + reports +
           ", so no trial is better than another. Look at what a trial said; when training diverges, lower the range "
           "of the learning rate, and begin again with --fresh";
}

} // namespace ranktune::tuner
