// SPDX-License-Identifier: Apache-2.0
// How long things take, learned from records, and what there is still time for before the deadline of the job.

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tuner/core.hpp"

namespace ranktune::tuner {
namespace {

/// Before a checkpoint was measured.
constexpr double unmeasured_saving_s = 10.0;

/// What is slower than before counts at once; what is faster, little by little.
void follow(double& estimate, double measured, double share) {
    if (!std::isfinite(measured) || measured < 0.0) return;
    estimate = measured >= estimate ? measured : estimate + share * (measured - estimate);
}

double seconds_between(StudyTime from, StudyTime to) { return base::to_seconds(to - from); }

std::string seconds_text(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, seconds < 10.0 ? "%.1f s" : "%.0f s", seconds);
    return text;
}

double saving_of(const State& state) { return state.saving > 0.0 ? state.saving : unmeasured_saving_s; }

/// Seconds from now to the next place where work is safe; 0: nobody knows.
double needed(const State& state, double pace, Iteration iterations) {
    if (pace <= 0.0) return 0.0;
    return state.starting + pace * static_cast<double>(iterations) + saving_of(state);
}

} // namespace

base::Duration mean_time_between_failures(const State& state, const study::CheckpointSpec& spec) {
    const base::Duration seen = spec.mean_time_between_failures + state.now.time_since_epoch();
    return seen / static_cast<base::Duration::rep>(1 + state.interruptions);
}

std::optional<StudyTime> last_start(const State& state) {
    if (!state.deadline || state.pace <= 0.0) return std::nullopt;
    const double need = needed(state, state.pace, state.stretch);
    return *state.deadline - std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(need));
}

/// Training time counts, not the time between two reports: a leader may have several on the way. `before`: `seconds` of
/// the report before.
void Tuner::Impl::learn_from_report(TrialState& t, StudyTime at, Iteration iteration, double seconds, double before) {
    const double trained = seconds - before;
    if (t.silent) follow(state.starting, seconds_between(t.since, at) - std::max(trained, 0.0), 0.25);
    t.silent = false;
    t.since = at;
    if (iteration <= t.attempt_iteration || trained <= 0.0) return;
    const double pace = trained / static_cast<double>(iteration - t.attempt_iteration);
    follow(t.pace, pace, 0.25);
    // What was assumed before the first report of all was no measurement.
    if (state.reports <= 1) state.pace = 0.0;
    follow(state.pace, pace, 1.0 / 16.0);
}

/// How long saving takes only the last one of an attempt tells: one that is written beside the training says nothing
/// about how long that waits. `t` does not have it yet.
void Tuner::Impl::learn_from_checkpoint(TrialState& t, StudyTime at, Iteration iteration) {
    if ((t.phase == TrialPhase::ending || t.winding) && !t.silent)
        follow(state.saving, seconds_between(t.since, at), 0.25);
    const Iteration from = t.checkpoints.empty() ? 0 : t.checkpoints.back().iteration;
    if (iteration > from) state.stretch = std::min(state.stretch, iteration - from);
    t.unsaved = 0;
}

/// The end of a job that found no checkpoint to take: it lies further away than the trial got. A program may pass one
/// with every so many reports; a trainable in this process that has none when it is asked has none at all.
void Tuner::Impl::learn_from_pause(TrialState& t) {
    const bool by_scheduler = t.verdict.verb != Verb::go_on && t.verdict.reason != Reason::draining;
    const Iteration saved = t.checkpoints.empty() ? 0 : t.checkpoints.back().iteration;
    if (!state.draining || by_scheduler || !spec.checkpoint.supported || t.attempt_iteration <= saved) return;
    t.unsaved = t.attempt_iteration - saved;
    const Iteration all = whole(nullptr);
    state.stretch = std::max(state.stretch, spec.trainable.program ? std::min(t.unsaved + 1, all) : all);
}

/// What a trial is trained for, in iterations from the beginning: to its next rung where trials pause at rungs, and
/// otherwise to the end. Null: of a new one.
Iteration Tuner::Impl::whole(const TrialState* t) const {
    const auto rungs = scheduler->pauses() ? scheduler->rungs() : std::vector<schedulers::Scheduler::RungView>{};
    if (rungs.empty()) return spec.max_iterations;
    if (t == nullptr) return rungs.front().iteration;
    return t->target > 0 ? std::min(t->target, spec.max_iterations)
                         : rungs[std::min<std::size_t>(t->bracket, rungs.size() - 1)].iteration;
}

