// SPDX-License-Identifier: Apache-2.0
#pragma once
// Standings: how the members of a population compare at their ready points.

#include <cstdint>
#include <vector>

#include "ranktune/schedulers/scheduler.hpp"
#include "schedulers/rungs/ranking.hpp"

namespace ranktune::schedulers {

/// Multiples of `interval`, none before `burn_in`, all below `ceiling`.
struct ReadyPoints {
    base::Iteration interval = 1; ///< >= 1
    base::Iteration burn_in = 0;
    base::Iteration ceiling = 1;

    [[nodiscard]] bool contain(base::Iteration iteration) const {
        return iteration % interval == 0 && iteration >= burn_in && iteration < ceiling;
    }
    /// The first one after `current`, or the ceiling, if that is higher.
    [[nodiscard]] base::Iteration after(base::Iteration current) const;
};

/// Part of Population, which says who has come where. Scores of a member are ranked at each of its ready points, or
/// only the newest of each member (`latest`).
class Standings {
  public:
    /// What a member was ranked with last.
    struct Place {
        base::Iteration judged = 0; ///< its newest ready point; 0: none
        double score = 0.0;
    };
    /// Where a report stands among those it is compared with, its own included.
    struct Standing {
        std::size_t position = 0; ///< from 0, the best
        std::size_t members = 1;
        std::size_t group = 0; ///< size of the upper and of the lower group
        [[nodiscard]] bool is_low() const { return position + group >= members; }
        [[nodiscard]] bool is_high() const { return position < (group > 0 ? group : 1); }
    };

    /// `quantile`: size of a group, in (0, 0.5].
    Standings(const ReadyPoints& points, double quantile, bool latest);

    /// Null: nobody has been there.
    [[nodiscard]] const Ranking* at(base::Iteration iteration) const;
    /// `own`: of the member that reports. `population`: members at the end. `complete`: nobody else will come there.
    [[nodiscard]] Standing of(const Report& report, const Place& own, std::size_t population, bool complete) const;
    /// As in Ray: ceil(n q), and never more than half of them. While others are still to come it is floor(n q): the
    /// second to arrive is not among the worst of its population for being worse than the first.
    [[nodiscard]] std::size_t group_size(std::size_t members, bool complete) const;

    /// A member comes to a ready point; `own` is its place before.
    void rank(base::TrialId trial, const Place& own, base::Iteration iteration, double score);
    /// `latest`: a member is compared no more.
    void remove(base::TrialId trial, const Place& own) { rankings_.front().erase({own.score, trial}); }
    /// A member is over (`change` 1), or not any more (-1).
    void count_over(const Place& own, int change);
    [[nodiscard]] std::size_t over() const { return over_; }

    void snapshot(study::Encoder& out) const;
    /// Members that are over must be counted again. Throws base::FormatError.
    void restore(study::Decoder& in);
    /// Throws std::logic_error. `members`: created; `judged`: of these, those with a place.
    void check(std::size_t members, std::size_t judged) const;

  private:
    [[nodiscard]] std::size_t number(base::Iteration point) const { return latest_ ? 0 : point / points_.interval; }

    ReadyPoints points_;
    double quantile_;
    bool latest_;
    std::vector<Ranking> rankings_; ///< of each ready point; latest: one
    // Derived.
    std::size_t over_ = 0;                ///< members that are over
    std::vector<std::size_t> over_there_; ///< not latest: of these, those in each ranking
};

} // namespace ranktune::schedulers
