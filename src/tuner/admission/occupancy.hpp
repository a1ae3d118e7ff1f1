// SPDX-License-Identifier: Apache-2.0
#pragma once
// What differs between asynchronous and deterministic studies when trials hold ranks. In a deterministic study, nothing
// that depends on ranks or on time may affect other trials.

#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/study/spec.hpp"
#include "tuner/values/trial_state.hpp"

namespace ranktune::tuner {

class Occupancy {
  public:
    explicit Occupancy(const study::StudySpec& spec)
        : timing_(schedulers::timing_of(spec)), logical_(spec.deterministic) {}

    /// A trial that is told to pause or stop is paused or over with its verdict, not from the end of its attempt on.
    [[nodiscard]] bool ends_with_verdict() const { return timing_.paused_with_verdict; }
    /// A new attempt reports again what it trains again, and counts as unheard.
    [[nodiscard]] bool attempts_count() const { return !logical_; }
    /// A trial at a rung does not go on in place while others wait for ranks.
    [[nodiscard]] bool contention_shows() const { return !logical_; }
    /// A failure that has taken effect is taken back when its host turns out to be at fault.
    [[nodiscard]] bool failures_are_taken_back() const { return !logical_; }
    /// A new trial waits for the suggestion that is being prepared for it, instead of taking a stopgap.
    [[nodiscard]] bool waits_for_tickets() const { return logical_; }
    /// A failure with a cause outside the trial counts against failure.max_losses, not failure.max_failures.
    [[nodiscard]] bool disturbance_is_a_loss() const { return logical_; }
    /// Users may pause, resume and cancel trials, and change keys, whenever they like.
    [[nodiscard]] bool may_be_steered() const { return !logical_; }
    /// Every run of the study decides the same; State::deterministic_until marks where that ends.
    [[nodiscard]] bool decisions_repeat() const { return logical_; }
    /// Whether trial `a` was started no later than trial `b`, as far as other trials can know.
    [[nodiscard]] bool began_before(TrialId a, const TrialState& one, TrialId b, const TrialState& other) const {
        return logical_ ? a < b : one.since <= other.since;
    }
    /// How many trials train at the same time if there are ranks for `fit` groups.
    [[nodiscard]] std::size_t groups(const study::StudySpec& spec, std::size_t fit) const {
        if (logical_) return spec.max_concurrent;
        return spec.max_concurrent == 0 ? fit : std::min<std::size_t>(fit, spec.max_concurrent);
    }

  private:
    schedulers::Timing timing_;
    bool logical_;
};

} // namespace ranktune::tuner
