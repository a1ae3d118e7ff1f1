// SPDX-License-Identifier: Apache-2.0
#include "head/requeue.hpp"

namespace ranktune::head {

using studydir::Requeue;

slurm::Stopped::By stopped_by(study::Reason reason, study::Asker asker) {
    using By = slurm::Stopped::By;
    using study::Asker;
    if (reason == study::Reason::deadline) return By::deadline;
    // INT comes from people.
    const bool signal =
        asker == Asker::sigusr1 || asker == Asker::sigusr2 || asker == Asker::sigterm || asker == Asker::sighup;
    return reason == study::Reason::draining && signal ? By::signal : By::other;
}

Requeued requeue(const slurm::Allocation& job, const study::SlurmSpec& spec, const slurm::Stopped& stopped,
                 const std::function<process::CommandOutput(const std::vector<std::string>&)>& ask,
                 const std::function<void()>& before) {
    if (stopped.by == slurm::Stopped::By::other) return {};
    const process::CommandOutput shown = ask({"scontrol", "show", "job", job.name, "--oneliner"});
    if (!shown.ok()) {
        if (!spec.requeue) return {};
        return {Requeue::failed, "the job cannot be put back into the queue from here (" +
                                     (shown.error.empty() ? "scontrol gave no answer" : shown.error) +
                                     "); submit it again to go on: the same line on the same directory"};
    }
    const auto answer =
        slurm::should_requeue(spec.requeue, spec.max_requeues, job.restarts, stopped, slurm::job_facts(shown.text));
    if (!answer.requeue) return {Requeue::no, answer.why_not};
    before();
    const process::CommandOutput done = ask({"scontrol", "requeue", job.name});
    if (done.ok()) return {Requeue::yes, "job " + job.name + " is back in the queue"};
    return {Requeue::failed, "`scontrol requeue " + job.name + "` was refused (" + done.error +
                                 "); submit the job again to go on: the same line on the same directory"};
}

} // namespace ranktune::head
