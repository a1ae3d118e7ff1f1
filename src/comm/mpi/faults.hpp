// SPDX-License-Identifier: Apache-2.0
#pragma once
// User-Level Failure Mitigation (Bland et al., IJHPCA 27(3), 2013), where the MPI has it: Open MPI from version 5 on,
// under `mpirun --with-ft ulfm`. In any other MPI nothing is reported, and no communicator is ever damaged.

#include <mpi.h>

namespace ranktune::comm::mpi {

/// Whether this MPI ends operations with a rank that has died by an error. In others they stay pending for ever. It
/// then refuses MPI_Comm_create_group on communicators with a dead rank. The same on all ranks. After MPI_Init.
[[nodiscard]] bool reports_deaths();

/// Lets messages from any source come, although a rank of `communicator` has died. False: there is nothing to do.
bool acknowledge_deaths(MPI_Comm communicator);

/// Takes in what the MPI has heard of deaths, which it does in calls alone. Local.
void look_for_deaths();

/// A rank of `communicator` is known to have died, or another rank has begun to replace it. Local.
[[nodiscard]] bool is_damaged(MPI_Comm communicator);

/// Makes a communicator of the living ranks of a damaged one, and lets those that do not know of the damage know.
/// Collective over the living; blocks until they come. Returns an error code of MPI.
[[nodiscard]] int shrink(MPI_Comm communicator, MPI_Comm* living);

} // namespace ranktune::comm::mpi
