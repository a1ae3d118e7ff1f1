// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command that `supervise` runs: its launcher, where `ranktune run` begins in it, and the same line for fewer
// nodes. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ranktune::launch {

enum class Launcher : std::uint8_t {
    none,   ///< `ranktune run ...`: it starts mpirun on this machine itself
    srun,   ///< a Slurm step
    mpirun, ///< mpirun, mpiexec, orterun
    other   ///< a script, for example: run unchanged
};

struct LaunchLine {
    std::vector<std::string> words;
    Launcher launcher = Launcher::other;
    /// Index of PROGRAM in `PROGRAM run STUDY ...`; nothing: the line does not show it.
    std::optional<std::size_t> program;

    /// Whether it is mpirun's line with `--with-ft ulfm`.
    [[nodiscard]] bool has_ulfm() const;
    /// The arguments after `run`.
    [[nodiscard]] std::vector<std::string> run_arguments() const;
};

/// Analyses a command of at least one word.
[[nodiscard]] LaunchLine launch_line(std::vector<std::string> words);

/// Path of the hosts file that the line names, with one host per line: `--hostfile` or `--machinefile` of mpirun; for
/// srun with `--distribution=arbitrary` it is `variable` (SLURM_HOSTFILE). Empty: none.
[[nodiscard]] std::string hosts_file(const LaunchLine& line, const std::string& variable);

/// The nodes of a step.
struct StepNodes {
    std::vector<std::string> all;           ///< of the job, in its order
    std::vector<std::uint32_t> tasks;       ///< per node, as the job got them; may be empty: one each
    std::vector<std::string> gone;          ///< a subset of `all`
    std::vector<std::string> hosts;         ///< lines of the hosts file; empty: none
    std::optional<std::uint32_t> job_tasks; ///< SLURM_NTASKS
};

/// The line for the remaining nodes.
struct ReducedLine {
    std::vector<std::string> words;
    std::vector<std::string> hosts; ///< to be written to `hosts_path`; empty: none
};

/// The line without the lost nodes, with as many tasks as the others have room for. `hosts_path` is where the caller
/// will write the hosts file, if there is one. Its first line is the head's: if that node is lost, the head moves to
/// the first remaining node. Nothing: the line does not show where launcher options end (no `PROGRAM run`), or no node
/// remains.
[[nodiscard]] std::optional<ReducedLine> without_nodes(const LaunchLine& line, const StepNodes& nodes,
                                                       const std::string& hosts_path);

} // namespace ranktune::launch
