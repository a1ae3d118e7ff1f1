// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command that `supervise` runs, as words: which launcher it is, where `ranktune run` begins in it, and the same
// line for fewer nodes. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ranktune::launch {

enum class Launcher : std::uint8_t {
    none,   ///< `ranktune run ...`: it starts mpirun on this machine itself
    srun,   ///< a step of Slurm
    mpirun, ///< mpirun, mpiexec, orterun
    other   ///< a script or the like: run as it is
};

struct LaunchLine {
    std::vector<std::string> words;
    Launcher launcher = Launcher::other;
    /// Position of the program in `PROGRAM run STUDY ...`; nothing: the line does not show it.
    std::optional<std::size_t> program;

    /// What follows `run`.
    [[nodiscard]] std::vector<std::string> run_arguments() const;
};

/// Looks at a command. Requires a word at least.
[[nodiscard]] LaunchLine launch_line(std::vector<std::string> words);

/// The path of the list of hosts that the line names, one host a line (`--hostfile`, `--machinefile` of mpirun; of srun
/// it is SLURM_HOSTFILE with `--distribution=arbitrary`, which is given as `variable`). Empty: none.
[[nodiscard]] std::string hosts_file(const LaunchLine& line, const std::string& variable);

/// What a step was started on.
struct StepNodes {
    std::vector<std::string> all;           ///< of the job, in its order
    std::vector<std::uint32_t> tasks;       ///< by node, as the job was given them; may be empty: one each
    std::vector<std::string> gone;          ///< a part of `all`
    std::vector<std::string> hosts;         ///< lines of the list of hosts; empty: there is none
    std::optional<std::uint32_t> job_tasks; ///< SLURM_NTASKS
};

/// The line for the nodes that are left.
struct ReducedLine {
    std::vector<std::string> words;
    std::vector<std::string> hosts; ///< to be written to `hosts_path`; empty: there is none
};

/// The line without the nodes that are gone; as many tasks as they leave room for. `hosts_path` is where the caller
/// will write the list of hosts, if there is one. The first line of such a list is the head's: when its node is gone,
/// the head goes on top of the first node that is left. Nothing: the line does not show where launcher options end (no
/// `PROGRAM run`), or no node is left.
[[nodiscard]] std::optional<ReducedLine> without_nodes(const LaunchLine& line, const StepNodes& nodes,
                                                       const std::string& hosts_path);

} // namespace ranktune::launch
