// SPDX-License-Identifier: Apache-2.0
#pragma once
// Asynchronous mode: facts take effect as they arrive.

#include "tuner/admission/admission.hpp"

namespace ranktune::tuner {

class ByArrival : public Admission {
  public:
    /// `trials` must outlive it.
    explicit ByArrival(const Trials& trials) : trials_(trials) {}

    [[nodiscard]] Standing standing(TrialId trial, Iteration iteration) const override {
        return iteration > trials_[trial].attempt.iteration ? Standing::next : Standing::foreign;
    }
    [[nodiscard]] std::optional<Fact> next() const override;
    [[nodiscard]] Iteration received(TrialId trial) const override { return trials_[trial].attempt.iteration; }
    [[nodiscard]] Iteration admitted(TrialId trial) const override { return trials_[trial].attempt.iteration; }
    [[nodiscard]] const std::deque<study::ReportHeld>* held(TrialId) const override { return nullptr; }

    [[nodiscard]] bool has_ended(TrialId trial) const override;

    [[nodiscard]] Room room() const override { return ends_.empty() ? Room::by_ranks : Room::none; }
    [[nodiscard]] bool any_active() const override;
    void visit_line(const std::function<bool(TrialId)>& visit) const override;
    [[nodiscard]] bool wants_ranks(TrialId trial) const override {
        return trials_.waiting().contains(trial) && !has_ended(trial);
    }
    [[nodiscard]] bool is_parked(TrialId) const override { return false; }
    [[nodiscard]] bool keeps_the_line() const override { return false; }
    [[nodiscard]] std::optional<TrialId> to_yield(std::optional<TrialId>, std::uint32_t, std::uint32_t) const override {
        return {};
    }
    [[nodiscard]] bool is_leaving(TrialId trial) const override { return winds_down(trials_[trial]); }
    [[nodiscard]] bool began_before(TrialId a, TrialId b) const override {
        return trials_[a].attempt.since <= trials_[b].attempt.since;
    }

    void apply(const study::Record& record) override;
    void end(EndFact fact) override { ends_.push_back(std::move(fact)); }
    void snapshot(study::Encoder&) const override {} // between two steps every end has taken effect
    void restore(study::Decoder&) override { ends_.clear(); }
    void check_invariants() const override;

  protected:
    const Trials& trials_;
    std::vector<EndFact> ends_; ///< of this step

  private:
    void forget(TrialId trial);
};

} // namespace ranktune::tuner
