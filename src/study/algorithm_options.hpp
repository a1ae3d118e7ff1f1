// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of one algorithm: finding them, and what they take.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/study/algorithm.hpp"

namespace ranktune::study {

/// Null: the algorithm has none of this name.
[[nodiscard]] const AlgorithmOption* find_option(const AlgorithmInfo& algorithm, std::string_view name);

/// The option as one of a trainable, whose kinds and bounds mean the same.
[[nodiscard]] OptionInfo as_option_info(const AlgorithmOption& option);

/// Why the option cannot have this value, in words, or an empty string.
[[nodiscard]] std::string option_problem(const AlgorithmOption& option, const space::Value& value);

/// An integer that is given for a number becomes one. Requires a value that the option takes.
[[nodiscard]] space::Value as_kind(const AlgorithmOption& option, const space::Value& value);

/// For what is the same for algorithms of either kind.
template <class Info>
[[nodiscard]] std::vector<const AlgorithmInfo*> infos_of(const std::vector<std::shared_ptr<const Info>>& algorithms) {
    std::vector<const AlgorithmInfo*> infos;
    for (const auto& algorithm : algorithms) infos.push_back(algorithm.get());
    return infos;
}

} // namespace ranktune::study
