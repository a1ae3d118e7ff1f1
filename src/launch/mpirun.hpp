// SPDX-License-Identifier: Apache-2.0
#pragma once
// Starts ranks of this program under mpirun on this machine, for users without a launcher.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ranktune::launch {

/// Set for the ranks, so that the start screen can show the line.
inline constexpr const char* launch_line_variable = "RANKTUNE_LAUNCH_LINE";

/// Set by `ranktune supervise`: a `ranktune run` that starts mpirun then exits with mpirun's code when a rank was
/// killed, so that `supervise` can tell this from a requested stop.
inline constexpr const char* supervised_variable = "RANKTUNE_SUPERVISED";

struct MpirunStart {
    std::string program;                                        ///< absolute path of this executable
    std::vector<std::string> arguments;                         ///< of each rank
    std::uint32_t workers = 1;                                  ///< ranks beside the head
    std::string directory;                                      ///< of the study
    std::vector<std::pair<std::string, std::string>> variables; ///< for the ranks; existing ones are kept
};

struct MpirunEnd {
    int code = 0;          ///< exit code
    int code_in_words = 0; ///< exit code to name in the message
    std::string words;     ///< message; empty: the ranks have printed it
};

/// Runs the ranks and waits for them. Stop signals cause a clean stop; one that insists ends the run at once
/// (SignalRelay). If this process is killed, mpirun ends too. The exit code is taken from the file `outcome`, because
/// launchers change exit codes. `say` receives messages during the run, in whole lines. Throws base::UsageError when
/// mpirun is missing or shared memory is too small.
[[nodiscard]] MpirunEnd run_under_mpirun(const MpirunStart& start,
                                         const std::function<void(const std::string& text)>& say);

} // namespace ranktune::launch