/// Iterations that an attempt of `t` makes before its work is safe.
Iteration Tuner::Impl::stretch_of(const TrialState& t) const {
    const Iteration known = std::max(state.stretch, t.unsaved + 1);
    if (spec.checkpoint.supported && known == 1) return 1;
    const Iteration from = t.checkpoints.empty() ? 0 : t.checkpoints.back().iteration;
    const Iteration end = whole(&t);
    const Iteration to = end > from ? end : spec.max_iterations;
    return spec.checkpoint.supported ? std::min(known, to - from) : to - from;
}

/// A first iteration that did not end takes longer than the time it got: a quarter more is assumed, or the next job of
/// the same length would try it again, and end the same way. (One that was as fast as others before says nothing: it
/// hung, or was killed.)
void Tuner::Impl::learn_from_loss(TrialState& t, StudyTime at) {
    if (t.phase != TrialPhase::running || t.reported) return;
    t.pace = std::max(t.pace, 1.25 * (seconds_between(t.since, at) - state.starting));
    if (state.reports == 0) state.pace = std::max(state.pace, t.pace);
}

/// Whether an attempt of `t` that is started now reaches a checkpoint, or what it is trained for where it has none.
/// A duration that nobody knows is found out.
bool Tuner::Impl::in_time(const TrialState& t, StudyTime now) const {
    if (!state.deadline) return true;
    const double need = needed(state, t.pace > 0.0 ? t.pace : state.pace, stretch_of(t));
    return seconds_between(now, *state.deadline) >= need;
}

bool Tuner::Impl::in_time_for_another(StudyTime now) const {
    return !state.deadline || seconds_between(now, *state.deadline) >= needed(state, state.pace, state.stretch);
}

/// Seconds of the slowest iteration among the trials that run.
double Tuner::Impl::slowest_running() const {
    double slowest = 0.0;
    for (const auto& worker : state.workers)
        if (worker.alive && worker.trial) slowest = std::max(slowest, state.trials[worker.trial->value()].pace);
    return slowest;
}

/// When the trials that run have to be told, so that each ends its iteration and saves.
StudyTime Tuner::Impl::drain_at(double slowest) const {
    const double margin = slowest + saving_of(state);
    return *state.deadline - std::chrono::duration_cast<Duration>(std::chrono::duration<double>(margin));
}

std::optional<StudyTime> Tuner::Impl::next_timer(double slowest) const {
    std::optional<StudyTime> at;
    if (spec.time_budget) at = StudyTime{*spec.time_budget};
    if (state.deadline) at = std::min(at.value_or(StudyTime::max()), drain_at(slowest));
    return at;
}

void Tuner::Impl::set_timer(Output& out) {
    slowest_known = slowest_running();
    if (const auto at = next_timer(slowest_known)) out.commands.emplace_back(study::SetTimer{*at});
}

/// Nothing runs, although there is something to do: the deadline alone keeps it from being done.
bool Tuner::Impl::waits_for_time(StudyTime now) const {
    if (!state.deadline) return false;
    const auto late = [&](TrialId id) { return !in_time(state.trials[id.value()], now); };
    if (std::any_of(waiting.begin(), waiting.end(), late)) return true;
    return !in_time_for_another(now) && (can_create() || scheduler->next({can_create(), false}).has_value());
}

void Tuner::Impl::end_for_want_of_time(StudyTime now, Output& out) {
    const double left = std::max(0.0, seconds_between(now, *state.deadline));
    double pace = std::max(slowest_running(), state.pace);
    Iteration stretch = state.stretch;
    for (const TrialId id : waiting) {
        const TrialState& t = state.trials[id.value()];
        pace = std::max(pace, t.pace);
        stretch = std::max(stretch, stretch_of(t));
    }
    std::string why = "deadline: the job has " + seconds_text(left) + " left for training";
    if (pace > 0.0)
        why += "; an iteration takes up to " + seconds_text(pace) + ", a checkpoint " + seconds_text(saving_of(state));
    if (stretch > 1 && spec.checkpoint.supported)
        why += "; a trial makes up to " + std::to_string(stretch) + " iterations before it can save";
    if (!spec.checkpoint.supported)
        why += "; trials cannot save, and take up to " + std::to_string(stretch) + " iterations";
    drain(Reason::deadline, why, now, out);
}

} // namespace ranktune::tuner
