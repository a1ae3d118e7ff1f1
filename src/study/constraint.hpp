// SPDX-License-Identifier: Apache-2.0
#pragma once
// Constraints in words.

#include <span>
#include <string>

#include "ranktune/study/objective.hpp"

namespace ranktune::study {

/// `latency <= 5.0`, as a study file has it.
[[nodiscard]] std::string text(const Constraint& constraint);
/// "latency <= 5.0 and recall >= 0.9"
[[nodiscard]] std::string text(std::span<const Constraint> constraints);

} // namespace ranktune::study
