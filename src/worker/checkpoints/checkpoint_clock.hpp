// SPDX-License-Identifier: Apache-2.0
#pragma once
// CheckpointClock: after which iterations a running trial saves its state. A value: time is an argument.

#include <optional>

#include "ranktune/study/spec.hpp"

namespace ranktune::worker {

class CheckpointClock {
  public:
    /// `between_failures`: mean time between failures of the job. The attempt starts from `iteration` and `seconds`
    /// (training time of the trial).
    CheckpointClock(const study::CheckpointSpec& spec, base::Duration between_failures, base::Iteration iteration,
                    double seconds);

    /// Whether to save the state after `iteration`, for which the head answered `verdict`. Stays true until `taken`.
    /// Called once per iteration.
    [[nodiscard]] bool due(base::Iteration iteration, double seconds, const study::Verdict& verdict);
    /// Whether one more checkpoint is cheap: those of this attempt have taken a tenth of its training time so far, or a
    /// few seconds.
    [[nodiscard]] bool affords_more(double seconds) const;
    /// The state at this point was copied.
    void taken(base::Iteration iteration, double seconds);
    /// Cost of the last checkpoint: training time that it stalled, and time until it was written.
    void measured(double stall_s, double writing_s);

    /// Training time between two checkpoints, if time decides. Automatic: sqrt(2 C M), with C the measured stall and M
    /// the mean time between failures (Young, CACM 17(9), 1974), but long enough to spend at most a tenth of it on
    /// writing.
    [[nodiscard]] std::optional<double> interval_s() const;

  private:
    study::CheckpointSpec spec_;
    double between_failures_s_;
    base::Iteration iteration_;
    double seconds_;
    double began_s_;
    double spent_s_ = 0.0;
    bool is_asked_for_ = false; ///< by a verdict since the last checkpoint
    double stall_s_ = 1.0;      ///< until measured: a guess, too high for most trials
    double writing_s_ = 0.0;
};

} // namespace ranktune::worker
