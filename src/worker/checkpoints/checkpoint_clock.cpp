// SPDX-License-Identifier: Apache-2.0
#include "worker/checkpoints/checkpoint_clock.hpp"

#include <algorithm>
#include <cmath>

namespace ranktune::worker {

using Interval = study::CheckpointSpec::Interval;

namespace {

constexpr double least_stall_s = 0.001; // shorter times are noise
constexpr double disk_share = 10.0;
constexpr double free_s = 5.0; ///< for small states, which may be saved after every one of a few short iterations

/// The trial was compared with others and trains on. (Below a rung and between decision points nothing is compared.)
bool passed_a_rung(const study::Verdict& verdict) {
    using study::Reason;
    return verdict.verb == study::Verb::go_on &&
           (verdict.reason == Reason::in_top || verdict.reason == Reason::first_arrival);
}

/// Others may want to go on from its state.
bool is_published(const study::Verdict& verdict) {
    return verdict.verb == study::Verb::go_on && verdict.reason == study::Reason::published;
}

} // namespace

CheckpointClock::CheckpointClock(const study::CheckpointSpec& spec, base::Duration between_failures,
                                 base::Iteration iteration, double seconds)
    : spec_(spec),
      between_failures_s_(base::to_seconds(between_failures)),
      iteration_(iteration),
      seconds_(seconds),
      began_s_(seconds) {}

bool CheckpointClock::due(base::Iteration iteration, double seconds, const study::Verdict& verdict) {
    is_asked_for_ = is_asked_for_ || is_published(verdict) || (spec_.at_rungs && passed_a_rung(verdict));
    if (is_asked_for_) return true;
    if (spec_.interval == Interval::iterations) return iteration / spec_.iterations > iteration_ / spec_.iterations;
    const auto interval = interval_s();
    return interval && seconds - seconds_ >= *interval;
}

bool CheckpointClock::affords_more(double seconds) const {
    return spent_s_ <= free_s + (seconds - began_s_) / disk_share;
}

void CheckpointClock::taken(base::Iteration iteration, double seconds) {
    iteration_ = iteration;
    seconds_ = seconds;
    is_asked_for_ = false;
}

void CheckpointClock::measured(double stall_s, double writing_s) {
    stall_s_ = stall_s;
    writing_s_ = writing_s;
    spent_s_ += std::max(stall_s, writing_s);
}

std::optional<double> CheckpointClock::interval_s() const {
    if (spec_.interval == Interval::time) return base::to_seconds(spec_.time);
    if (spec_.interval != Interval::automatic) return std::nullopt;
    return std::max(std::sqrt(2.0 * std::max(stall_s_, least_stall_s) * between_failures_s_), disk_share * writing_s_);
}

} // namespace ranktune::worker
