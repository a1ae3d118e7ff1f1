// SPDX-License-Identifier: Apache-2.0
#pragma once
// What of a user's own text may stand in an #SBATCH line that `submit` writes.

#include <string>
#include <vector>

namespace ranktune::cli {

/// Options of sbatch behind `--`. Throws UsageError for one that contradicts what `submit` writes itself (--nodes,
/// --time, --ntasks, --gpus, --array, ...), with the option of `submit` that is meant, and for a word of several lines.
void refuse_own_options(const std::vector<std::string>& words);

/// The value of an option (`name`: "--partition") that is written as it is. Throws UsageError where Slurm would read
/// it as something else: white space, quotes, a backslash or '#'.
void refuse_several_words(const std::string& name, const std::string& value);

} // namespace ranktune::cli
