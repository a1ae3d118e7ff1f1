// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is optimised, and how two values compare. Defines the rules for NaN, infinity and ties.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/ids.hpp"

namespace ranktune::study {

enum class Mode : unsigned char { min, max };
/// As in the study file.
[[nodiscard]] constexpr std::string_view name(Mode mode) { return mode == Mode::max ? "max" : "min"; }

/// A limit that a result must keep (study.constraints): `metric <= bound`, or `metric >= bound`.
struct Constraint {
    std::string metric;
    double bound = 0.0;
    bool at_most = true;
    friend bool operator==(const Constraint&, const Constraint&) = default;

    /// How far a value lies beyond the bound; 0: it keeps it. Infinity for a value that is not finite.
    [[nodiscard]] double excess(double value) const {
        if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
        return std::max(0.0, distance(value));
    }
    /// The same, and how far a value that keeps the bound is from it, as a negative number.
    [[nodiscard]] double distance(double value) const {
        if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
        return at_most ? value - bound : bound - value;
    }
};

/// A metric to optimise.
struct Goal {
    std::string metric;
    Mode mode = Mode::max;
    friend bool operator==(const Goal&, const Goal&) = default;
};

struct Objective {
    /// Of the only objective, or of the first of several.
    std::string metric;
    Mode mode = Mode::max;
    std::vector<Constraint> constraints = {};
    std::vector<Goal> others = {}; ///< the further objectives of a study with several
    friend bool operator==(const Objective&, const Objective&) = default;

    [[nodiscard]] bool several() const { return !others.empty(); }
    /// All of them, in the order of the study file.
    [[nodiscard]] std::vector<Goal> goals() const {
        std::vector<Goal> all{{metric, mode}};
        all.insert(all.end(), others.begin(), others.end());
        return all;
    }
};

/// A metric value turned so that larger is better in either mode. Every non-finite value (NaN, +inf, -inf, whatever the
/// mode) becomes -infinity: worse than any finite one, equal among themselves.
[[nodiscard]] inline double score(double value, Mode mode) {
    if (!std::isfinite(value)) return -std::numeric_limits<double>::infinity();
    return mode == Mode::max ? value : -value;
}

/// The value that stands for a result that violates a constraint, where only the objective is looked at: the worst.
[[nodiscard]] constexpr double violated(Mode mode) {
    return mode == Mode::max ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

/// What a report is worth: a value for each objective, and whether all constraints hold.
class Score {
  public:
    static constexpr std::size_t max_objectives = 4;

    /// Worst.
    Score() = default;
    /// One objective; larger is better. NOLINTNEXTLINE(google-explicit-constructor)
    Score(double value, bool is_feasible = true)
        : feasible(is_feasible), size_(1), values_{value} {} // implicit, because a number is a score
    /// At most max_objectives values; larger is better in each.
    Score(std::span<const double> values, bool is_feasible)
        : feasible(is_feasible), size_(static_cast<std::uint8_t>(std::min(values.size(), max_objectives))) {
        std::copy_n(values.begin(), size_, values_.begin());
    }

    [[nodiscard]] std::span<const double> values() const { return std::span(values_).first(size_); }
    /// The score as one number: the first objective; -infinity if it is missing or a constraint is violated.
    [[nodiscard]] double rank() const {
        return feasible && size_ > 0 ? values_[0] : -std::numeric_limits<double>::infinity();
    }
    /// As `rank`, but results that violate constraints have an order, too: below all others, the smaller violation
    /// first. Only the order means something (Deb, CMAME 186, 2000).
    [[nodiscard]] double order() const {
        if (feasible || size_ == 0 || !std::isfinite(violation) || !std::isfinite(values_[0])) return rank();
        return -1e300 * (1.0 + violation / (1.0 + violation));
    }
    /// What comes before the values where scores with several objectives are compared, the smaller the better (Deb et
    /// al., IEEE TEVC 2002, section VI): 0 if all constraints hold and all values are finite, the violation of
    /// constraints, or infinity for a score that is not finite or has no values.
    [[nodiscard]] double trouble() const {
        const bool finite = size_ > 0 && std::all_of(values_.begin(), values_.begin() + size_,
                                                     [](double value) { return std::isfinite(value); });
        if (!finite) return std::numeric_limits<double>::infinity();
        return feasible ? 0.0 : violation;
    }
    friend bool operator==(const Score&, const Score&) = default;

    bool feasible = true;
    double violation = 0.0; ///< sum of Constraint::excess; 0 where `feasible`

  private:
    std::uint8_t size_ = 0;
    std::array<double, max_objectives> values_{};
};

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
