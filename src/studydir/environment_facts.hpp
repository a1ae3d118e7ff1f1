// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a start of a study ran on: for env.json, the log and the support desk. No secrets: Slurm's variables but those
// whose names speak of one, and an allow-list of others.

#include <cstdint>
#include <string>

namespace ranktune::studydir {

struct EnvironmentFacts {
    std::string version; ///< of this program
    std::string study;   ///< uuid
    std::uint32_t incarnation = 1;
    int ranks = 0;
    std::string mpi; ///< "Open MPI 4.1.4"
    std::string hdf5;
    std::string wall_time;
    std::string layout = "[]";          ///< JSON: layout::layout_json
    std::string build_type = "unknown"; ///< Meson's: "release"
};

/// The text of env.json: versions, build, machine, limits, loaded modules, Slurm's and the launcher's variables.
[[nodiscard]] std::string environment_json(const EnvironmentFacts& facts);

} // namespace ranktune::studydir
