// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a multi-fidelity model learns from: the results at one iteration, the largest one with enough of them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "ranktune/searchers/observations.hpp"
#include "searchers/results/reading.hpp"

namespace ranktune::searchers {

/// Follows a table of observations. Every iteration at which trials report is a budget. The budget in use is the
/// largest one that has ever had enough points; results at smaller ones are forgotten, as in HpBandSter. A function of
/// the lines that were read.
///
/// - A trial has one point at an iteration: the configuration with which it last reported there, and the score. The
///   score of a value that is not finite is worst.
/// - A failed trial has a point with the worst score at the iteration after its last one, in which it failed. It also
///   counts as worst at larger budgets, but does not help to make enough points there: nobody knows whether the trial
///   would have got that far. A trial that goes on after all has failed no longer.
///
///   enough = 2 points     #0 reports 1: 0.5, 2: 0.7     #1 reports 1: 0.6     #2 fails in iteration 1
///   iteration() -> 1: #1, #0, #2;     after #1 reports 2: 0.4  iteration() -> 2: #0, #1, #2
///
/// Cost: O(log points) per line.
class LargestBudget {
  public:
    struct Point {
        double score = 0.0; ///< larger is better; -infinity: failed or not finite
        base::TrialId trial;
        std::uint64_t number = 0; ///< see Observations::point
        friend bool operator==(const Point&, const Point&) = default;
    };
    /// Whether so many points, of which `finite` have a finite score, are enough.
    using Enough = std::function<bool(std::size_t points, std::size_t finite)>;

    /// How results count that violate constraints: below all others, the smaller violation first (as finite ones), or
    /// with their values, as if there were no constraints.
    enum class Violators : std::uint8_t { ordered, as_reported };

    LargestBudget(Enough enough, Violators violators) : enough_(std::move(enough)), violators_(violators) {}

    /// Reads the lines that have come since the last call; all lines of a table that does not continue the last one.
    void read(const Observations& table);
    /// The budget in use; 0: none yet.
    [[nodiscard]] base::Iteration iteration() const { return iteration_; }
    /// The points of that budget, the best first. Ties: the lower trial first.
    [[nodiscard]] std::vector<Point> points() const;
    /// The trial's point among them. O(log points).
    [[nodiscard]] std::optional<Point> point_of(base::TrialId trial) const;

  private:
    struct Budget {
        std::map<base::TrialId, Point> points;
        std::size_t finite = 0;
    };
    struct Failure {
        std::uint64_t number = 0;
        base::Iteration at = 0; ///< the iteration in which the trial failed
    };
    void read(const Observation& line);
    void enter(base::Iteration iteration, const Point& point);

    Enough enough_;
    Violators violators_;
    Reading reading_;
    base::Iteration iteration_ = 0;
    std::map<base::Iteration, Budget> budgets_; ///< from iteration_ on
    std::map<base::TrialId, Failure> failed_;
};

} // namespace ranktune::searchers
