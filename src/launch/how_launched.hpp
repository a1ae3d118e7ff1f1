// SPDX-License-Identifier: Apache-2.0
#pragma once
// How this process was started, and how many ranks fit on this machine.

#include <cstdint>

#include "ranktune/study/spec.hpp"

namespace ranktune::launch {

/// How this process was started.
enum class Launch : std::uint8_t {
    by_launcher, ///< mpirun, mpiexec, srun with PMI: MPI_Init will find the others
    allocation,  ///< inside a Slurm job, but not by a launcher
    by_hand      ///< neither of these
};
[[nodiscard]] Launch how_launched();
/// For a process outside any job: whether this machine belongs to a Slurm cluster. May ask its controller, for up to
/// three seconds.
[[nodiscard]] bool is_login_node();
/// Whether this process prints messages that should appear once: all processes do, except a launcher's tasks after the
/// first.
[[nodiscard]] bool speaks();

/// Hardware threads in this process's affinity mask, which `taskset`, cpusets and Slurm restrict. (CPU time quotas are
/// not part of the mask and are ignored.)
[[nodiscard]] std::uint32_t hardware_threads();

/// The most workers that this machine should be asked to start: 4 for each hardware thread (16 on small machines), and
/// 64 MiB of memory for each. More would take the machine down before the first trial.
[[nodiscard]] std::uint32_t most_workers();

/// Workers that fit here: one per cpus_per_rank hardware threads (the head needs next to nothing) and within
/// most_workers(), rounded down to a multiple of the largest group, at least one group; beside it those of run.spares.
[[nodiscard]] std::uint32_t default_workers(const study::StudySpec& spec);

} // namespace ranktune::launch
