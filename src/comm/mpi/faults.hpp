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

/// Lets the MPI process news of deaths: it does so only inside of calls. Local.
void look_for_deaths();

/// How many ranks of `communicator` have died, as far as this rank has heard. Local.
[[nodiscard]] int dead_in(MPI_Comm communicator);
/// Another rank has called `shrink` for it, as far as this rank has heard. Local.
[[nodiscard]] bool is_revoked(MPI_Comm communicator);

/// Makes a communicator of the living ranks. Pending operations on the old one end with an error. Requires
/// dead_in(communicator) > 0: Open MPI (5.0.11) crashes when it hears of a death while it makes a communicator.
/// Collective over the living; blocks until they come. Returns an error code of MPI.
[[nodiscard]] int shrink(MPI_Comm communicator, MPI_Comm* living);
/// Whether a thread of this process is in `shrink`. A crash then is a fault of MPI, not of user code.
/// Async-signal-safe.
[[nodiscard]] bool is_shrinking() noexcept;

} // namespace ranktune::comm::mpi
