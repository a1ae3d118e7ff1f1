// SPDX-License-Identifier: Apache-2.0
#pragma once
// Side tasks in words and tables: what comes before, after each trial, and after all of them.

#include <optional>
#include <string>
#include <vector>

#include "tuner/tuner.hpp"

namespace ranktune::report {

/// "before: done after 12 s; after_trial: 7 done, 1 running, 2 waiting; after: waiting"; empty: there are none.
/// `elapsed_s`: study time, for what runs; 0: that of the last record.
[[nodiscard]] std::string side_tasks_text(const tuner::State& state, double elapsed_s = 0.0);
/// "after_trial 7: exit code 1", the first of those that failed, and how many more; empty: none has failed.
[[nodiscard]] std::string failed_side_tasks_text(const tuner::State& state);
/// "test_accuracy 0.91, test_loss 0.3", or what keeps the task of this trial; empty: it has none.
[[nodiscard]] std::string after_trial_text(const tuner::State& state, study::TrialId trial);

/// The metrics that tasks after trials have reported, by name.
[[nodiscard]] std::vector<std::string> side_metrics(const tuner::State& state);
/// The value that the task of this trial reported; nullopt: none.
[[nodiscard]] std::optional<double> side_metric(const tuner::State& state, study::TrialId trial,
                                                const std::string& metric);

} // namespace ranktune::report
