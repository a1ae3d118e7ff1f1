// SPDX-License-Identifier: Apache-2.0
#pragma once
// The verbs whose text comes from the program's own tables.

#include <string>

#include "cli/manual/command_line.hpp"

namespace ranktune::cli {

/// Prints the keys of a study file: those of a table, one key, or, for an empty name, all.
int keys(const std::string& name);
/// Writes what is made from the tables of this program into `folder`; `kind`: "pages" (docs/reference/generated), "man"
/// or "completions".
int reference(const std::string& kind, const std::string& folder, const CommandLine& line);

} // namespace ranktune::cli
