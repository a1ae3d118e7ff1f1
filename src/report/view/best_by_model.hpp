// SPDX-License-Identifier: Apache-2.0
#pragma once
// The best trial by a model's mean: where results are noisy, the best value is that of the luckiest trial.

#include <cstddef>
#include <optional>
#include <string>

#include "tuner/tuner.hpp"

namespace ranktune::report {

struct BestByModel {
    study::TrialId trial;
    double mean = 0.0;       ///< of the study's metric
    double deviation = 0.0;  ///< of the mean
    std::size_t results = 0; ///< that the model holds: at most 500, the best and the newest
};

/// By a Gaussian process (searchers::GpModel) over the best values of the trials that have trained at least as far as
/// the best trial had at its best value; failed ones are left out. Costs up to a second with hundreds of results.
///
/// Nothing: results are not noisy (searchers::are_noisy), or there are too few; and for studies of more than 200
/// parameters or several objectives, with searcher.repeats, which have means already, and with schedulers that exploit.
[[nodiscard]] std::optional<BestByModel> best_by_model(const tuner::Tuner& tuner);

/// "#7  0.9120 +- 0.0041, by a model of 60 results, which are noisy: #3 may just have been lucky"; empty: nothing.
[[nodiscard]] std::string text_of(const std::optional<BestByModel>& best, const tuner::Tuner& tuner);

} // namespace ranktune::report
