// SPDX-License-Identifier: Apache-2.0
#pragma once
// The objective among the metrics of an iteration.

#include <cmath>
#include <optional>

#include "ranktune/study/objective.hpp"
#include "ranktune/trainables/trainable.hpp"

namespace ranktune::drivers {

/// Nothing when it is not among them, or not finite.
[[nodiscard]] inline std::optional<double> objective_value(const trainables::Metrics& metrics,
                                                           const study::Objective& objective) {
    for (const auto& [name, value] : metrics)
        if (name == objective.metric) return std::isfinite(value) ? std::optional(value) : std::nullopt;
    return std::nullopt;
}

} // namespace ranktune::drivers
