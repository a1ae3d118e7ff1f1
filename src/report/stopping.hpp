// SPDX-License-Identifier: Apache-2.0
#pragma once
// Of a study that was told to stop and has not ended yet: for how long, why, and what it waits for.

#include <chrono>
#include <string>

#include "tuner/tuner.hpp"

namespace ranktune::report {

/// "stopping for 4m00s (Ctrl-C): waits for the next report of #3, #7; an iteration takes up to 15m00s". `wall`: the
/// time of day. Empty: it is not stopping, or has ended.
[[nodiscard]] std::string stopping_text(const tuner::State& state, std::chrono::system_clock::time_point wall);

} // namespace ranktune::report
