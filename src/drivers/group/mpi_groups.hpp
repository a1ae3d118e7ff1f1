// SPDX-License-Identifier: Apache-2.0
#pragma once
// Groups of trials over MPI communicators.

#include "comm/groups/group_factory.hpp"
#include "drivers/group/attempt.hpp"

namespace ranktune::drivers {

/// `factory` outlives the result.
[[nodiscard]] FormGroup make_mpi_groups(comm::GroupFactory& factory);

} // namespace ranktune::drivers
