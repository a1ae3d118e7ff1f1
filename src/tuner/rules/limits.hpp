// SPDX-License-Identifier: Apache-2.0
#pragma once
// When a study has done enough: [stop.study] and study.time_budget, beside its number of trials.

#include <optional>
#include <string>

#include "ranktune/study/spec.hpp"
#include "tuner/state.hpp"

namespace ranktune::tuner {

/// Why no trial starts any more, and running ones end at their next report.
struct StudyLimit {
    Reason reason = Reason::none;
    std::string why; ///< a sentence
};
/// The limit that the study has reached by `now`; nullopt: none.
[[nodiscard]] std::optional<StudyLimit> limit_reached(const State& state, const study::StudySpec& spec, StudyTime now);
/// Whether this is the reason of such a limit: the study is over, and goes on with another one.
[[nodiscard]] bool is_limit(Reason reason);

} // namespace ranktune::tuner
