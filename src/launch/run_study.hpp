// SPDX-License-Identifier: Apache-2.0
#pragma once
// run_study: runs one study on the ranks of this MPI job and returns its exit code.

#include "comm/mpi/environment.hpp"
#include "head/run_options.hpp"

namespace ranktune::launch {

/// Call on every rank, after `block_stop_signals` (signals.hpp) and with MPI initialised. Collective. Returns the exit
/// code, the same on all ranks; the caller then destroys the environment. If a peer is dead or a trial does not return,
/// MPI cannot be finalised: the function then flushes the output and calls `_exit` with that code.
///
/// Rank 0 is the head and trains nothing. In a directory with a journal the study continues; a finished one ends at
/// once with its exit code.
int run_study(const comm::mpi::Environment& environment, const head::RunOptions& options);

} // namespace ranktune::launch
