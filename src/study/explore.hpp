// SPDX-License-Identifier: Apache-2.0
#pragma once
// [scheduler.explore]: which hyper-parameters change while a trial trains.

#include <string>
#include <vector>

#include "ranktune/study/spec.hpp"

namespace ranktune::study {

/// Why the values of this hyper-parameter of the space cannot change in this way, in words, or an empty string.
/// `trainable`: whose options they are, or null where that is not known. A program says by the study file itself what
/// may change.
[[nodiscard]] std::string explore_problem(const Explored& explored, const space::Parameter& parameter,
                                          const ResourceSpec& resources, const TrainableInfo* trainable);
/// Those of the space that may be named, in its order.
[[nodiscard]] std::vector<std::string> explorable(const space::SearchSpace& space, const ResourceSpec& resources,
                                                  const TrainableInfo* trainable);

} // namespace ranktune::study
