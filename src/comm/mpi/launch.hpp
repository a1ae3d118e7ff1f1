// SPDX-License-Identifier: Apache-2.0
#pragma once
// Detects launchers that this process's MPI does not understand, from the environment and before MPI_Init. Such a
// launcher makes N studies of one rank, or hangs.

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

/// Facts for the message. Only `library` and `speaks_pmi` affect the decision.
struct LaunchFacts {
    Library library = Library::other;
    std::string library_version; ///< "Open MPI 4.1.4"
    std::string program;         ///< path of this executable
    std::string command;         ///< as typed: "ranktune run digits.toml"
    std::string offered;         ///< output of `srun --mpi=list`, "pmix, pmix_v4, pmi2"; empty: not asked
    bool speaks_pmi = true;      ///< false: this library certainly has no PMI-1 or PMI-2 (see mpi::may_speak_pmi)
};

struct BrokenLaunch {
    std::string message; ///< several lines, without "ranktune: " and without a newline at the end
    bool first = true;   ///< this is task 0, which prints the message
    bool by_srun = false;
};

/// Whether this process is task 0 of its launcher; true without a launcher. For messages before MPI_Init that only one
/// task prints.
[[nodiscard]] bool is_first_task(const base::Variables& variables);

/// How many processes this process's launcher has started; nothing: no launcher, or unknown.
[[nodiscard]] std::optional<std::uint32_t> launched_tasks(const base::Variables& variables);

/// Before MPI_Init: finds a launch that is certainly broken. Uncertain cases pass.
[[nodiscard]] std::optional<BrokenLaunch> examine_launch(const base::Variables& variables, const LaunchFacts& facts);

/// After MPI_Init: finds that a launcher started several tasks but the world has size 1.
[[nodiscard]] std::optional<BrokenLaunch> examine_world(const base::Variables& variables, const LaunchFacts& facts,
                                                        int world_size);

/// Parses the output of `srun --mpi=list` into "pmix, pmix_v4, pmi2", without "none" and prose. Understands the formats
/// of Slurm before and since 22.05; empty when nothing is recognised.
[[nodiscard]] std::string offered_interfaces(std::string_view list);

/// Environment variables to set before MPI_Init in this process, without those already set. Where the launcher put more
/// ranks on this node than the node has `cores`, ranks that wait inside MPI must yield; srun and host files do not
/// arrange that. None for rank 0: the head never waits inside MPI.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> settings_before_init(const base::Variables& variables,
                                                                                    Library library, int cores);

/// Bytes of shared memory that `ranks` ranks of Open MPI need on their node to start. Each rank makes a file of the
/// size of a segment (OMPI_MCA_btl_vader_segment_size) if 105 % of that size is free, and fills a small part of it at
/// once.
[[nodiscard]] std::uint64_t shared_memory_needed(const base::Variables& variables, std::uint32_t ranks);

// ---- Whether a job outlives its ranks.

/// In the environment of Open MPI 4: mpirun does not end the job when a rank dies.
inline constexpr const char* recovery_variable = "OMPI_MCA_orte_enable_recovery";
/// The same of Open MPI 5, which `mpirun --with-ft ulfm` sets for its ranks: MPI reports deaths (mpi::reports_deaths).
inline constexpr const char* ulfm_variable = "OMPI_MCA_mpi_ft_enable";
/// Of Intel MPI: mpirun does not end the job when a rank dies.
inline constexpr const char* fault_variable = "I_MPI_FAULT_CONTINUE";
/// The one that this MPI (library_version()) knows; null: it ends the job with a rank.
[[nodiscard]] const char* survival_variable(std::string_view library_version);
/// Whether this job goes on when a worker dies, as far as the environment of its ranks tells.
[[nodiscard]] bool outlives_ranks(const base::Variables& variables, std::string_view library_version);
enum class Starter {
    here,   ///< mpirun, on one machine, with survival_options
    mpirun, ///< with options of the user
    srun
};
/// Options by which mpirun on one machine outlives ranks, unless the user has set that variable.
[[nodiscard]] std::vector<std::string> survival_options(const base::Variables& variables,
                                                        std::string_view library_version);
/// Variables that tell a launcher to go on without ranks and nodes that are lost, unless the user has set them. Open
/// MPI 5 needs an option instead, which would also choose another network: it is left to the user.
[[nodiscard]] base::Variables survival_settings(Starter launcher, const base::Variables& variables,
                                                std::string_view library_version);
/// Whether a launcher that gets them outlives its ranks: the user may have set otherwise.
[[nodiscard]] bool will_outlive_ranks(Starter launcher, const base::Variables& variables,
                                      std::string_view library_version);

} // namespace ranktune::comm::mpi
