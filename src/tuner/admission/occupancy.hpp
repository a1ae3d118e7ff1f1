// SPDX-License-Identifier: Apache-2.0
#pragma once
// Since when a trial counts as paused, and what the others may notice of who holds ranks. In a deterministic study
// nothing that depends on ranks or on time may show.

#include "ranktune/study/spec.hpp"
#include "tuner/values/trial_state.hpp"

namespace ranktune::tuner {

class Occupancy {
  public:
    explicit Occupancy(const study::StudySpec& spec) : logical_(spec.deterministic) {}

    /// A trial that is told to pause or stop is paused or over with its verdict, and the return of its ranks is no
    /// news; otherwise it is so from the end of its attempt on.
    [[nodiscard]] bool ends_with_verdict() const { return logical_; }
    /// A new attempt is a new beginning: what it trains again is reported again, and it has yet to be heard.
    [[nodiscard]] bool attempts_count() const { return !logical_; }
    /// Trials that wait for ranks keep one at a rung from going on in place.
    [[nodiscard]] bool contention_shows() const { return !logical_; }
    /// A failure that has taken effect is taken back when its host turns out to be at fault.
    [[nodiscard]] bool failures_are_taken_back() const { return !logical_; }
    /// A trial whose suggestion is being prepared waits for it, instead of making do with another.
    [[nodiscard]] bool waits_for_tickets() const { return logical_; }
    /// A trial may take over what another one has saved by then.
    [[nodiscard]] bool can_exploit() const { return !logical_; }
    /// What a failure for a cause outside of the trial costs: one of failure.max_losses instead of
    /// failure.max_failures.
    [[nodiscard]] bool disturbance_is_a_loss() const { return logical_; }
    /// Whether a trial was started, as far as the others can know, not after another one.
    [[nodiscard]] bool began_before(TrialId a, const TrialState& one, TrialId b, const TrialState& other) const {
        return logical_ ? a < b : one.since <= other.since;
    }
    /// How many trials train at the same time where `fit` groups have ranks.
    [[nodiscard]] std::size_t groups(const study::StudySpec& spec, std::size_t fit) const {
        if (logical_) return spec.max_concurrent;
        return spec.max_concurrent == 0 ? fit : std::min<std::size_t>(fit, spec.max_concurrent);
    }

  private:
    bool logical_;
};

} // namespace ranktune::tuner
