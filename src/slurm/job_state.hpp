// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `scontrol show job` says about the job itself, and whether it should go back into the queue. Text in, value out.

#include <cstdint>
#include <string>
#include <string_view>

#include "slurm/deadline.hpp"

namespace ranktune::slurm {

/// What is not in the text, or in a form that is not known, keeps its default.
struct JobFacts {
    JobState state = JobState::other;
    bool preempted = false; ///< a job of a higher priority wants its nodes
    bool requeues = false;  ///< submitted with --requeue: Slurm itself would queue it again after a preemption
    TimeLeft left;
};
/// The answer of `scontrol show job ID --oneliner`.
[[nodiscard]] JobFacts job_facts(std::string_view scontrol);

/// How a study stopped before its end, as far as it matters here.
struct Stopped {
    enum class By : std::uint8_t {
        signal,   ///< USR1, USR2, TERM or HUP: of --signal, a preemption, or somebody's
        deadline, ///< by itself
        other     ///< by a person (INT, `ranktune stop`), or for want of room or of ranks
    };
    By by = By::other;
    bool started = false;         ///< a trial was started this time
    bool progress = false;        ///< it got on this time (tuner::progress_of)
    bool progress_before = false; ///< by the start before; true when this is the first
};

struct RequeueAnswer {
    bool requeue = false;
    std::string why_not; ///< in words, ending in what to do; empty when there is nothing to say
};
/// Whether a clean stop should be followed by `scontrol requeue`. `wanted`, `most`: slurm.requeue, slurm.max_requeues;
/// `restarts`: SLURM_RESTART_COUNT.
[[nodiscard]] RequeueAnswer should_requeue(bool wanted, std::uint32_t most, std::uint32_t restarts,
                                           const Stopped& stopped, const JobFacts& job);

} // namespace ranktune::slurm
