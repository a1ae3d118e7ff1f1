// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is probably wrong with the command of a study's programs, as far as this machine tells before a trial has
// failed.

#include <string>
#include <vector>

#include "ranktune/study/spec.hpp"
#include "report/text.hpp"

namespace ranktune::cli {

/// Sentences, each with what to do; none where the trials are no programs. A launcher in the command; a program or a
/// script that is not here. A shell's command is looked at for launchers alone: it may change its directory and PATH.
[[nodiscard]] std::vector<std::string> command_warnings(const study::StudySpec& spec);

/// The same as lines of a screen.
[[nodiscard]] std::string command_warning_lines(const study::StudySpec& spec, const report::Style& style);

} // namespace ranktune::cli
