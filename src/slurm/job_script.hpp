// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text of a job script: of the templates in slurm/ and of what `ranktune submit` hands to sbatch. One text for
// both.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace ranktune::slurm {

/// One line of a script, and where it was asked for ("/etc/ranktune/site.toml:3"); empty: nowhere in particular.
struct ScriptLine {
    std::string text;
    std::string from;
};

struct JobScript {
    std::string file = "cpu.sbatch"; ///< its own name, for its messages; no path
    std::string name = "ranktune";   ///< --job-name
    std::string log = "%x-%j.log";   ///< --output
    std::uint32_t nodes = 1;
    std::uint32_t workers_per_node = 4; ///< with GPUs: one for each
    std::uint32_t cpus_per_worker = 1;
    ScriptLine gpus; ///< "--gpus-per-node=4"; empty: a job without GPUs
    std::chrono::seconds time = std::chrono::hours(1);
    std::chrono::seconds lead = std::chrono::seconds(120); ///< --signal: so long before the end USR1 comes
    std::string lead_from;
    ScriptLine launcher{"srun", ""};
    ScriptLine mpi{"pmix", ""};       ///< srun --mpi
    std::vector<ScriptLine> options;  ///< further options of sbatch
    std::vector<ScriptLine> commands; ///< shell lines: modules and variables
    // The following three as the shell reads them: words with blanks are quoted.
    std::string program = "ranktune";
    std::string arguments; ///< of `ranktune run`; empty: those of the script, as for a template
    std::string directory; ///< study directory, absolute; empty with a template
};

/// The whole file.
[[nodiscard]] std::string render(const JobScript& script);
/// slurm/cpu.sbatch and slurm/gpu.sbatch.
[[nodiscard]] JobScript cpu_template();
[[nodiscard]] JobScript gpu_template();

/// "1-02:30:00" or "04:00:00", as --time reads it.
[[nodiscard]] std::string time_limit_text(std::chrono::seconds time);

} // namespace ranktune::slurm
