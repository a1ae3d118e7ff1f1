// SPDX-License-Identifier: Apache-2.0
#pragma once
// Deterministic mode: facts are kept until their turn and take effect in the one order that the study file determines,
// for any number of ranks and any timing (docs/developer/determinism.md).

#include <set>

#include "ranktune/schedulers/scheduler.hpp"
#include "tuner/admission/admission.hpp"
#include "tuner/admission/logical.hpp"

namespace ranktune::tuner {

class ByTurn final : public Admission {
  public:
    /// `trials` and `scheduler` must outlive it.
    ByTurn(const study::StudySpec& spec, Trials& trials, const schedulers::Scheduler& scheduler)
        : trials_(trials), scheduler_(scheduler), time_(spec.max_concurrent) {}

    [[nodiscard]] Standing standing(TrialId trial, Iteration iteration) const override;
    [[nodiscard]] std::optional<Fact> next() const override;
    [[nodiscard]] Iteration received(TrialId trial) const override;
    [[nodiscard]] Iteration admitted(TrialId trial) const override { return trials_[trial].iteration; }
    [[nodiscard]] const std::deque<study::ReportHeld>* held(TrialId trial) const override;

    /// Its held report is of an iteration whose state it failed to save.
    [[nodiscard]] bool has_ended(TrialId trial) const override;

    [[nodiscard]] Room room() const override { return time_.has_empty_slot() ? Room::one : Room::none; }
    [[nodiscard]] bool any_active() const override { return time_.any_busy(); }
    void visit_line(const std::function<bool(TrialId)>& visit) const override;
    [[nodiscard]] bool wants_ranks(TrialId trial) const override;
    [[nodiscard]] bool is_parked(TrialId trial) const override;
    [[nodiscard]] bool keeps_the_line() const override { return true; }
    /// Groups that wait for their turn, the latest first, save their state and give their ranks back. (Groups that
    /// still train are not asked: their work is never wasted, and saving a state costs time.)
    [[nodiscard]] std::optional<TrialId> to_yield(std::optional<TrialId> before, std::uint32_t wanted,
                                                  std::uint32_t free) const override;
    /// A group that has yet to save its state of this iteration does so when it gives its ranks back.
    [[nodiscard]] std::optional<TrialId> surplus(std::uint32_t free, bool full) const override;
    [[nodiscard]] bool is_leaving(TrialId trial) const override { return leaving_.contains(trial); }

    [[nodiscard]] bool decisions_repeat() const override { return true; }
    [[nodiscard]] bool attempts_count() const override { return false; }
    [[nodiscard]] bool contention_shows() const override { return false; }
    [[nodiscard]] bool failures_are_taken_back() const override { return false; }
    [[nodiscard]] bool charges_paused() const override { return false; }
    [[nodiscard]] bool disturbance_is_a_loss() const override { return true; }
    [[nodiscard]] bool waits_for_tickets() const override { return true; }
    [[nodiscard]] bool may_be_steered() const override { return false; }
    [[nodiscard]] bool began_before(TrialId a, TrialId b) const override { return a < b; }

    void apply(const study::Record& record) override;
    void end(EndFact fact) override;
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;
    void check_invariants() const override;

  private:
    void admit(const study::Reported& report);
    void keep(const study::ReportHeld& report);
    void forget_failure(TrialId id);
    void enter_slot(TrialId id);
    void leave_slot(TrialId id);
    void set_leaving(TrialId id, bool leaves);
    void refresh(TrialId id);
    [[nodiscard]] const LogicalSlot* slot_of(TrialId id) const;
    /// The verdict on its newest report has to wait until its state of that iteration is saved.
    [[nodiscard]] bool has_to_save(TrialId id) const;

    Trials& trials_; ///< this class maintains their `slot`
    const schedulers::Scheduler& scheduler_;
    LogicalTime time_;
    bool draining_ = false;     ///< nothing takes effect until the next incarnation
    std::set<TrialId> leaving_; ///< hold ranks that will come back by themselves: winding down, or asked to yield
    // Derived.
    std::set<TrialId> unslotted_; ///< reopened trials that wait for a slot
    std::set<TrialId> unsaved_;   ///< parked, and have to save
    std::uint32_t returning_ = 0; ///< ranks of `leaving_`
};

} // namespace ranktune::tuner
