// SPDX-License-Identifier: Apache-2.0
#pragma once
// What runs in a study now, for the controls of a live page: small, so that it can be asked for every second.

#include <cstddef>
#include <string>

#include "tuner/tuner.hpp"

namespace ranktune::report {

/// Trials that are listed one by one; of more, their number is told.
inline constexpr std::size_t most_live_trials = 200;

/// How a study stands.
struct Standing {
    std::string text;   ///< "finished, exit 0", "run by pid 4711 on n0"
    bool runs = false;  ///< a head may run it
    std::string closed; ///< why nobody can steer it from here; empty: it can be steered
};

/// JSON: how the study stands, and the trials that hold ranks, that a user has paused, or that have begun and wait for
/// ranks, in this order. `now`: seconds since 1970. Read by src/report/page/steer.js.
[[nodiscard]] std::string live_data(const tuner::Tuner& tuner, const Standing& standing, double now);

} // namespace ranktune::report
