// SPDX-License-Identifier: Apache-2.0
#pragma once
// CheckpointSchedule: when a running trial saves its state, and what the head hears of it, whatever trains and whoever
// writes.

#include <cstdint>
#include <string>

#include "ranktune/study/spec.hpp"
#include "trial/attempt_port.hpp"
#include "trial/bodies/trial_body.hpp"
#include "trial/checkpoints/checkpoint_clock.hpp"

namespace ranktune::trial {

/// Of one attempt, on one rank. References outlive it.
class CheckpointSchedule {
  public:
    CheckpointSchedule(const study::StudySpec& spec, const Assignment& assignment, AttemptPort& port);

    /// Leader, once after each iteration after which the trial goes on: whether its state should be saved. What is due
    /// stays so until one was taken.
    [[nodiscard]] bool due(const TrialPoint& point, const study::Verdict& verdict) {
        return clock_.due(point.iteration, point.seconds, verdict);
    }
    /// The state at `point` was copied, or is about to be.
    void taken(const TrialPoint& point) { clock_.taken(point.iteration, point.seconds); }
    /// What that cost: training time that it held up, and the time until it was written, or could not be.
    void measured(double stall_s, double writing_s) { clock_.measured(stall_s, writing_s); }
    /// Leader. The checkpoint has its final name, and all ranks agree on it. `value`: the objective at it.
    void saved(study::CheckpointRef checkpoint, std::optional<double> value);
    /// Leader. It could not be written, and training goes on. Said once in the log of the worker: on a full disk there
    /// is one at every interval. The head counts them all.
    void missed(const std::string& why);
    /// The attempt is over: says in the log how often that was.
    void close();

  private:
    AttemptPort& port_;
    base::TrialId trial_;
    CheckpointClock clock_;
    std::uint64_t missed_ = 0;
};

} // namespace ranktune::trial
