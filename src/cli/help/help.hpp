// SPDX-License-Identifier: Apache-2.0
#pragma once
// The help as text of 80 columns, and the command line as a value, from the definitions of CLI11.

#include <memory>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/manual/command_line.hpp"

namespace ranktune::cli {

/// Formats the help of a program and of its verbs: verbs under their groups, at most 80 columns.
[[nodiscard]] std::shared_ptr<CLI::FormatterBase> help_formatter();

/// Verbs that have a group, in the order in which they were added.
[[nodiscard]] std::vector<const CLI::App*> listed_verbs(const CLI::App& app);

[[nodiscard]] CommandLine command_line_of(const CLI::App& app);

} // namespace ranktune::cli
