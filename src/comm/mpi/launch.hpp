// SPDX-License-Identifier: Apache-2.0
#pragma once
// Is this process part of a world, or was it started by a launcher that its MPI does not understand? Judged from the
// environment, as a value, before MPI_Init: a wrong launcher makes N studies of one rank, or hangs.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/mpi/environment.hpp"
#include "ranktune/base/variables.hpp"

namespace ranktune::comm::mpi {

/// What the message names. Only `library` and `speaks_pmi` decide anything.
struct LaunchFacts {
    Library library = Library::other;
    std::string library_version; ///< "Open MPI 4.1.4"
    std::string program;         ///< path of this executable
    std::string command;         ///< as typed: "ranktune run digits.toml"
    std::string offered;         ///< what `srun --mpi=list` offers, "pmix, pmix_v4, pmi2"; empty: not asked
    bool speaks_pmi = true;      ///< false: this library certainly has no PMI-1 or PMI-2 (see mpi::may_speak_pmi)
};

struct BrokenLaunch {
    std::string message; ///< several lines, without "ranktune: " and without a newline at the end
    bool first = true;   ///< this is task 0: the one that prints it
    bool by_srun = false;
};

/// Whether this process is task 0 of whatever launcher started it; true without one. For what is said once, before
/// MPI_Init.
[[nodiscard]] bool is_first_task(const base::Variables& variables);

/// How many processes the launcher of this one has started; nothing: there is none, or it does not say.
[[nodiscard]] std::optional<std::uint32_t> launched_tasks(const base::Variables& variables);

/// Before MPI_Init: a launch that is broken for certain. What cannot be told yet passes.
[[nodiscard]] std::optional<BrokenLaunch> examine_launch(const base::Variables& variables, const LaunchFacts& facts);

/// After MPI_Init, with the size of the world: a launcher started several tasks and this one is alone.
[[nodiscard]] std::optional<BrokenLaunch> examine_world(const base::Variables& variables, const LaunchFacts& facts,
                                                        int world_size);

/// What the output of `srun --mpi=list` offers, as "pmix, pmix_v4, pmi2": without "none" and prose. The forms of Slurm
/// before and since 22.05 are understood; empty when nothing is.
[[nodiscard]] std::string offered_interfaces(std::string_view list);

/// base::Variables to set before MPI_Init in this process (those already set are left out): where the launcher put more
/// ranks on this node than there are `cores` (of the node), ranks that wait inside MPI must give the core away. srun
/// and host files do not see to that. Not for rank 0: the head never waits inside MPI, and naps serve it better.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> settings_before_init(const base::Variables& variables,
                                                                                    Library library, int cores);

/// Bytes of shared memory that so many ranks of Open MPI need on their node to begin: each makes a file of the size of
/// a segment (OMPI_MCA_btl_vader_segment_size) if one and 5 % of it are free, and fills a small part of it at once.
[[nodiscard]] std::uint64_t shared_memory_needed(const base::Variables& variables, std::uint32_t ranks);

} // namespace ranktune::comm::mpi
