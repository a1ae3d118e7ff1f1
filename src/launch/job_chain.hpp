// SPDX-License-Identifier: Apache-2.0
#pragma once
// The jobs of a study in Slurm's queue: which of them wait or run, and how to append more.

#include <cstdint>
#include <string>
#include <vector>

namespace ranktune::launch {

/// Jobs of the study in `directory` that wait or run, in order of submission: those of its file submit/jobs that squeue
/// knows. Throws UsageError when squeue does not answer three times: submitting anyway could start a second job beside
/// a running one and lose track of the others.
[[nodiscard]] std::vector<std::string> living_jobs(const std::string& directory);

/// All jobs in submit/jobs of the study in `directory`, in whatever state. Throws base::IoError.
[[nodiscard]] std::vector<std::string> noted_jobs(const std::string& directory);

/// Notes in submit/jobs that a person asks for a stop now: the job that runs then cancels those that were submitted
/// before, and leaves those that come after. Nothing is written when no job was submitted. Throws base::IoError.
void note_stop(const std::string& directory);
/// The jobs that were submitted after a person asked for a stop. Throws base::IoError.
[[nodiscard]] std::vector<std::string> jobs_after_stop(const std::string& directory);

/// Which of the given jobs are in Slurm's queue, waiting or running.
struct QueuedJobs {
    std::vector<std::string> ids;    ///< as squeue names them
    std::vector<std::string> states; ///< of each: "pending", "running", ...
    std::string trouble;             ///< why squeue gave no answer; empty: it did
};
[[nodiscard]] QueuedJobs queued_jobs(const std::vector<std::string>& jobs);

/// Submits `file` `count` times, each job to start when the one before it has ended, the first one after the last of
/// `before`, and updates submit/jobs. Returns the new jobs. Throws UsageError, with the jobs submitted so far, when
/// sbatch refuses one.
std::vector<std::string> submit_chain(const std::string& directory, const std::string& file,
                                      const std::vector<std::string>& before, std::uint32_t count);

} // namespace ranktune::launch
