// SPDX-License-Identifier: Apache-2.0
#pragma once
// run_study: one study on the ranks of this MPI job, from its first message to its exit code.

#include "comm/mpi/environment.hpp"
#include "head/run_options.hpp"

namespace ranktune::run {

/// Call it on every rank, after `block_stop_signals` (signals.hpp) and with MPI initialised. Collective. Returns the
/// exit code, the same on all ranks; the caller then destroys the environment. With a dead peer, or a trial that does
/// not return, MPI cannot be finalised: the function does not return then but flushes the output and calls `_exit` with
/// that code.
///
/// Rank 0 is the head and trains nothing. In a directory with a journal the study goes on where it was; a finished one
/// ends at once with the exit code that it had.
int run_study(const comm::mpi::Environment& environment, const head::RunOptions& options);

} // namespace ranktune::run
