// SPDX-License-Identifier: Apache-2.0
#pragma once
// PASHA: ASHA with a ceiling that rises only while the ranking of the trials still changes.

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "schedulers/asha/asha_promote.hpp"
#include "schedulers/asha/curve_noise.hpp"
#include "schedulers/asha/soft_ranking.hpp"

namespace ranktune::schedulers {

/// Bohdal et al., "PASHA: Efficient HPO and NAS with Progressive Resource Allocation", ICLR 2023. Trials pause and are
/// promoted as in AshaPromote, but at first only up to the second rung: the top. When a trial is entered at the top,
/// the order of the top's trials there and at the rung below is compared (SoftRanking). If it is not consistent, the
/// next rung becomes the top. Trials that wait at the old top may then be promoted like others. The top never goes
/// down, and stops at the ceiling.
///
/// Epsilon is fixed, or the noise of the learning curves (CurveNoise), estimated anew before each comparison: 0 until
/// two curves have crossed repeatedly, and the last estimate while a new top has none.
///
/// No part in this have: scores that are not finite, failed trials, and trials on their way to the ceiling by
/// finish_top (by then the search is over).
///
/// Differs from the authors' implementation in Syne Tune: that one compares after every report, and not only when a
/// trial is entered at the top; the last rung is the ceiling itself; and see CurveNoise for its limit.
///
/// Cost per report: AshaPromote's; with an estimated epsilon O(1) for the curve (256 comparisons for each of the first
/// 256 trials above the rung below the top); the estimate is computed only where a bound of it does not decide. When a
/// trial is entered at the top: O(log n) and a comparison of the positions between its two places in the two orders,
/// which is O(n) in the worst case but short while the orders are consistent. Once the top is at the ceiling nothing is
/// compared any more.
class ProgressiveAsha final : public Scheduler {
  public:
    struct Options {
        base::Iteration first_rung = 1;
        std::uint32_t eta = 3;              ///< >= 2
        base::Iteration ceiling = 1;        ///< >= first_rung
        std::uint32_t finish_top = 1;       ///< as AshaPromote's
        std::optional<double> epsilon = {}; ///< finite, >= 0; nullopt: estimated
        std::uint32_t num_trials = std::numeric_limits<std::uint32_t>::max();
    };
    ProgressiveAsha(const Options& options, const study::Objective& objective);

    [[nodiscard]] std::string_view name() const override { return "pasha"; }
    /// A trial always pauses at the top, also if its report is the one that raises it.
    [[nodiscard]] study::Verdict decide(const Report& report, bool contended) const override {
        return asha_.decide(report, contended);
    }
    [[nodiscard]] Work next(const Pool& pool) const override { return asha_.next(pool); }
    [[nodiscard]] base::Iteration next_decision_point(base::TrialId trial, base::Iteration current) const override {
        return asha_.next_decision_point(trial, current);
    }
    [[nodiscard]] bool out_of_reach(base::TrialId trial) const override { return asha_.out_of_reach(trial); }
    [[nodiscard]] const std::vector<base::TrialId>& fell_out() const override { return asha_.fell_out(); }
    void set_num_trials(std::uint32_t num_trials) override { asha_.set_num_trials(num_trials); }
    void apply(const study::Record& record) override;
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;
    void check_invariants() const override;
    [[nodiscard]] bool pauses() const override { return true; }
    [[nodiscard]] std::vector<RungView> rungs() const override { return asha_.rungs(); }

    /// The iteration up to which trials are promoted at present.
    [[nodiscard]] base::Iteration top() const { return levels_[top_]; }
    /// With which a trial would be compared that is entered at the top now. Costs a copy of all curves.
    [[nodiscard]] double epsilon() const;

  private:
    /// The scores of a trial at the last rung where it was entered, and at the one below.
    struct Scores {
        std::size_t entered = 0; ///< rungs
        double own = 0.0;
        double below = 0.0;
    };
    [[nodiscard]] bool ranked(const Scores& scores) const;
    void entered(base::TrialId trial, double score);
    [[nodiscard]] bool is_consistent();
    void raise();

    Options options_;
    std::vector<base::Iteration> levels_;
    AshaPromote asha_;
    std::size_t top_;            ///< index in levels_
    double epsilon_;             ///< the fixed one, or the last estimate before the top rose
    std::vector<Scores> scores_; ///< position is the TrialId
    SoftRanking ranking_;        ///< of the trials entered at the top; derived from scores_
    CurveNoise noise_;           ///< without points if epsilon is fixed
};

} // namespace ranktune::schedulers
