// SPDX-License-Identifier: Apache-2.0
#pragma once
// The description of a trainable for tests.

#include <string>
#include <utility>
#include <vector>

#include "ranktune/study/parse.hpp"

namespace ranktune::testing {

/// Takes every option and saves checkpoints.
inline study::TrainableInfo any_trainable(std::string name = "any", std::vector<std::string> metrics = {}) {
    study::TrainableInfo info;
    info.name = std::move(name);
    info.metrics = std::move(metrics);
    info.any_option = true;
    return info;
}

} // namespace ranktune::testing
