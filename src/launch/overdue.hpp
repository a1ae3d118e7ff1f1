// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a launcher has outlived its study. srun can wait for ever for a step whose slurmstepd was killed, although
// every task of it is over; mpirun (Open MPI 4.1 with PMIx 4.2) can lock itself up when a rank dies in MPI_Init. Pure:
// readings in, decision out.

#include <cstdint>
#include <optional>
#include <string>

#include "storage/journal/lease.hpp"

namespace ranktune::launch {

/// What can be seen of a step.
struct StepReading {
    bool known = true; ///< the study's directory can be seen; when it is away, it says nothing about the study
    std::optional<storage::LeaseHolder> lease; ///< on the study; nothing: there is none
    bool ended = false; ///< a head of this step has written how it ended (and may have come and gone between readings)
    /// The launcher has processes below it; nothing: not known, or its ranks may be elsewhere.
    std::optional<bool> children;
    /// The head is a process of this machine that lives: a disk that hangs keeps it from renewing the lease.
    bool head_lives = false;
};

/// One step.
class Overdue {
  public:
    /// `wait`: how long a launcher may take after its study; zero: for ever. `before`: the lease when the step started,
    /// left by an earlier head. Time is counted in readings, so a job that was suspended for an hour is not overdue
    /// when it goes on.
    /// `start`: how long it may take to start its first process; zero: for ever.
    Overdue(base::Duration wait, std::optional<storage::LeaseHolder> before, base::Duration start = {});

    /// Called once per storage::lease_period. True: there was a head in this step, and for the whole wait the lease was
    /// given back, or not renewed for as long as makes it stale; or the launcher had children, and for the whole wait
    /// had none; or it never had any in all the time that it may take to start one.
    [[nodiscard]] bool next(const StepReading& now);

  private:
    void look_at_lease(const StepReading& now);

    std::uint32_t wait_;  ///< readings
    std::uint32_t start_; ///< readings
    std::optional<storage::LeaseHolder> last_;
    bool held_ = false; ///< by a head of this step
    bool had_children_ = false;
    // Readings in a row: without a lease, with the same counter, without children.
    std::uint32_t gone_ = 0;
    std::uint32_t still_ = 0;
    std::uint32_t childless_ = 0;
};

} // namespace ranktune::launch
