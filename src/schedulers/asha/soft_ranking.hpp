// SPDX-License-Identifier: Apache-2.0
#pragma once
// SoftRanking: do two rungs agree on the order of the same trials?

#include <cstddef>
#include <optional>
#include <vector>

#include "schedulers/rungs/ranking.hpp"

namespace ranktune::schedulers {

/// Trials with their scores at two rungs: their own, and the one below. PASHA's soft ranking (Bohdal et al., ICLR 2023,
/// section 4): order the trials by their scores at the rung below, and by those at their own. The two orders are
/// consistent if at each position the two trials there have scores at the rung below that differ by at most epsilon.
///
///   at the rung below: a 10, b 9, c 5    at their own: b, a, c    consistent with epsilon 1, not with less
///   at the rung below: a 10, b 9, c 5    at their own: c, b, a    only with epsilon 5: a and c have changed places
///
/// Equal scores are in the order of the trials' numbers. `insert` costs O(log n) and a move in a block; `consistent`
/// costs O(1 + positions between the new trial's two places) after one insertion, else O(n).
class SoftRanking {
  public:
    /// Finite scores; a trial is inserted at most once.
    void insert(base::TrialId trial, double below, double own);
    [[nodiscard]] std::size_t size() const { return own_.size(); }
    /// What is consistent with one epsilon is so with each larger one.
    [[nodiscard]] bool consistent(double epsilon);
    /// An epsilon with which the orders were consistent when `consistent` last said so, at most the one it was asked
    /// with: often the least. 0: it has not said so yet.
    [[nodiscard]] double sufficient() const { return known_.value_or(0.0); }
    void clear() { *this = {}; }
    /// O(n).
    [[nodiscard]] bool valid() const;

  private:
    [[nodiscard]] double furthest_in(std::size_t from, std::size_t to) const;

    Ranking own_;
    Ranking below_;
    std::vector<double> score_below_; ///< by trial number
    // What `consistent` has found: all positions outside [from_, to_) are consistent with `known_`.
    std::optional<double> known_ = {};
    std::size_t from_ = 0;
    std::size_t to_ = 0;
};

} // namespace ranktune::schedulers
