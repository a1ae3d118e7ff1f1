// SPDX-License-Identifier: Apache-2.0
#pragma once
// What each start of a study ran on, from logs/*.env.json.

#include <cstdint>
#include <string>
#include <vector>

#include "storage/file_system.hpp"

namespace ranktune::report {

struct Surroundings {
    std::uint64_t start = 0; ///< from 1
    std::string host;        ///< of the head
    std::string job;         ///< of Slurm; empty: none
    std::string software;    ///< "ranktune 0.1.0, Open MPI 4.1.4, HDF5 1.10.8, openblas 0.3.21, gcc 12.2.0"
    std::string code;        ///< commit and directory of the user's code; empty: not under git
};

/// By start. A file that is missing or damaged is left out: none is needed to read a study.
[[nodiscard]] std::vector<Surroundings> surroundings_of(storage::FileSystem& files, const std::string& directory);

} // namespace ranktune::report
