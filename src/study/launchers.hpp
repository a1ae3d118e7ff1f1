// SPDX-License-Identifier: Apache-2.0
#pragma once
// Launchers in the command of a program: ranktune is the launcher, and starts one process for each rank itself.

#include <string>

#include "ranktune/study/spec.hpp"

namespace ranktune::study {

/// The name of the first launcher that the command starts ("torchrun", "accelerate launch"): at its beginning, after
/// `env`, `nice` and the like, or, in the command of a shell, wherever a program stands. Empty: it starts none.
/// A launcher's name among the arguments of a program does not count.
[[nodiscard]] std::string launcher_in(const ProgramSpec& program);

/// The name of a program without its folders.
[[nodiscard]] std::string program_of(const std::string& word);
/// Whether it is a Python: python, python3, python3.11, pypy3.
[[nodiscard]] bool is_python(const std::string& program);

} // namespace ranktune::study
