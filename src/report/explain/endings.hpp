// SPDX-License-Identifier: Apache-2.0
#pragma once
// Why a study ended, and what its failed trials said, in words.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/screens/text.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::report {

/// Why the study ended, in one line; empty when it is complete. Messages of failed trials are left to `failures_text`.
[[nodiscard]] std::string why_text(const tuner::Tuner& tuner);

/// The message of a failed trial, in one line; without a message, the reason why it was closed.
[[nodiscard]] std::string failure_message(const tuner::Trial& trial);

/// Why a trial was closed, or its newest verdict.
[[nodiscard]] std::string reason_text(const tuner::Trial& trial);

/// How many trials a study that is over never made, because it ended before.
[[nodiscard]] std::uint64_t trials_never_made(const tuner::Tuner& tuner);
/// "60 trials"; of a study that ended before it made all of them, "9 of 20 trials".
[[nodiscard]] std::string trials_made(const tuner::Tuner& tuner);

/// Whether study.time_budget is used up: the next start ends at once unless the budget grows.
[[nodiscard]] bool out_of_time(const tuner::State& state);

/// " with latency <= 5.0"; empty without constraints.
[[nodiscard]] std::string limits_text(const study::Objective& objective);

/// The report that violates the constraints least, when none keeps them: `#2 loss 0.2134 at iteration 1 of 3; latency
/// 10.2 (wanted <= 5.0)`. Empty: there is a best trial, or no report has all these metrics.
[[nodiscard]] std::string nearest_text(const tuner::Tuner& tuner);

/// "298 done, 2 failed; 24.1 per second", of a study that compares nothing (study::compares_nothing). `elapsed_s`: its
/// running time so far.
[[nodiscard]] std::string tasks_text(const tuner::State& state, double elapsed_s);

/// "24.1 per second", of so many tasks; empty: not known.
[[nodiscard]] std::string pace_text(std::uint64_t done, double elapsed_s);

/// Trial, metric and iteration of the best trial, and whether that trial has failed; or the one that is nearest to the
/// constraints, or why there is none. Empty when no trial has reported, when nothing is compared, or when `why_text`
/// says why there is none.
[[nodiscard]] std::string best_text(const tuner::Tuner& tuner, const Style& style);

/// Why the last state of a trial that has not failed could not be saved; empty: nothing is known.
[[nodiscard]] std::string unsaved_cause(const tuner::Trial& trial);
/// "weights of iteration 9 (0.96)" where the checkpoint that the trial has to offer does not have the weights of its
/// best value; "no weights" where it has none because it could not be saved; empty otherwise.
[[nodiscard]] std::string other_weights(const tuner::Trial& trial, const study::Objective& objective);
/// A line for who takes this checkpoint of the trial: "its best val_accuracy, 0.98, was at iteration 7; these are
/// weights of iteration 9 (0.96)"; empty where they belong to the best value.
[[nodiscard]] std::string best_aside(const tuner::Trial& trial, const study::CheckpointRef& checkpoint,
                                     const study::Objective& objective);

/// The best trials whose weights could not be saved, and why; empty where there are none, or where `why_text` says why.
[[nodiscard]] std::string lost_weights_text(const tuner::Tuner& tuner, const Style& style);

/// Failed trials whose messages differ in values alone.
struct FailureGroup {
    std::string message; ///< of the first one
    bool varies = false; ///< others have other values in it
    std::vector<std::string> trials;
};
[[nodiscard]] std::vector<FailureGroup> failure_groups(const tuner::State& state);
/// "#21 #44: loss is NaN at iteration 2".
[[nodiscard]] std::string text_of(const FailureGroup& group);
/// The first groups. A message stays in one line, so that it can be searched for. `directory`: of the study, as the
/// user types it.
[[nodiscard]] std::string failures_text(const tuner::State& state, const std::string& directory, const Style& style);

/// For an error message: the failed trials as in `failures_text`, and where the logs are, in unwrapped lines that each
/// begin with a line end. Empty when no trial has failed, or the outcome is ok or resumable.
[[nodiscard]] std::string errors_text(const tuner::Tuner& tuner, const std::string& directory);

/// The hosts and GPUs that get no more trials in this start, because trials failed there one after the other: "host n2,
/// GPU 1 of n3"; empty: none.
[[nodiscard]] std::string out_of_service_text(const tuner::State& state);

/// The ranks that died in this start while the study went on: "w2 on n1 after 5.1s: its process has ended"; ranks of
/// one host that were lost for one cause are one entry. Empty: none.
[[nodiscard]] std::string lost_ranks_text(const tuner::State& state);

/// The trial that failed first; nothing when none failed.
[[nodiscard]] std::optional<study::TrialId> first_failed(const tuner::State& state);

/// Where and how the first trial failed, for a study in which none succeeded: trial, host, ranks, time; and for
/// programs the command line. Empty when no trial failed.
[[nodiscard]] std::string first_failure_text(const tuner::Tuner& tuner, const Style& style);

/// For a searcher that prepares suggestions ahead: how many trials took one, and how many a Sobol point in its place,
/// because none was ready or the searcher failed. Empty when all took one, and for other searchers.
[[nodiscard]] std::string suggestions_text(const tuner::Tuner& tuner);

/// Of a searcher whose failures cost suggestions: why it failed, where more is written (`log`: of the head), and what
/// to do. Empty when no trial lacked a suggestion because of a failure.
[[nodiscard]] std::string searcher_failure_text(const tuner::Tuner& tuner, const std::string& log);

/// Trials that ended by themselves before study.max_iterations, which nobody asked them to: how many, after how many
/// iterations, and what to do. Empty: none.
[[nodiscard]] std::string ended_early_text(const tuner::Tuner& tuner, const Style& style);

/// What checkpoint.max_bytes has cost trials that took over states, and how large it should be. Empty: nothing.
[[nodiscard]] std::string undone_for_room_text(const tuner::Tuner& tuner, const Style& style);

/// The cost, and the remedy, of programs in which only rank 0 reports. `attempts`: number of such attempts; 0 gives an
/// empty text.
[[nodiscard]] std::string lone_reports_text(std::uint64_t attempts, const Style& style);

// ---- The state of a stopping study: for how long, why, and what it waits for.

/// "stopping for 4m00s (Ctrl-C): waits for the next report of #3, #7; an iteration takes up to 15m00s". `wall`: now.
/// Empty: the study is not stopping, or has ended.
[[nodiscard]] std::string stopping_text(const tuner::Tuner& tuner, double now);
/// What becomes of what runs when the study is asked to stop: "running trials checkpoint at their next report".
[[nodiscard]] std::string how_stops_text(const study::StudySpec& spec);
/// Study time at the wall clock's `now`, while the study runs: within a start, both advance alike. nullopt: it has not
/// begun.
[[nodiscard]] std::optional<double> study_seconds(const tuner::State& state, double now);

} // namespace ranktune::report
