// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs another program and captures its output, with a time limit: for Slurm's commands.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ranktune::process {

/// Why a program has no exit code.
enum class NoExit : std::uint8_t {
    none,            ///< it has one
    no_such_program, ///< not started: no program has this name
    not_started,     ///< for another reason
    timed_out,       ///< killed by us after `patience`: what it did until then is unknown
    killed           ///< by a signal: likewise
};

struct CommandOutput {
    std::optional<int> exit; ///< nothing: `no_exit` says why
    std::string text;        ///< standard output, at most 1 MiB
    std::string error;       ///< last lines of its standard error, or why it failed; empty on success
    NoExit no_exit = NoExit::none;
    [[nodiscard]] bool ok() const { return exit == 0; }
    /// False: it has not run, so it has changed nothing.
    [[nodiscard]] bool started() const { return no_exit != NoExit::no_such_program && no_exit != NoExit::not_started; }
};

/// Runs `words` with this process's environment and an empty standard input, and kills it after `patience`. Blocks.
/// Works in a process with MPI. Never throws.
[[nodiscard]] CommandOutput run_command(const std::vector<std::string>& words, std::chrono::milliseconds patience);

} // namespace ranktune::process
