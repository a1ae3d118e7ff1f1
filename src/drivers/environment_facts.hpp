// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a start of a study ran on: for env.json, the log and the support desk. No secrets: Slurm's variables but those
// whose names speak of one, and an allow-list of others.

#include <cstdint>
#include <string>
#include <vector>

#include "ranktune/base/variables.hpp"

namespace ranktune::drivers {

/// The environment of this process, as `NAME=value` each, and by name.
[[nodiscard]] std::vector<std::string> environment_entries();
[[nodiscard]] base::Variables environment_variables();

/// This node's name: SLURMD_NODENAME (several nodes of a test bed may share a host name), otherwise the host name.
[[nodiscard]] std::string host_name();
/// Slurm's id of the job; empty outside Slurm.
[[nodiscard]] std::string slurm_job();
[[nodiscard]] std::uint32_t slurm_restart_count();

struct EnvironmentFacts {
    std::string version; ///< of this program
    std::string study;   ///< uuid
    std::uint32_t incarnation = 1;
    int ranks = 0;
    std::string mpi; ///< "Open MPI 4.1.4"
    std::string hdf5;
    std::string wall_time;
    std::string layout = "[]";          ///< JSON: drivers::layout_json
    std::string build_type = "unknown"; ///< Meson's: "release"
};

/// When Slurm says that the job ends (SLURM_JOB_END_TIME), as RFC 3339; empty when it does not.
[[nodiscard]] std::string slurm_end_time();

/// The text of env.json: versions, build, machine, limits, loaded modules, Slurm's and the launcher's variables.
[[nodiscard]] std::string environment_json(const EnvironmentFacts& facts);

} // namespace ranktune::drivers
