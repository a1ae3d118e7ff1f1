// SPDX-License-Identifier: Apache-2.0
#pragma once
// CheckpointClock: after which iterations a running trial saves its state. A value: it is told the time.

#include <optional>

#include "ranktune/study/spec.hpp"

namespace ranktune::trial {

class CheckpointClock {
  public:
    /// `between_failures`: mean time between failures of the job. `iteration` and `seconds` (training time of the
    /// trial) from which the attempt goes on.
    CheckpointClock(const study::CheckpointSpec& spec, base::Duration between_failures, base::Iteration iteration,
                    double seconds);

    /// Whether the state after `iteration` should be saved, after which the head said `verdict`. What is due stays so
    /// until one was taken. Called once for an iteration.
    [[nodiscard]] bool due(base::Iteration iteration, double seconds, const study::Verdict& verdict);
    /// It was taken then.
    void taken(base::Iteration iteration, double seconds);
    /// What the last one cost: training time that it held up, and the time until it was safe.
    void measured(double stall_s, double writing_s);

    /// Training time between two, where time decides. Automatic: sqrt(2 C M), C the measured stall and M the mean time
    /// between failures (Young, CACM 17(9), 1974), but never so short that more than a tenth of it goes to the disk.
    [[nodiscard]] std::optional<double> interval_s() const;

  private:
    study::CheckpointSpec spec_;
    double between_failures_s_;
    base::Iteration iteration_;
    double seconds_;
    bool rung_is_due_ = false; ///< a rung was passed since the last one
    double stall_s_ = 1.0;     ///< before the first is measured: a guess that is too high for most
    double writing_s_ = 0.0;
};

} // namespace ranktune::trial
