// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text of a job script, for the templates in slurm/ and for `ranktune submit`.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace ranktune::slurm {

/// One line of a script, and where it was requested ("/etc/ranktune/site.toml:3"); empty: no such place.
struct ScriptLine {
    std::string text;
    std::string from;
};

struct JobScript {
    std::string file = "cpu.sbatch"; ///< the script's own file name, for its messages
    std::string name = "ranktune";   ///< --job-name
    std::string log = "%x-%j.log";   ///< --output
    std::uint32_t nodes = 1;
    std::uint32_t workers_per_node = 4;    ///< with GPUs: ranks_per_gpu for each
    std::uint32_t workers_without_gpu = 0; ///< of a node, although others have one
    std::uint32_t cpus_per_worker = 1;
    ScriptLine gpus;                 ///< "--gpus-per-node=4"; empty: a job without GPUs
    std::uint32_t ranks_per_gpu = 1; ///< how many workers share a GPU
    std::chrono::seconds time = std::chrono::hours(1);
    std::chrono::seconds lead = std::chrono::seconds(120); ///< --signal: time between USR1 and the end
    std::string lead_from;
    std::chrono::seconds poll = std::chrono::seconds(60); ///< between two looks of the watcher at the job's nodes
    ScriptLine launcher{"srun", ""};
    ScriptLine mpi{"pmix", ""};       ///< srun --mpi
    std::vector<ScriptLine> options;  ///< further options of sbatch
    std::vector<ScriptLine> commands; ///< shell lines: modules and variables
    // The following three are shell words: those with blanks are quoted.
    std::string program = "ranktune";
    std::string arguments; ///< of `ranktune run`; empty: the script's own arguments (template)
    std::string directory; ///< study directory, absolute; empty: template
};

/// The text of the whole script.
[[nodiscard]] std::string render(const JobScript& script);
/// Such a text, which is not a template's, with other arguments of `ranktune run`, in words of a shell; the rest stays
/// as it is, also what people have changed. Empty: it has no line with arguments.
[[nodiscard]] std::string with_arguments(std::string text, const std::string& arguments);
/// The arguments of `ranktune run` in such a text, as the shell of the job will read them. Empty: there is no such
/// line, or it runs commands.
[[nodiscard]] std::vector<std::string> arguments_of(const std::string& text);

/// "1-02:30:00" or "04:00:00", as --time reads it.
[[nodiscard]] std::string time_limit_text(std::chrono::seconds time);

} // namespace ranktune::slurm
