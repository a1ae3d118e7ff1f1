// SPDX-License-Identifier: Apache-2.0
#pragma once
// Launchers in the command of a program: ranktune is the launcher, and starts one process for each rank itself.

#include <cstdint>
#include <optional>
#include <string>

#include "ranktune/study/spec.hpp"

namespace ranktune::study {

struct ForeignLauncher {
    std::string name;                   ///< as it is called: "torchrun", "accelerate launch"
    std::string command;                ///< what to write instead; empty: not known
    std::optional<std::uint32_t> ranks; ///< processes that it was told to start
};

/// The first launcher that the command starts: in front of everything, behind `env`, `nice` and the like, or, in the
/// command of a shell, wherever a program stands. A launcher's name among the arguments of a program is none.
[[nodiscard]] std::optional<ForeignLauncher> launcher_in(const ProgramSpec& program);

/// The name of a program without its folders.
[[nodiscard]] std::string program_of(const std::string& word);
/// Whether it is a Python: python, python3, python3.11, pypy3.
[[nodiscard]] bool is_python(const std::string& program);

} // namespace ranktune::study
