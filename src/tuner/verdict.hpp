// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a study has succeeded although trials of it have failed.

#include <string>

#include "ranktune/study/spec.hpp"
#include "tuner/state.hpp"

namespace ranktune::tuner {

/// More trials have failed than `failure.tolerate` allows.
[[nodiscard]] bool too_many_failed(const State& state, const study::FailureSpec& limits);
/// "2 of 6 trials failed; failure.tolerate = 0.05 allows 0"
[[nodiscard]] std::string failures_sentence(const State& state, const study::FailureSpec& limits);
/// "loss was never finite: it was nan or infinite in all 60 reports ..."
[[nodiscard]] std::string never_finite_sentence(const State& state, const study::StudySpec& spec);

} // namespace ranktune::tuner
