// SPDX-License-Identifier: Apache-2.0
#pragma once
// AttemptPort: what an attempt says to the head, and hears from it, through the service thread of its rank.

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "trial/runner.hpp"

namespace ranktune::trial {

/// Called on the trial thread. What is said to the head is the leader's to say.
class AttemptPort {
  public:
    virtual ~AttemptPort() = default;
    /// Leader only. Waits while what was reported before is still on its way, at most until the trial has to give up.
    virtual void reported(RunnerReported report) = 0;
    /// Leader only.
    virtual void saved(study::CheckpointRef checkpoint) = 0;
    /// Leader only: a checkpoint could not be written; training goes on.
    virtual void unsaved(std::string why) = 0;
    /// Leader only: what the trial does after `iteration`. Waits for the head when a decision point is reached; throws
    /// ddp::Aborted when the trial has to give up.
    [[nodiscard]] virtual study::Verdict verdict_after(base::Iteration iteration) = 0;
    /// The same without waiting longer than `patience`: nothing when the head has not answered by then.
    [[nodiscard]] virtual std::optional<study::Verdict> verdict_within(base::Iteration iteration,
                                                                       std::chrono::milliseconds patience) = 0;
    /// User code made progress.
    virtual void progressed() noexcept = 0;
    /// From now on, user code waits for the head, itself or through its leader; or no longer.
    virtual void waits(bool waits) noexcept = 0;
    /// Set when the trial has to give up; every wait of the group looks at it.
    [[nodiscard]] virtual const std::atomic<bool>& abort_flag() const = 0;
    /// One line of the trainable's for the log.
    virtual void log(base::TrialId trial, std::string_view line) = 0;
};

/// While it lives, user code waits for the head, itself or through its leader.
class Waiting {
  public:
    explicit Waiting(AttemptPort& port) : port_(port) { port_.waits(true); }
    ~Waiting() { port_.waits(false); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

  private:
    AttemptPort& port_;
};

} // namespace ranktune::trial
