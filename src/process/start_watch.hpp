// SPDX-License-Identifier: Apache-2.0
#pragma once
// An end to waiting for ranks that will never come.

#include <chrono>
#include <string>

#include "process/background.hpp"

namespace ranktune::process {

/// Seconds that MPI may take to come up; 0: for ever.
inline constexpr const char* start_timeout_variable = "RANKTUNE_START_TIMEOUT";

/// MPI_Init waits for all ranks. One that dies before it has joined (its library is missing on that node, memory ran
/// out, it was killed) is nobody's loss: srun, for one, lets the others wait until the job's time is up; one whose
/// launcher was killed just then waits for ever. While this object lives, a thread of its own counts, and ends the
/// process with exit code 75 when the time is up, or within a second or two of the death of its parent (the launcher,
/// or its daemon on the node), with a word on standard error.
class StartWatch {
  public:
    /// `limit`: zero or less: for ever, while the parent lives. `who`: this process, for people: "a rank on n17".
    StartWatch(std::chrono::milliseconds limit, std::string who);

    /// What the variable says; without it, 5 minutes and 0.1 s for each task. Throws base::UsageError when it is no
    /// number of seconds.
    [[nodiscard]] static std::chrono::seconds limit_from_environment();

  private:
    Background thread_;
};

} // namespace ranktune::process
