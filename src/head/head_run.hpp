// SPDX-License-Identifier: Apache-2.0
#pragma once
// The head's life around its loop: directory, journal, core, and the files at the end.

#include <string>

#include "comm/transport/transport.hpp"
#include "head/run_options.hpp"
#include "process/signals.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::head {

struct HeadRunEnd {
    study::StudyOutcome outcome = study::StudyOutcome::ok;
    bool clean = true; ///< every worker has left: MPI may be finalised
};

/// Runs a study, new or continued, as rank 0 of `transport`, tells all workers to leave whatever happens, and calls
/// options.on_end. Never throws: errors are in the outcome, in the file `outcome` and in RunEnd::message. `signals` may
/// be null. `mpi` names the MPI library for env.json.
[[nodiscard]] HeadRunEnd run_head(comm::Transport& transport, process::SignalReader* signals, const RunOptions& options,
                                  const std::string& mpi);

/// Tells every worker to leave and flushes the messages, for at most two seconds. `clean`: nothing has begun, so MPI
/// may be finalised.
void send_all_away(comm::Transport& transport, study::StudyOutcome outcome, const std::string& message,
                   bool clean = true);

} // namespace ranktune::head
