// SPDX-License-Identifier: Apache-2.0
#pragma once
// This process's connection to the PMIx server of its node (slurmstepd under `srun --mpi=pmix`), as Open MPI has made
// it.

namespace ranktune::comm::mpi {

/// A duplicate of the socket to the server, which the caller closes; -1: this process is no task of srun with PMIx.
/// Call after MPI_Init.
///
/// Slurm's PMIx server kills the whole step when it loses the connection of a task, whatever srun was told
/// (mpi/pmix/pmixp_client_v2.c, _errhandler). While another process holds a duplicate, it notices nothing.
[[nodiscard]] int connection_to_pmix();

/// Says goodbye to the server without MPI_Finalize, whose fence dead ranks cannot join; waits two seconds at most. Call
/// right before `_exit`.
void leave_pmix() noexcept;

} // namespace ranktune::comm::mpi
