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

/// What a failed trial said, in one line; of one that was closed without a word, the reason.
[[nodiscard]] std::string failure_message(const tuner::TrialState& trial);

/// "60 trials"; of a study that ended before it made all of them, "9 of 20 trials".
[[nodiscard]] std::string trials_made(const tuner::Tuner& tuner);

/// Whether the study's time is used up: its next start ends at once, unless it gets more.
[[nodiscard]] bool out_of_time(const tuner::State& state);

/// Trial, metric and iteration of the best trial, and whether that trial has failed; or why there is none. Empty: no
/// trial has reported yet, or nobody knows the metric.
[[nodiscard]] std::string best_text(const tuner::Tuner& tuner, const Style& style);

/// Failed trials, grouped by message (in one line, to be searched for): `#21 #44: loss is NaN at iteration 2`.
/// `directory`: of the study, as it is typed.
[[nodiscard]] std::string failures_text(const tuner::State& state, const std::string& directory, const Style& style);

/// For an error message: what failed trials said, as above, and where the logs are, in lines that are not broken, each
/// after a line end. Empty when no trial has failed, or the study goes on with what it has.
[[nodiscard]] std::string errors_text(const tuner::Tuner& tuner, const std::string& directory);

/// The trial that failed before any other did; none failed: nothing.
[[nodiscard]] std::optional<study::TrialId> first_failed(const tuner::State& state);

/// Where and how the first trial failed, for a study in which none succeeded: trial, host, ranks, time; and for
/// programs the command line. Empty when no trial failed.
[[nodiscard]] std::string first_failure_text(const tuner::Tuner& tuner, const Style& style);

/// What it costs that rank 0 alone reports in a study of programs, and the mend; `attempts`: in which that was so.
/// Empty: none.
[[nodiscard]] std::string lone_reports_text(std::uint64_t attempts, const Style& style);

} // namespace ranktune::report
