// SPDX-License-Identifier: Apache-2.0
#pragma once
// How this process came to be started, and how many ranks fit where it is.

#include <cstdint>

namespace ranktune::launch {

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

} // namespace ranktune::launch
