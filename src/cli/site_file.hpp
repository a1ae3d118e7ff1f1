// SPDX-License-Identifier: Apache-2.0
#pragma once
// Site files: the job settings of a computing centre and of a user.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "slurm/job_script.hpp"

namespace ranktune::cli {

/// What site files say; `from` of each is "file:line". docs/reference/site-file.md describes every key.
struct SiteSettings {
    std::optional<slurm::ScriptLine> launcher; ///< srun or mpirun
    std::optional<slurm::ScriptLine> mpi;      ///< of srun --mpi
    std::optional<slurm::ScriptLine> gpus;     ///< an sbatch option in which {gpus} stands for the number per node
    std::optional<slurm::ScriptLine> account;
    std::optional<slurm::ScriptLine> partition;
    std::optional<std::chrono::seconds> lead_time;
    std::string lead_time_from;
    std::vector<slurm::ScriptLine> options;  ///< of sbatch
    std::vector<slurm::ScriptLine> commands; ///< shell lines: modules, then variables
};

/// Reads $RANKTUNE_SITE, or else /etc/ranktune/site.toml; then the user's own, ~/.config/ranktune/site.toml. A missing
/// file is ignored, unless $RANKTUNE_SITE names it.
[[nodiscard]] SiteSettings site_settings();

} // namespace ranktune::cli
