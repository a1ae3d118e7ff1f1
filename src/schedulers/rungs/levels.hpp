// SPDX-License-Identifier: Apache-2.0
#pragma once
// Brackets: the iterations of their rungs, which bracket a trial belongs to, and the rungs of all in one list.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "ranktune/base/ids.hpp"
#include "ranktune/schedulers/scheduler.hpp"

namespace ranktune::schedulers {

/// Levels of bracket `bracket` (Li et al., MLSys 2020: s): first * eta^(bracket + k) < ceiling for k = 0, 1, ..., then
/// the ceiling itself. Ascending, never empty, integers throughout. Requires first >= 1, eta >= 2, ceiling >= 1.
///
///   integer_levels(1, 3, 27, 0) == {1, 3, 9, 27}   integer_levels(1, 3, 20, 1) == {3, 9, 20}
[[nodiscard]] std::vector<base::Iteration> integer_levels(base::Iteration first, std::uint64_t eta,
                                                          base::Iteration ceiling, std::uint32_t bracket);

/// Levels of rule "ray": first * eta^(bracket + k) <= ceiling, each compared as its ceiling in whole iterations. May be
/// empty, and may hold the same iteration twice when eta is small. Computed by multiplication: Ray uses a logarithm,
/// which loses the last rung for eta = 10, ceiling = 1000. Requires first > 0, eta > 1. Stops after limit + 1 levels.
[[nodiscard]] std::vector<base::Iteration> ray_levels(double first, double eta, base::Iteration ceiling,
                                                      std::uint32_t bracket, std::size_t limit);

/// The bracket of a trial: bracket b with probability proportional to e^(number of its rungs), as in Ray, drawn from
/// the stream (seed, bracket, trial).
class BracketDraw {
  public:
    /// `rungs`: number of rungs of each bracket; at least one bracket.
    BracketDraw(std::uint64_t seed, const std::vector<std::size_t>& rungs);
    [[nodiscard]] std::uint32_t operator()(base::TrialId trial) const;

  private:
    std::uint64_t seed_;
    std::vector<double> cumulative_; ///< ascending, the last one is the sum of all weights
};

/// The brackets in turn, so that each gets the same budget: of every round, the first trials[0] trials go to bracket 0,
/// the next trials[1] to bracket 1, ... Rounds follow each other. A function of the trial's number alone.
class BracketRounds {
  public:
    /// `trials`: of each bracket in a round, at least one each; see budget_round.
    explicit BracketRounds(const std::vector<std::uint64_t>& trials);
    [[nodiscard]] std::uint32_t operator()(base::TrialId trial) const;

  private:
    std::vector<std::uint64_t> cumulative_;
};

/// Trials of each bracket in one round of HyperBand (Li et al., JMLR 18, 2018, algorithm 1), for any integer levels: a
/// bracket has the budget B = (rungs of bracket 0) * ceiling. One trial costs c = sum over its rungs k of
/// level_k / eta^k, because one in eta goes on, and each rung counts from iteration 0, as in the paper. ceil(B / c)
/// trials, in integers. With levels R / eta^s ... R this is the paper's ceil((s_max + 1) / (s + 1) * eta^s).
///
///   R = 81, eta 3, five brackets: {81, 34, 15, 8, 5}
[[nodiscard]] std::vector<std::uint64_t> budget_round(const std::vector<std::vector<base::Iteration>>& levels,
                                                      std::uint64_t eta);

/// How new trials are shared among brackets.
enum class Allotment : std::uint8_t {
    ray,   ///< BracketDraw
    budget ///< BracketRounds of budget_round
};

/// The bracket of each new trial. `levels`: of each bracket; `eta`: for `budget` only.
[[nodiscard]] std::function<std::uint32_t(base::TrialId)> bracket_choice(
    Allotment allotment, std::uint64_t seed, const std::vector<std::vector<base::Iteration>>& levels,
    std::uint64_t eta);

/// Adds a rung of another bracket to `views`, which are sorted by iteration: to the one at the same iteration, or as a
/// new one.
void merge(std::vector<Scheduler::RungView>& views, const Scheduler::RungView& rung);

} // namespace ranktune::schedulers
