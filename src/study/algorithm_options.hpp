// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of one algorithm: look-up, and checks of their values.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/study/algorithm.hpp"
#include "ranktune/study/objective.hpp"

namespace ranktune::study {

/// Null: the algorithm has none of this name.
[[nodiscard]] const AlgorithmOption* find_option(const AlgorithmInfo& algorithm, std::string_view name);

/// The option as that of a trainable: kinds and bounds mean the same.
[[nodiscard]] OptionInfo as_option_info(const AlgorithmOption& option);

/// Why the option cannot have this value, in words, or an empty string.
[[nodiscard]] std::string option_problem(const AlgorithmOption& option, const space::Value& value);

/// Converts an integer that is given for a number to a float. Requires a value that the option takes.
[[nodiscard]] space::Value as_kind(const AlgorithmOption& option, const space::Value& value);

/// The descriptions, for code that treats searchers and schedulers alike.
template <class Info>
[[nodiscard]] std::vector<const AlgorithmInfo*> infos_of(const std::vector<std::shared_ptr<const Info>>& algorithms) {
    std::vector<const AlgorithmInfo*> infos;
    for (const auto& algorithm : algorithms) infos.push_back(algorithm.get());
    return infos;
}

/// Why the algorithm refuses a study with several objectives; empty: it does not, or the study has one.
[[nodiscard]] std::string one_metric_only(const AlgorithmInfo& algorithm, const Objective& objective);

} // namespace ranktune::study
