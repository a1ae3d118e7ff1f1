// SPDX-License-Identifier: Apache-2.0
#pragma once
// The value of a study's best trial, alone or with the other trials of its configuration (searcher.repeats).

#include <string>

#include "tuner/tuner.hpp"

namespace ranktune::report {

/// Of the best trial; with repeats, the mean over the trials of its configuration. NaN: there is no best trial.
[[nodiscard]] double value_of_best(const tuner::Tuner& tuner);
/// "0.9120"; with repeats "0.9120 +- 0.0041 (mean of 3)": mean and sample standard deviation.
[[nodiscard]] std::string text_of_best(const tuner::Tuner& tuner);
/// Of the configuration of this trial, as far as its trials have values; empty without repeats.
[[nodiscard]] std::string text_of_mean(const tuner::Tuner& tuner, study::TrialId trial);

} // namespace ranktune::report
