// SPDX-License-Identifier: Apache-2.0
#pragma once
// StartWatch: a time limit for MPI_Init.

#include <chrono>
#include <string>

#include "process/background.hpp"

namespace ranktune::process {

/// Limit in seconds for the start of MPI; 0: no limit.
inline constexpr const char* start_timeout_variable = "RANKTUNE_START_TIMEOUT";

/// Writes the text to standard error and ends this process with exit code 75. Any thread.
[[noreturn]] void give_up_start(const std::string& text);

/// MPI_Init waits for all ranks. When a rank dies before it has joined (a library missing on its node, out of memory,
/// killed), nobody notices: srun lets the others wait until the job's time limit, and ranks whose launcher was killed
/// wait for ever. While this object exists, a thread ends the process with exit code 75 and a message on standard error
/// when the limit is reached, or within two seconds after its parent (the launcher, or its daemon on the node) or,
/// under mpirun, another rank of its node died.
class StartWatch {
  public:
    /// `limit`: zero or less: no limit while the parent lives. `who`: names this process in the message: "a rank on
    /// n17".
    StartWatch(std::chrono::milliseconds limit, std::string who);

    /// The variable's value; without it 5 minutes plus 0.1 s per task. Throws base::UsageError when it is not a number
    /// of seconds.
    [[nodiscard]] static std::chrono::seconds limit_from_environment();

  private:
    Background thread_;
};

} // namespace ranktune::process
