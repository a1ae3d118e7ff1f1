// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a launcher has outlived its study. srun can wait for ever for a step whose slurmstepd was killed, although
// every task of it is over. Pure: readings of the study's lease in, decision out.

#include <cstdint>
#include <optional>
#include <string>

#include "storage/lease.hpp"

namespace ranktune::drivers {

/// The leases of one step, as they are read one after the other.
class Overdue {
  public:
    /// `wait`: how long a launcher may take after its study; zero: for ever. `before`: the lease when the step started,
    /// left by an earlier head. Time is counted in readings, so a job that was suspended for an hour is not overdue
    /// when it goes on.
    Overdue(base::Duration wait, std::optional<storage::LeaseHolder> before);

    /// Called once per storage::lease_period, with the lease now (nothing: there is none) and whether a head of this
    /// step has written how it ended (it may have come and gone between two readings). True: there was such a head, and
    /// for the whole wait the lease was given back, or not renewed for as long as makes it stale.
    [[nodiscard]] bool next(const std::optional<storage::LeaseHolder>& lease, bool ended);

  private:
    std::uint32_t wait_; ///< readings
    std::optional<storage::LeaseHolder> last_;
    bool held_ = false; ///< by a head of this step
    std::uint32_t gone_ = 0;
    std::uint32_t still_ = 0; ///< readings in a row with the same counter
};

} // namespace ranktune::drivers
