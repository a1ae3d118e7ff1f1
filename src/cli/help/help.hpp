// SPDX-License-Identifier: Apache-2.0
#pragma once
// The help as text of 80 columns, and the command line as a value, from the definitions of CLI11.

#include <memory>

#include <CLI/CLI.hpp>

#include "cli/manual/command_line.hpp"

namespace ranktune::cli {

/// Formats the help of a program and of its verbs: verbs by group (verb_list.hpp), at most 80 columns.
[[nodiscard]] std::shared_ptr<CLI::FormatterBase> help_formatter();

/// Gives verbs without a footer their example (verb_list.hpp).
void add_examples(CLI::App& app);

[[nodiscard]] CommandLine command_line_of(const CLI::App& app);

} // namespace ranktune::cli
