// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the study files of tests may name: the algorithms of the library, and trainables of the test.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/study/parse.hpp"
#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"

namespace ranktune::testing {

inline study::Algorithms built_in_algorithms() { return {schedulers::built_in(), searchers::built_in()}; }

inline study::Known known(std::vector<study::TrainableInfo> trainables = {}) {
    return {std::move(trainables), built_in_algorithms()};
}

/// The names of the algorithms whose description `pick` accepts, in the order of the list: tests walk over the
/// descriptions, so that a new algorithm is tested with the others.
template <class Info, class Pick>
[[nodiscard]] std::vector<std::string> names_of(const std::vector<std::shared_ptr<const Info>>& algorithms, Pick pick) {
    std::vector<std::string> names;
    for (const auto& info : algorithms)
        if (pick(*info)) names.push_back(info->name);
    return names;
}
/// The options that any of them has, each once.
template <class Info>
[[nodiscard]] std::vector<std::string> options_of(const std::vector<std::shared_ptr<const Info>>& algorithms) {
    std::vector<std::string> names;
    for (const auto& info : algorithms)
        for (const auto& option : info->options)
            if (std::ranges::find(names, option.name) == names.end()) names.push_back(option.name);
    return names;
}
/// Those that have this option.
template <class Info>
[[nodiscard]] std::vector<std::string> owners_of(const std::vector<std::shared_ptr<const Info>>& algorithms,
                                                 const std::string& option) {
    return names_of(algorithms, [&](const Info& info) {
        return std::ranges::find(info.options, option, &study::AlgorithmOption::name) != info.options.end();
    });
}
/// The built-in searchers that learn from results.
[[nodiscard]] inline std::vector<std::string> learning_searchers() {
    return names_of(searchers::built_in(), [](const study::SearcherInfo& info) { return info.uses_earlier_results; });
}

/// As messages list names: "fifo", "asha" or "median".
[[nodiscard]] inline std::string listed(const std::vector<std::string>& names) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
        text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + ("\"" + names[i] + "\"");
    return text;
}

/// A trainable that accepts every option and saves checkpoints.
inline study::TrainableInfo any_trainable(std::string name = "any", std::vector<std::string> metrics = {}) {
    study::TrainableInfo info;
    info.name = std::move(name);
    info.metrics = std::move(metrics);
    info.any_option = true;
    return info;
}

} // namespace ranktune::testing
