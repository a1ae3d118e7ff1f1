// SPDX-License-Identifier: Apache-2.0
#pragma once
// Objectives and constraints in words.

#include <span>
#include <string>

#include "ranktune/study/objective.hpp"

namespace ranktune::study {

/// "val_accuracy", or "val_accuracy and latency" of several objectives.
[[nodiscard]] std::string metrics_text(const Objective& objective);
/// `latency <= 5.0`, as a study file has it.
[[nodiscard]] std::string text(const Constraint& constraint);
/// "latency <= 5.0 and recall >= 0.9"
[[nodiscard]] std::string text(std::span<const Constraint> constraints);

} // namespace ranktune::study
