// SPDX-License-Identifier: Apache-2.0
#pragma once
// `ranktune run` outside any launcher: it starts mpirun on this machine, passes signals on, and answers with the
// study's exit code.

#include <cstdint>
#include <string>
#include <vector>

#include "cli/verbs.hpp"

namespace ranktune::cli {

/// Set for the ranks, so that the start screen can show the line that was run.
inline constexpr const char* launch_line_variable = "RANKTUNE_LAUNCH_LINE";

/// Set by `ranktune supervise` for what it runs: then a `ranktune run` that starts mpirun ends with mpirun's code when
/// a rank was killed, so that this can be told from a stop that was asked for.
inline constexpr const char* supervised_variable = "RANKTUNE_SUPERVISED";

/// How this process was started.
enum class Launch : std::uint8_t {
    by_launcher, ///< mpirun, mpiexec, srun with PMI: MPI_Init will find the others
    allocation,  ///< inside a Slurm job, but not by a launcher
    by_hand      ///< neither
};
[[nodiscard]] Launch how_launched();
/// Where there is no job: whether this machine belongs to a Slurm cluster. May ask its controller, which takes up to
/// three seconds.
[[nodiscard]] bool is_login_node();
/// Whether this process says what is to be said once: it is not a task beside the first of a launcher.
[[nodiscard]] bool speaks();

/// Hardware threads that this process may use: those of its affinity mask, which `taskset`, a cgroup's cpuset and Slurm
/// narrow. (A quota of CPU time is no part of the mask, and does not count.)
[[nodiscard]] std::uint32_t hardware_threads();

/// Workers that fit here: as many as there are cores for (one core a head costs nearly nothing), a multiple of the
/// largest group, at least one group.
[[nodiscard]] std::uint32_t default_workers(std::uint32_t ranks_per_trial, std::uint32_t cpus_per_rank);

/// How this program was invoked, to be typed again: `ranktune run digits.toml study.num_trials=6`.
[[nodiscard]] std::string command_line(const Invocation& invocation);

/// Runs this program again under mpirun with `workers` workers and waits for it. Signals that end a program are a clean
/// stop; one that insists ends it at once (drivers::SignalRelay); when this process is killed, mpirun ends too. The
/// exit code is what the head has written into the file `outcome` of the study directory, because launchers bend exit
/// codes; a rank that died is said on standard error. Throws base::UsageError when mpirun is not there.
int run_under_mpirun(const Invocation& invocation, std::uint32_t workers, const std::string& outcome_file);

} // namespace ranktune::cli
