// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the core says to people: why a trial failed, why the study drains. No code reads it.

#include <cstddef>
#include <string>
#include <vector>

#include "ranktune/study/objective.hpp"
#include "tuner/values/trial.hpp"

namespace ranktune::tuner::words {

// ---- why a trial failed

[[nodiscard]] std::string job_died(std::uint32_t deaths, std::uint32_t deaths_alone);

// ---- why a side task failed, or the study ends with it

[[nodiscard]] std::string nothing_to_evaluate();
[[nodiscard]] std::string before_failed(const Failure& failure);
[[nodiscard]] std::string after_failed(const Failure& failure);

// ---- why the study drains

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

} // namespace ranktune::tuner::words
