// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranks of this program under mpirun on this machine, for whoever has no launcher.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ranktune::launch {

/// Set for the ranks, so that the start screen can show the line that was run.
inline constexpr const char* launch_line_variable = "RANKTUNE_LAUNCH_LINE";

/// Set by `ranktune supervise` for what it runs: then a `ranktune run` that starts mpirun ends with mpirun's code when
/// a rank was killed, so that this can be told from a stop that was asked for.
inline constexpr const char* supervised_variable = "RANKTUNE_SUPERVISED";

struct MpirunStart {
    std::string program;                                        ///< absolute path of this executable
    std::vector<std::string> arguments;                         ///< of each rank
    std::uint32_t workers = 1;                                  ///< ranks beside the head
    std::string directory;                                      ///< of the study
    std::vector<std::pair<std::string, std::string>> variables; ///< for the ranks; what is set already stays
};

struct MpirunEnd {
    int code = 0;          ///< to end with
    int code_in_words = 0; ///< to be named with them
    std::string words;     ///< what to say; empty: the ranks have said it
};

/// Runs the ranks and waits for them. Signals that end a program are a clean stop; one that insists ends it at once
/// (SignalRelay); when this process is killed, mpirun ends too. The exit code is what the head has written into the
/// file `outcome` of the study directory, because launchers bend exit codes. `say` gets what is to be said meanwhile,
/// whole lines. Throws base::UsageError when mpirun is not there, or memory that ranks share is short.
[[nodiscard]] MpirunEnd run_under_mpirun(const MpirunStart& start,
                                         const std::function<void(const std::string& text)>& say);

} // namespace ranktune::launch
