// SPDX-License-Identifier: Apache-2.0
#pragma once
// Groups of trials over MPI communicators.

#include "comm/groups/group_factory.hpp"
#include "trial/attempt.hpp"

namespace ranktune::group {

/// `factory` outlives the result.
[[nodiscard]] trial::FormGroup make_mpi_groups(comm::GroupFactory& factory);

} // namespace ranktune::group
