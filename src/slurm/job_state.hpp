// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parses `scontrol show job`, and decides whether the job should be requeued. Pure.

#include <cstdint>
#include <string>
#include <string_view>

#include "slurm/deadline.hpp"

namespace ranktune::slurm {

/// Missing or unrecognised values keep their defaults.
struct JobFacts {
    JobState state = JobState::other;
    bool preempted = false; ///< a job of higher priority takes its nodes
    bool requeues = false;  ///< submitted with --requeue: Slurm itself would queue it again after a preemption
    TimeLeft left;
};
/// The answer of `scontrol show job ID --oneliner`.
[[nodiscard]] JobFacts job_facts(std::string_view scontrol);

/// How a study stopped before its end.
struct Stopped {
    enum class By : std::uint8_t {
        signal,   ///< USR1, USR2, TERM or HUP: by --signal, preemption or a person
        deadline, ///< the head stopped it before the time limit
        other     ///< by a person (INT, `ranktune stop`), or for lack of disk space or ranks
    };
    By by = By::other;
    bool started = false;         ///< this start has started a trial
    bool progress = false;        ///< this start made progress (tuner::progress_of)
    bool progress_before = false; ///< the previous start made progress; true for the first start
};

struct RequeueAnswer {
    bool requeue = false;
    std::string why_not; ///< the reason and what to do; empty: no message
};
/// Whether a clean stop should be followed by `scontrol requeue`. `wanted`, `most`: slurm.requeue, slurm.max_requeues;
/// `restarts`: SLURM_RESTART_COUNT.
[[nodiscard]] RequeueAnswer should_requeue(bool wanted, std::uint32_t most, std::uint32_t restarts,
                                           const Stopped& stopped, const JobFacts& job);

} // namespace ranktune::slurm
