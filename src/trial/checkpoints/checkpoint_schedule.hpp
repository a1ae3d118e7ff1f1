// SPDX-License-Identifier: Apache-2.0
#pragma once
// CheckpointSchedule: when a running trial saves its state, and what the head is told about it. Independent of what
// trains and who writes.

#include <cstdint>
#include <string>

#include "ranktune/study/spec.hpp"
#include "trial/attempt_port.hpp"
#include "trial/bodies/trial_body.hpp"
#include "trial/checkpoints/checkpoint_clock.hpp"

namespace ranktune::trial {

/// For one attempt on one rank. References must outlive it.
class CheckpointSchedule {
  public:
    CheckpointSchedule(const study::StudySpec& spec, const Assignment& assignment, AttemptPort& port);

    /// Leader, once after each iteration after which the trial goes on: whether to save the state. Stays true until
    /// `taken`.
    [[nodiscard]] bool due(const TrialPoint& point, const study::Verdict& verdict) {
        return clock_.due(point.iteration, point.seconds, verdict);
    }
    /// The state at `point` was copied, or is about to be.
    void taken(const TrialPoint& point) { clock_.taken(point.iteration, point.seconds); }
    /// Cost of the checkpoint: training time that it stalled, and time until it was written or failed.
    void measured(double stall_s, double writing_s) { clock_.measured(stall_s, writing_s); }
    /// Leader. The checkpoint has its final name, and all ranks agree on it. `value`: its objective.
    void saved(study::CheckpointRef checkpoint, std::optional<double> value);
    /// Leader. A checkpoint could not be written, and training goes on. Logged once, because a full disk fails at every
    /// interval; the head counts them all.
    void missed(const std::string& why);
    /// The attempt is over: logs how many checkpoints were missed.
    void close();

  private:
    AttemptPort& port_;
    base::TrialId trial_;
    CheckpointClock clock_;
    std::uint64_t missed_ = 0;
};

} // namespace ranktune::trial
