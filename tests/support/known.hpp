// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the study files of tests may name: the algorithms of the library, and trainables of the test.

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

/// A trainable that accepts every option and saves checkpoints.
inline study::TrainableInfo any_trainable(std::string name = "any", std::vector<std::string> metrics = {}) {
    study::TrainableInfo info;
    info.name = std::move(name);
    info.metrics = std::move(metrics);
    info.any_option = true;
    return info;
}

} // namespace ranktune::testing
