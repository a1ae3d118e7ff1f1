// SPDX-License-Identifier: Apache-2.0
#pragma once
// What fails in a simulated study, and how long its jobs are. Read from a TOML file; docs/reference/simulate.md
// describes each key.

#include <cstdint>
#include <string>
#include <vector>

namespace ranktune::simulate {

/// Times in seconds. Failures without a memory: the time to the next one is exponentially distributed.
struct FaultModel {
    double trial_rate = 0.0;   ///< probability that a trial fails once on its way to study.max_iterations
    double rank_mean_s = 0.0;  ///< mean time to the failure of one rank, for the rest of its job; 0: never
    double job_mean_s = 0.0;   ///< mean time to the failure of the job; 0: never
    double walltime_s = 0.0;   ///< of each job; 0: without limit
    double wait_s = 0.0;       ///< from the end of a job to the begin of the next one
    std::uint32_t jobs = 1000; ///< at most

    /// Anything but the trials can fail or end.
    [[nodiscard]] bool has_jobs() const { return rank_mean_s > 0.0 || job_mean_s > 0.0 || walltime_s > 0.0; }
    friend bool operator==(const FaultModel&, const FaultModel&) = default;
};

/// Throws study::StudyFileError with every mistake and its place.
[[nodiscard]] FaultModel parse_faults(const std::string& text, const std::string& file);
/// Every key of such a file, `table.key`.
[[nodiscard]] const std::vector<std::string>& fault_keys();

} // namespace ranktune::simulate
