// SPDX-License-Identifier: Apache-2.0
#pragma once
// Points to try first: [[searcher.start]].

#include <string>
#include <vector>

#include "ranktune/space/configuration.hpp"
#include "ranktune/space/search_space.hpp"

namespace ranktune::study {

/// A mistake in one hyper-parameter of a point.
struct StartProblem {
    std::string name;
    bool in_value = false; ///< it is about the value, otherwise about the name
    std::string message;
};

/// What is wrong with a point: names that the space lacks, values outside their domains, and parameters that cannot
/// exist with the other values given.
[[nodiscard]] std::vector<StartProblem> start_problems(const space::Configuration& point,
                                                       const space::SearchSpace& space);

} // namespace ranktune::study
