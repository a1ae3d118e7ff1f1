// SPDX-License-Identifier: Apache-2.0
#pragma once
// What another program prints, with a limit on the time it may take: Slurm's answers.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace ranktune::process {

struct CommandOutput {
    std::optional<int> exit; ///< nothing: not started, killed, or not over in time
    std::string text;        ///< standard output, at most 1 MiB
    std::string error;       ///< its last words on standard error, or why there are none; empty when all went well
    [[nodiscard]] bool ok() const { return exit == 0; }
};

/// Runs `words` with this process's environment and an empty standard input, and kills it after `patience`. For
/// threads that may wait; works in a process that has MPI in it. Never throws.
[[nodiscard]] CommandOutput run_command(const std::vector<std::string>& words, std::chrono::milliseconds patience);

} // namespace ranktune::process
