// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Pareto front of a study with several objectives, on screens.

#include <optional>
#include <string>
#include <vector>

#include "report/screens/text.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::report {

/// "5 trials" of the Pareto front; empty for a study with one objective, or without a result.
[[nodiscard]] std::string front_size_text(const tuner::State& state);

/// "5 of 12 trials: loss from 0.1200 (#3) to 0.4000 (#7), latency from 2.1 (#7) to 8.1 (#3)". Requires a front.
[[nodiscard]] std::string front_range_text(const tuner::Tuner& tuner);

/// The trials of the front, from the best to the worst in the first objective.
[[nodiscard]] std::vector<study::TrialId> front_of(const tuner::Tuner& tuner);

/// The trial's value of objective `index` at its best iteration; NaN: it has none.
[[nodiscard]] double objective_value(const tuner::Trial& trial, std::size_t index);

/// The front as a table, and the weights of its trials. Requires a front.
[[nodiscard]] std::string front_screen(const tuner::Tuner& tuner, const std::string& directory, const Style& style);

} // namespace ranktune::report
