// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs another program and captures its output, with a time limit: for Slurm's commands.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace ranktune::process {

struct CommandOutput {
    std::optional<int> exit; ///< nothing: not started, killed, or timed out
    std::string text;        ///< standard output, at most 1 MiB
    std::string error;       ///< last lines of its standard error, or why it failed; empty on success
    [[nodiscard]] bool ok() const { return exit == 0; }
};

/// Runs `words` with this process's environment and an empty standard input, and kills it after `patience`. Blocks.
/// Works in a process with MPI. Never throws.
[[nodiscard]] CommandOutput run_command(const std::vector<std::string>& words, std::chrono::milliseconds patience);

} // namespace ranktune::process
