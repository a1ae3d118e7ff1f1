// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of this machine for `ranktune doctor`. They change nothing, except for a small test file that is removed
// again.

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

/// `directory`: of a study, existing or planned; empty: the current one. Runs `mpirun --version` and Slurm's programs
/// if they exist, waits at most 10 s for each, and never starts MPI.
[[nodiscard]] std::vector<Check> examine(const std::string& directory);

/// One line per check, with its remedy below; notes are marked "-", problems "!".
[[nodiscard]] std::string doctor_text(const std::vector<Check>& checks);
/// {"schema": 1, "wrong": 0, "checks": [{"name", "state", "text", "mend"}, ...]}
[[nodiscard]] std::string doctor_json(const std::vector<Check>& checks);

// ---- Removes secrets from text that a user sends to support.

/// The text with "(removed)" in place of values whose names mark them as secrets (`API_KEY = x`, `--api-key x`,
/// `"--api-key", "x"`, `DB_PWD=x`, `Authorization: Bearer x`), of user and password in a URL, and of the content of PEM
/// blocks (a block without END reaches to the end of the text). Lines are cut after 4,000 characters.
[[nodiscard]] std::string without_secrets(const std::string& text);

} // namespace ranktune::cli
