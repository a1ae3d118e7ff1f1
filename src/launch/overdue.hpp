// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a launcher has outlived its study. srun can wait for ever for a step whose slurmstepd was killed, although
// all its tasks have ended; mpirun (Open MPI 4.1 with PMIx 4.2) can deadlock when a rank dies in MPI_Init, and does not
// return after a rank has died on another node. Pure: readings in, decision out.

#include <cstdint>
#include <optional>
#include <string>

#include "storage/journal/lease.hpp"

namespace ranktune::launch {

/// What can be observed of a step.
struct StepReading {
    bool known = true;                         ///< the study directory is visible; otherwise the lease is unknown
    std::optional<storage::LeaseHolder> lease; ///< the lease of the study, if any
    bool ended = false; ///< a head of this step has written its outcome (it may have come and gone between readings)
    /// Whether the launcher has child processes; nothing: unknown, or its ranks may be elsewhere.
    std::optional<bool> children;
    /// The head is a living process of this machine: a hanging disk keeps it from renewing the lease.
    bool head_lives = false;
};

/// For one step.
class Overdue {
  public:
    /// `wait`: how long a launcher may outlive its study; zero: for ever. `before`: the lease when the step started,
    /// left by an earlier head. Time is counted in readings, so that a job that was suspended for an hour is not
    /// overdue. `start`: how long it may take to start its first process; zero: for ever. `after_end`: how long it may
    /// outlive a head that has written its outcome; zero: as long as `wait`.
    Overdue(base::Duration wait, std::optional<storage::LeaseHolder> before, base::Duration start = {},
            base::Duration after_end = {});

    /// Called once per storage::lease_period. True: there was a head in this step, and for the whole wait the lease was
    /// released, or not renewed until it was stale; or the launcher had children, and for the whole wait had none; or
    /// it had none within `start`.
    [[nodiscard]] bool next(const StepReading& now);

  private:
    void look_at_lease(const StepReading& now);

    std::uint32_t wait_;      ///< readings
    std::uint32_t start_;     ///< readings
    std::uint32_t after_end_; ///< readings
    std::optional<storage::LeaseHolder> last_;
    bool held_ = false; ///< a head of this step held the lease
    bool had_children_ = false;
    // Readings in a row: without a lease, with the same counter, without children.
    std::uint32_t gone_ = 0;
    std::uint32_t still_ = 0;
    std::uint32_t childless_ = 0;
};

} // namespace ranktune::launch
