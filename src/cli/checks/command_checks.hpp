// SPDX-License-Identifier: Apache-2.0
#pragma once
// Likely mistakes in the command of a study of programs, found on this machine before any trial fails.

#include <string>
#include <vector>

#include "ranktune/study/spec.hpp"
#include "report/screens/text.hpp"

namespace ranktune::cli {

/// One sentence per mistake, with its remedy: a launcher in the command, or a program or script that does not exist
/// here. Empty when the trials are not programs. A shell command is checked only for launchers: it may change its
/// directory and PATH.
[[nodiscard]] std::vector<std::string> command_warnings(const study::StudySpec& spec);

/// The same warnings as lines of a screen.
[[nodiscard]] std::string command_warning_lines(const study::StudySpec& spec, const report::Style& style);

} // namespace ranktune::cli
