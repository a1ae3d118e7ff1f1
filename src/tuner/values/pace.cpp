// SPDX-License-Identifier: Apache-2.0
#include "tuner/values/pace.hpp"

#include <cmath>

#include "schedulers/checks.hpp"

namespace ranktune::tuner {
namespace {

/// Assumed until a checkpoint is measured.
constexpr double unmeasured_saving_s = 10.0;

/// Follows slower measurements at once, and faster ones gradually.
void follow(double& estimate, double measured, double share) {
    if (!std::isfinite(measured) || measured < 0.0) return;
    estimate = measured >= estimate ? measured : estimate + share * (measured - estimate);
}

double seconds_between(StudyTime from, StudyTime to) { return base::to_seconds(to - from); }

StudyTime before(StudyTime at, double seconds) {
    return at - std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

Iteration saved(const Trial& t) { return t.checkpoints.empty() ? 0 : t.checkpoints.back().iteration; }

} // namespace

double Pace::saving() const { return saving_ > 0.0 ? saving_ : unmeasured_saving_s; }

Iteration Pace::stretch_of(const Trial& t, Iteration end, Iteration last, bool supported) const {
    const Iteration known = std::max(stretch_, t.unsaved + 1);
    if (supported && known == 1) return 1;
    const Iteration from = saved(t);
    const Iteration to = end > from ? end : last;
    return supported ? std::min(known, to - from) : to - from;
}

std::optional<StudyTime> Pace::last_start() const {
    if (!deadline_ || iteration_ <= 0.0) return std::nullopt;
    return before(*deadline_, needed(iteration_, stretch_));
}

std::optional<StudyTime> Pace::time_to_tell(double slowest) const {
    if (!deadline_) return std::nullopt;
    return before(*deadline_, slowest + saving());
}

void Pace::check_invariants() const {
    const auto is_duration = [](double seconds) { return std::isfinite(seconds) && seconds >= 0.0; };
    schedulers::require(is_duration(iteration_), "the time of an iteration is no duration");
    schedulers::require(is_duration(starting_), "the time until an attempt trains is no duration");
    schedulers::require(is_duration(saving_), "the time of a checkpoint is no duration");
    schedulers::require(stretch_ >= 1, "work is saved before an iteration is trained");
}

void Pace::learn_from_report(Trial& t, StudyTime at, Iteration iteration, double seconds, double before_it,
                             bool first) {
    const double trained = seconds - before_it;
    if (t.attempt.silent) follow(starting_, seconds_between(t.attempt.since, at) - std::max(trained, 0.0), 0.25);
    t.attempt.silent = false;
    t.attempt.since = at;
    if (iteration <= t.attempt.iteration || trained <= 0.0) return;
    const double pace = trained / static_cast<double>(iteration - t.attempt.iteration);
    follow(t.pace, pace, 0.25);
    // Before the first report of the study the value was an assumption, not a measurement.
    if (first) iteration_ = 0.0;
    follow(iteration_, pace, 1.0 / 16.0);
}

void Pace::learn_from_checkpoint(Trial& t, StudyTime at, Iteration iteration, bool last) {
    if (last && !t.attempt.silent) follow(saving_, seconds_between(t.attempt.since, at), 0.25);
    if (iteration > saved(t)) stretch_ = std::min(stretch_, iteration - saved(t));
    t.unsaved = 0;
}

void Pace::learn_from_pause(Trial& t, bool program, Iteration all) {
    if (t.attempt.iteration <= saved(t)) return;
    t.unsaved = t.attempt.iteration - saved(t);
    stretch_ = std::max(stretch_, program ? std::min(t.unsaved + 1, all) : all);
}

void Pace::learn_from_loss(Trial& t, StudyTime at, bool first) {
    if (t.phase != TrialPhase::running || t.reported) return;
    t.pace = std::max(t.pace, 1.25 * (seconds_between(t.attempt.since, at) - starting_));
    if (first) iteration_ = std::max(iteration_, t.pace);
}

} // namespace ranktune::tuner
