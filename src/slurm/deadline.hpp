// SPDX-License-Identifier: Apache-2.0
#pragma once
// Time left and state of a job, parsed from the output of Slurm's programs. Pure.

#include <chrono>
#include <cstdint>
#include <string_view>

namespace ranktune::slurm {

/// How long the job may still run.
struct TimeLeft {
    enum class Kind : std::uint8_t {
        unknown,   ///< no answer, or not understood
        unlimited, ///< there is no limit
        known
    };
    Kind kind = Kind::unknown;
    std::chrono::seconds left{}; ///< if known; 0: over
    friend bool operator==(const TimeLeft&, const TimeLeft&) = default;
};

/// The answer of `squeue --noheader --jobs=ID --format=%L`: "5:00", "1-02:03:04", "UNLIMITED", "NOT_SET", "INVALID"
/// (over its limit). White space around it is ignored.
[[nodiscard]] TimeLeft time_left(std::string_view squeue);

/// The answer of `scontrol show job ID --oneliner`: from its TimeLimit= and RunTime=, which need no clock and no time
/// zone.
[[nodiscard]] TimeLeft time_left_in_job(std::string_view scontrol);

/// The state of a job as squeue and scontrol name it. An unknown name of a newer Slurm is `other`, not an error.
enum class JobState : std::uint8_t { pending, running, suspended, ending, requeued, over, other };
/// "RUNNING", "R", "CANCELLED by 1000", "COMPLETED+" ...
[[nodiscard]] JobState job_state(std::string_view text);

} // namespace ranktune::slurm
