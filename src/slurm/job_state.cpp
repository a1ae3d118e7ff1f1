// SPDX-License-Identifier: Apache-2.0
#include "slurm/job_state.hpp"

#include "slurm/lists.hpp"

namespace ranktune::slurm {

JobFacts job_facts(std::string_view scontrol) {
    JobFacts facts;
    facts.state = job_state(field(scontrol, "JobState="));
    const auto preempted = field(scontrol, "PreemptTime=");
    facts.preempted = !preempted.empty() && preempted != "None" && preempted != "N/A" && preempted != "(null)";
    facts.requeues = field(scontrol, "Requeue=") == "1";
    facts.left = time_left_in_job(scontrol);
    return facts;
}

RequeueAnswer should_requeue(bool wanted, std::uint32_t most, std::uint32_t restarts, const Stopped& stopped,
                             const JobFacts& job) {
    // Slurm itself would requeue the job after the grace time: do it at once.
    const bool as_slurm_would = job.preempted && job.requeues;
    if (stopped.by == Stopped::By::other || !(wanted || as_slurm_would)) return {};
    // A job that is cancelled or at its time limit cannot be requeued. An unknown state does not prevent it.
    if (job.state == JobState::ending || job.state == JobState::over) return {};
    if (restarts >= most)
        return {false, "the job was started again " + std::to_string(restarts) +
                           " times (slurm.max_requeues); submit it again to go on"};
    if (stopped.by == Stopped::By::deadline && !stopped.started)
        return {false,
                "no trial would have got as far as its next checkpoint in the time of this job; submit it again "
                "with a longer --time, save more often, or make iterations shorter"};
    if (!stopped.progress && !stopped.progress_before)
        return {
            false,
            "two starts in a row brought nothing new: no trial got further than it had been, and none came to its end; "
            "look at the logs, then submit it again"};
    return {true, {}};
}

} // namespace ranktune::slurm
