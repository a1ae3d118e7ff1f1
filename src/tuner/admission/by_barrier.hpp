// SPDX-License-Identifier: Apache-2.0
#pragma once
// Asynchronous mode with a synchronous scheduler: reports at a barrier take effect when all trials have got there.

#include <map>
#include <set>
#include <utility>

#include "ranktune/schedulers/scheduler.hpp"
#include "tuner/admission/by_arrival.hpp"

namespace ranktune::tuner {

/// A report at an iteration that the scheduler calls a barrier is held (ReportHeld). When no trial is on its way to the
/// barrier any more, the held reports take effect, in the order that the scheduler says. Everything else takes effect
/// as it arrives.
///
/// The barrier waits for trials that train or can be started. It does not wait for one that has failed or ended, that
/// wants more ranks than there are, or whose ranks were lost on its way: that one reports late, is judged at once, and
/// is waited for again at the next barrier.
///
/// A trial whose report is held keeps its ranks while nobody else can use them, and else is asked for them
/// (YieldAsked): it saves its state and pauses. So all trials get to the barrier on any number of ranks.
class ByBarrier final : public ByArrival {
  public:
    /// All must outlive it.
    ByBarrier(const Trials& trials, const Placement& placement, const schedulers::Scheduler& scheduler)
        : ByArrival(trials), placement_(placement), scheduler_(scheduler) {}

    [[nodiscard]] Standing standing(TrialId trial, Iteration iteration) const override;
    [[nodiscard]] std::optional<Fact> next() const override;
    [[nodiscard]] const std::deque<study::ReportHeld>* held(TrialId trial) const override;
    [[nodiscard]] bool at_barrier(TrialId trial) const override { return held_.contains(trial); }

    /// A new trial comes to the barrier, too: the first groups that wait there make room for it.
    [[nodiscard]] Room room() const override;
    [[nodiscard]] bool is_parked(TrialId trial) const override { return parked_.contains(trial); }
    [[nodiscard]] std::optional<TrialId> to_yield(std::optional<TrialId> before, std::uint32_t wanted,
                                                  std::uint32_t free) const override;
    [[nodiscard]] std::optional<TrialId> surplus(std::uint32_t free, bool full) const override;
    [[nodiscard]] bool is_leaving(TrialId trial) const override { return leaving_.contains(trial); }

    void apply(const study::Record& record) override;
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;
    void check_invariants() const override;

  private:
    enum class Drain : std::uint8_t { no, resumable, for_good };
    /// Where a trial stands; each trial is in one of the sets below at most.
    enum class Place : std::uint8_t { none, trains, in_line, parked };

    [[nodiscard]] Place place_of(TrialId trial) const;
    /// Nobody is on the way to the barrier.
    [[nodiscard]] bool is_complete() const;
    /// It wants no more ranks than there are.
    [[nodiscard]] bool can_start(TrialId trial) const;
    [[nodiscard]] std::optional<TrialId> last_parked() const;
    void admit(const study::Reported& report);
    void lose(const study::AttemptEnded& record);
    void release(TrialId trial);
    void set_leaving(TrialId trial, bool leaves);
    void refresh(TrialId trial);
    void refresh_all();

    const Placement& placement_;
    const schedulers::Scheduler& scheduler_;
    std::map<TrialId, std::deque<study::ReportHeld>> held_; ///< one report each
    std::set<TrialId> leaving_;                             ///< asked for their ranks, or winding down
    std::set<TrialId> absent_; ///< lost on the way to the barrier, which does not wait for them
    Iteration released_ = 0;   ///< newest barrier whose reports take effect
    Drain drain_ = Drain::no;
    // Derived.
    std::set<std::pair<Iteration, TrialId>> order_; ///< of `held_`
    std::set<TrialId> training_;                    ///< on their way to a barrier, with ranks
    std::set<TrialId> line_;                        ///< without ranks
    std::set<TrialId> parked_;                      ///< whose report is held, with ranks
    std::uint32_t returning_ = 0;                   ///< ranks of `leaving_`
};

} // namespace ranktune::tuner
