// SPDX-License-Identifier: Apache-2.0
#pragma once
// Groups of trials over MPI communicators.

#include "comm/groups/group_factory.hpp"
#include "ddp/gradients/device_groups.hpp"
#include "trial/attempt.hpp"

namespace ranktune::group {

/// `factory` and `devices`, in whose groups gradients on GPUs are summed, outlive the result.
[[nodiscard]] trial::FormGroup make_mpi_groups(comm::GroupFactory& factory, ddp::DeviceGroups& devices);

} // namespace ranktune::group
