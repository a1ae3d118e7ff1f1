// SPDX-License-Identifier: Apache-2.0
#pragma once
// map: one command for many rows, as the study that it stands for.

#include <string>
#include <string_view>
#include <vector>

#include "cli/verbs/verbs.hpp"

namespace ranktune::cli {

struct MapArguments {
    // Where the rows come from; one of them:
    std::string input;             ///< a CSV file: its columns are placeholders
    std::vector<std::string> grid; ///< `lr=[0.1,0.01]`, `seed=range(100)`: all combinations
    std::string array;             ///< `1-10000%50`, `1,3,5-7`, `0-15:4`: numbers, as `sbatch --array`

    std::vector<std::string> command; ///< one word with blanks: for the shell
    bool kept = false;                ///< one process of each rank goes through the rows: ranktune.tasks()
    std::uint32_t restart_after = 0;  ///< rows of a kept process; 0: no limit
    std::uint32_t retries = 0;
    std::vector<std::uint32_t> retry_on; ///< exit codes that `retries` is for; empty: all
    std::string timeout;                 ///< of a task; empty: none
    bool write = false;                  ///< only the study file
    RunArguments run; ///< `directory` names the study and its file; `overrides`, `local`, ... as for `run`
};

/// The text of the study file. Throws base::UsageError for rows that cannot be read. `name`: of the study. `before`:
/// its file as it is; may be empty.
[[nodiscard]] std::string map_study(const MapArguments& arguments, const std::string& name, std::string_view before);

/// The numbers that `sbatch --array` means, in order, and how many may run at a time (0: all). Throws base::UsageError.
struct ArrayNumbers {
    std::vector<std::int64_t> numbers;
    std::uint32_t at_once = 0;
    std::int64_t step = 1; ///< of the only range; else 1
};
[[nodiscard]] ArrayNumbers array_numbers(const std::string& text);

/// Writes the study file `<directory>.toml`, unless it says so already, and runs it. A study that has begun may get
/// another command and other limits, but no other rows.
int map(const MapArguments& arguments, const Invocation& invocation);

} // namespace ranktune::cli
