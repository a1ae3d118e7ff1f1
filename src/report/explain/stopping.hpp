// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of a stopping study: for how long, why, and what it waits for.

#include <chrono>
#include <string>

#include "tuner/tuner.hpp"

namespace ranktune::report {

/// "stopping for 4m00s (Ctrl-C): waits for the next report of #3, #7; an iteration takes up to 15m00s". `wall`: now.
/// Empty: the study is not stopping, or has ended.
[[nodiscard]] std::string stopping_text(const tuner::State& state, std::chrono::system_clock::time_point wall);

} // namespace ranktune::report
