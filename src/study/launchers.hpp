// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds launchers in the command of a program. They are a mistake: ranktune itself starts one process for each rank.

#include <string>

#include "ranktune/study/spec.hpp"

namespace ranktune::study {

/// The name of the first launcher that the command starts ("torchrun", "accelerate launch"): at its beginning, after
/// `env`, `nice` and the like, or, in a shell command, wherever a program starts. Empty: none. The name of a launcher
/// among the arguments of a program does not count.
[[nodiscard]] std::string launcher_in(const ProgramSpec& program);

/// The name of a program without its folders.
[[nodiscard]] std::string program_of(const std::string& word);
/// Whether the program is a Python interpreter: python, python3, python3.11, pypy3.
[[nodiscard]] bool is_python(const std::string& program);

} // namespace ranktune::study
