// SPDX-License-Identifier: Apache-2.0
#include "drivers/group/checkpoint_clock.hpp"

#include <algorithm>
#include <cmath>

namespace ranktune::drivers {

using Interval = study::CheckpointSpec::Interval;

namespace {

constexpr double least_stall_s = 0.001; // below, the clock measures the machine's noise
constexpr double disk_share = 10.0;

} // namespace

CheckpointClock::CheckpointClock(const study::CheckpointSpec& spec, base::Iteration iteration, double seconds)
    : spec_(spec), iteration_(iteration), seconds_(seconds) {}

bool CheckpointClock::due(base::Iteration iteration, double seconds) const {
    if (spec_.interval == Interval::iterations) return iteration / spec_.iterations > iteration_ / spec_.iterations;
    const auto interval = interval_s();
    return interval && seconds - seconds_ >= *interval;
}

void CheckpointClock::taken(base::Iteration iteration, double seconds) {
    iteration_ = iteration;
    seconds_ = seconds;
}

void CheckpointClock::measured(double stall_s, double writing_s) {
    stall_s_ = stall_s;
    writing_s_ = writing_s;
}

std::optional<double> CheckpointClock::interval_s() const {
    if (spec_.interval == Interval::time) return base::to_seconds(spec_.time);
    if (spec_.interval != Interval::automatic) return std::nullopt;
    const double between_failures_s = base::to_seconds(spec_.mean_time_between_failures);
    return std::max(std::sqrt(2.0 * std::max(stall_s_, least_stall_s) * between_failures_s), disk_share * writing_s_);
}

} // namespace ranktune::drivers
