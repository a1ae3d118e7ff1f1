// SPDX-License-Identifier: Apache-2.0
#pragma once
// Median stopping (Golovin et al., "Google Vizier", KDD 2017, section 3.2.2), as in Ray Tune.

#include <cstdint>
#include <vector>

#include "ranktune/schedulers/objective_reader.hpp"
#include "ranktune/schedulers/scheduler.hpp"
#include "schedulers/median_set.hpp"
#include "schedulers/rungs/heap.hpp"

namespace ranktune::schedulers {

/// At iteration t >= grace a trial stops iff its best value so far is strictly worse than the median, over all other
/// trials that have reached t (running, finished, stopped or failed), of the mean of their values over [grace, t], and
/// there are at least min_samples of these. A non-finite value makes a running mean worst from then on.
///
/// For skipped iterations the mean counts as unchanged; iterations that are repeated after a loss are neither counted
/// nor judged again. With hard_stop = false the trial pauses instead; when no new trial can be created, `next` resumes
/// paused trials, lowest id first, and what they report then is neither judged nor counted.
///
///   grace 0, min_samples 1; another trial reported 0, 100, ... 500:   decide(t = 5: 240) -> stop: 250 is better
///
/// Cost per report O(log trials); memory 40 bytes per trial and 8 per counted report (the mean at every iteration is
/// kept, because any later trial is compared with it).
class MedianStopping final : public Scheduler {
  public:
    struct Options {
        double grace = 1.0; ///< >= 0; compared with iterations
        std::uint32_t min_samples = 3;
        bool hard_stop = true;
        base::Iteration ceiling = 1;
    };
    MedianStopping(const Options& options, const study::Objective& objective);

    [[nodiscard]] std::string_view name() const override { return "median"; }
    [[nodiscard]] study::Verdict decide(const Report& report, bool contended) const override;
    [[nodiscard]] Work next(const Pool& pool) const override;
    [[nodiscard]] base::Iteration next_decision_point(base::TrialId trial, base::Iteration current) const override;
    void apply(const study::Record& record) override;
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;
    void check_invariants() const override;
    [[nodiscard]] bool pauses() const override { return !options_.hard_stop; }

  private:
    struct Slot {
        double best;               ///< score; -infinity before the first finite one
        double sum = 0.0;          ///< of the scores counted
        std::uint64_t count = 0;   ///< reports at or after the grace period
        base::Iteration next = 0;  ///< one more than the last iteration reported
        bool paused : 1 = false;   ///< by this rule
        bool released : 1 = false; ///< was paused once; now runs to the end unjudged
        bool closed : 1 = false;
    };
    struct LowerFirst {
        bool operator()(base::TrialId a, base::TrialId b) const { return a < b; }
    };

    [[nodiscard]] const Slot& slot(base::TrialId trial) const;
    [[nodiscard]] Slot& slot(base::TrialId trial);
    [[nodiscard]] static double mean(const Slot& slot);
    [[nodiscard]] double value(double score) const;
    void reported(const study::Reported& record);
    void count(Slot& slot, base::Iteration iteration, double score);
    void promoted(const study::TrialPromoted& record);
    void refresh();

    Options options_;
    study::Mode mode_;
    ObjectiveReader objective_;
    base::Iteration first_;                  ///< the first whole iteration that is not before the grace period
    std::vector<MedianSet> levels_;          ///< position t - first_: running means at t of all trials that reached it
    std::vector<Slot> slots_;                ///< position is the TrialId
    Heap<base::TrialId, LowerFirst> paused_; ///< the top is paused; others may have left
};

} // namespace ranktune::schedulers
