// SPDX-License-Identifier: Apache-2.0
#pragma once
// Of a study that was told to stop and has not ended yet: since when, why, and what it waits for.

#include <chrono>
#include <string>

#include "tuner/tuner.hpp"

namespace ranktune::report {

/// "stopping since 4 min (Ctrl-C): waits for the next report of #3 and #7, of an iteration up to 15 min". `wall`: the
/// time of day. Empty: it is not stopping, or has ended.
[[nodiscard]] std::string stopping_text(const tuner::State& state, std::chrono::system_clock::time_point wall);

} // namespace ranktune::report
