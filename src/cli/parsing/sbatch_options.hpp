// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which user-supplied text `submit` accepts into an #SBATCH line.

#include <string>
#include <vector>

namespace ranktune::cli {

/// Checks the sbatch options after `--`. Throws UsageError for an option that `submit` writes itself (--nodes, --time,
/// --ntasks, --gpus, --array, ...), naming the option of `submit` to use, and for a word of several lines.
void refuse_own_options(const std::vector<std::string>& words);

/// Checks the value of an option (`name`: "--partition") that is written without quoting. Throws UsageError for
/// characters that Slurm interprets: white space, quotes, a backslash or '#'.
void refuse_several_words(const std::string& name, const std::string& value);

} // namespace ranktune::cli
