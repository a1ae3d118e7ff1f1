// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is optimised, and how two values compare. NaN, infinity and ties have written rules, in one place.

#include <cmath>
#include <limits>
#include <string>

#include "ranktune/base/ids.hpp"

namespace ranktune::study {

enum class Mode : unsigned char { min, max };

struct Objective {
    std::string metric;
    Mode mode = Mode::max;
    friend bool operator==(const Objective&, const Objective&) = default;
};

/// A metric value turned so that larger is better in either mode. Every non-finite value (NaN, +inf, -inf, whatever the
/// mode) becomes -infinity: worse than any finite one, equal among themselves.
[[nodiscard]] inline double score(double value, Mode mode) {
    if (!std::isfinite(value)) return -std::numeric_limits<double>::infinity();
    return mode == Mode::max ? value : -value;
}

/// An entry in a ranking of trials.
struct Ranked {
    double score = 0.0; ///< larger is better; never NaN
    base::TrialId trial;
    friend bool operator==(const Ranked&, const Ranked&) = default;
};

/// Strict weak order "a is better than b": the larger score, and among equal ones the lower trial id.
[[nodiscard]] constexpr bool better(const Ranked& a, const Ranked& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.trial < b.trial;
}

} // namespace ranktune::study
