// SPDX-License-Identifier: Apache-2.0
#pragma once
// CheckpointSchedule: when a running trial saves its state, and what the head is told about it. Independent of what
// trains and who writes.

#include <cstdint>
#include <string>

#include "ranktune/study/spec.hpp"
#include "worker/bodies/trial_body.hpp"
#include "worker/checkpoints/checkpoint_clock.hpp"
#include "worker/trial/attempt_port.hpp"

namespace ranktune::worker {

/// For one attempt on one rank. References must outlive it.
class CheckpointSchedule {
  public:
    CheckpointSchedule(const study::StudySpec& spec, const Assignment& assignment, AttemptPort& port);

    /// Leader, once after each iteration after which the trial goes on: whether to save the state. Stays true until
    /// `taken`.
    [[nodiscard]] bool due(const TrialPoint& point, const study::Verdict& verdict) {
        return clock_.due(point.iteration, point.seconds, verdict);
    }
    /// Leader, once after each iteration: whether its state is worth a checkpoint of its own, because its value is the
    /// best of the study so far, as far as this trial knows, and checkpoints have cost little. Only this iteration has
    /// these weights: saving may wait for the checkpoint before.
    [[nodiscard]] bool is_best(const TrialPoint& point);
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
    study::Mode mode_;
    bool keeps_best_;
    std::optional<double> to_beat_; ///< StartTrial::to_beat, then what this attempt has reported
    std::uint64_t missed_ = 0;
};

} // namespace ranktune::worker
