// SPDX-License-Identifier: Apache-2.0
#pragma once
// Why a study ended, and what its failed trials said, in words.

#include <optional>
#include <string>

#include "report/text.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::report {

/// Why the study ended, in one line, when that is more than "everything is done"; empty otherwise. What failed trials
/// said is left to `failures_text`.
[[nodiscard]] std::string why_text(const tuner::Tuner& tuner);

/// Failed trials, grouped by message (in one line, to be searched for): `#21 #44: loss is NaN at iteration 2`.
[[nodiscard]] std::string failures_text(const tuner::State& state, const Style& style);

/// The trial that failed before any other did; none failed: nothing.
[[nodiscard]] std::optional<study::TrialId> first_failed(const tuner::State& state);

/// Where and how the first trial failed, for a study in which none succeeded: trial, host, ranks, time; and for
/// programs the command line. Empty when no trial failed.
[[nodiscard]] std::string first_failure_text(const tuner::Tuner& tuner);

} // namespace ranktune::report
