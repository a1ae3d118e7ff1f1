// SPDX-License-Identifier: Apache-2.0
#pragma once
// Texts made from the command line and the keys: manual pages (roff), completions of shells, the page of the reference.

#include <string>
#include <vector>

#include "cli/manual/command_line.hpp"
#include "ranktune/study/algorithm.hpp"

namespace ranktune::cli {

/// ranktune(1); `version`: for its last line.
[[nodiscard]] std::string program_manual(const CommandLine& line, const std::string& version);
/// ranktune-VERB(1).
[[nodiscard]] std::string verb_manual(const VerbWords& verb, const std::string& version);
/// ranktune-study(5): every key, and the options of these algorithms.
[[nodiscard]] std::string study_manual(const study::Algorithms& algorithms, const std::string& version);

/// Completions; `keys`: of a study file, for overrides.
[[nodiscard]] std::string bash_completion(const CommandLine& line, const std::vector<std::string>& keys);
[[nodiscard]] std::string zsh_completion(const CommandLine& line, const std::vector<std::string>& keys);
[[nodiscard]] std::string fish_completion(const CommandLine& line, const std::vector<std::string>& keys);

/// docs/reference/generated/command-line.md.
[[nodiscard]] std::string command_line_page(const CommandLine& line);

} // namespace ranktune::cli
