// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the core says to people: why a trial failed, why the study drains, why a request is refused. No code reads it.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/study/objective.hpp"
#include "tuner/values/trial.hpp"

namespace ranktune::tuner::words {

// ---- why a trial failed

[[nodiscard]] std::string no_report();
[[nodiscard]] std::string ranks_lost(std::uint32_t losses);
[[nodiscard]] std::string job_died(std::uint32_t deaths, std::uint32_t deaths_alone);

// ---- why a side task failed, or the study ends with it

[[nodiscard]] std::string nothing_to_evaluate();
[[nodiscard]] std::string before_failed(const Failure& failure);
[[nodiscard]] std::string after_failed(const Failure& failure);

// ---- why the study drains

[[nodiscard]] std::string time_budget_used_up();
[[nodiscard]] std::string ranges_missing(std::uint64_t count);
struct Time {
    double left = 0.0;      ///< s, for training
    double iteration = 0.0; ///< s, of the slowest trial; 0: unknown
    double saving = 0.0;    ///< s
    Iteration stretch = 1;  ///< iterations of an attempt until its work is saved
    bool can_save = true;
};
[[nodiscard]] std::string no_time_left(const Time& time);
/// `host`: the only one of the trial's ranks; empty: there are several.
[[nodiscard]] std::string not_set_up(TrialId trial, const std::string& host, const std::string& message);
/// A report brings a further name of a metric, and a study has as many as it may.
[[nodiscard]] std::string too_many_metrics(TrialId trial, const std::string& name, std::size_t most);
/// The first report of a trial, with these metrics, lacks one that the study needs.
[[nodiscard]] std::string missing_metric(TrialId trial, const study::Objective& objective,
                                         const std::vector<std::string>& reported);

// ---- why a user's request is refused

[[nodiscard]] std::string study_is_ending();
[[nodiscard]] std::string study_is_deterministic();
[[nodiscard]] std::string no_such_trial(TrialId trial, std::size_t trials);
[[nodiscard]] std::string is_over(TrialId trial, Reason reason, double a, double b);
[[nodiscard]] std::string paused_by_scheduler(TrialId trial);
[[nodiscard]] std::string is_not_paused(TrialId trial);
[[nodiscard]] std::string is_on_hold(TrialId trial);
[[nodiscard]] std::string is_at_barrier(TrialId trial);
[[nodiscard]] std::string compares_together(std::string_view scheduler);
[[nodiscard]] std::string holds_up_others(std::string_view scheduler);
[[nodiscard]] std::string would_begin_again();
[[nodiscard]] std::string nothing_to_add();
[[nodiscard]] std::string nothing_to_set();
[[nodiscard]] std::string nothing_changes();
[[nodiscard]] std::string fewer_trials(std::size_t created, std::size_t wanted);
/// `later`: the next start can take over another value.
[[nodiscard]] std::string key_is_fixed(const std::string& key, bool later);

} // namespace ranktune::tuner::words
