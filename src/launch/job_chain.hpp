// SPDX-License-Identifier: Apache-2.0
#pragma once
// The jobs of a study in Slurm's queue: which of them wait or run, and further ones behind them.

#include <cstdint>
#include <string>
#include <vector>

namespace ranktune::launch {

/// Jobs of the study in `directory` that wait or run, in the order in which they were submitted: those of its file
/// submit/jobs that squeue knows. Throws UsageError when squeue does not answer (asked three times): then a new job
/// would run beside a living one, and the living ones would lose their followers.
[[nodiscard]] std::vector<std::string> living_jobs(const std::string& directory);

/// The jobs in submit/jobs of the study in `directory`, whatever became of them. Throws base::IoError.
[[nodiscard]] std::vector<std::string> noted_jobs(const std::string& directory);

/// Which of some jobs are in Slurm's queue: waiting, or running.
struct QueuedJobs {
    std::vector<std::string> ids;    ///< as squeue names them
    std::vector<std::string> states; ///< of each: "pending", "running", ...
    std::string trouble;             ///< why squeue does not say; empty: it does
};
[[nodiscard]] QueuedJobs queued_jobs(const std::vector<std::string>& jobs);

/// Hands `file` to sbatch `count` times, each job to begin when the one before it has ended, the first one after the
/// last of `before`, and keeps submit/jobs. Returns the new jobs. Throws UsageError when sbatch refuses one; it names
/// those that it took.
std::vector<std::string> submit_chain(const std::string& directory, const std::string& file,
                                      const std::vector<std::string>& before, std::uint32_t count);

} // namespace ranktune::launch
