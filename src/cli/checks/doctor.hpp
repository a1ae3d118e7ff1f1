// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a machine has for a study, and what is wrong with it. Looks, and changes nothing but a small file that it
// removes again.

#include <cstdint>
#include <string>
#include <vector>

namespace ranktune::cli {

struct Check {
    enum class State : std::uint8_t {
        good,
        note, ///< may matter, depending on the study
        wrong ///< will hurt
    };
    std::string name; ///< "mpi", "file system": one word or two
    State state = State::good;
    std::string text;      ///< one line: what was found
    std::string mend = {}; ///< what to do; empty when there is nothing
};

/// `directory`: of a study, or where one is to be; empty: the current one. Starts `mpirun --version` and Slurm's
/// programs where they exist, waits for each some seconds at most, and never starts MPI.
[[nodiscard]] std::vector<Check> examine(const std::string& directory);

/// One line per check, its mend below it; the worst ones marked.
[[nodiscard]] std::string doctor_text(const std::vector<Check>& checks);
/// {"schema": 1, "wrong": 0, "checks": [{"name", "state", "text", "mend"}, ...]}
[[nodiscard]] std::string doctor_json(const std::vector<Check>& checks);

} // namespace ranktune::cli
