// SPDX-License-Identifier: Apache-2.0
#include "slurm/job_state.hpp"
#include "support/catch.hpp"

namespace job_state_test {

using namespace ranktune::slurm;
using namespace std::chrono_literals;
using By = Stopped::By;

namespace {
const JobFacts running{JobState::running, false, true, {}};
const Stopped by_signal{By::signal, true, true, true};
} // namespace

TEST_CASE("What scontrol says about a job", "[slurm]") {
    const auto facts = job_facts(
        "JobId=81 JobName=ranktune JobState=RUNNING Reason=None Requeue=1 Restarts=2 RunTime=00:01:00 "
        "TimeLimit=00:05:00 PreemptEligibleTime=2026-11-20T10:00:00 PreemptTime=None");
    CHECK(facts.state == JobState::running);
    CHECK(facts.requeues);
    CHECK_FALSE(facts.preempted);
    CHECK(facts.left.left == 4min);
    CHECK(job_facts("JobState=RUNNING PreemptTime=2026-11-20T10:00:00").preempted);
    CHECK(job_facts("JobState=HIBERNATING PreemptTime=None").state == JobState::other);
    CHECK(job_facts("").state == JobState::other);
    CHECK_FALSE(job_facts("slurm_load_jobs error: Invalid job id specified").preempted);
}

TEST_CASE("A job is requeued after a clean stop when the study asks for it", "[slurm]") {
    CHECK(should_requeue(true, 20, 0, by_signal, running).requeue);
    CHECK(should_requeue(true, 20, 0, {By::deadline, true, true, true}, running).requeue);
    CHECK_FALSE(should_requeue(false, 20, 0, by_signal, running).requeue);
    // An unknown state of a newer Slurm does not prevent it.
    CHECK(should_requeue(true, 20, 0, by_signal, {}).requeue);
    // Somebody stopped it, or it needs more than time.
    CHECK_FALSE(should_requeue(true, 20, 0, {By::other, true, true, true}, running).requeue);
}

TEST_CASE("A preempted job is requeued when Slurm itself would do it", "[slurm]") {
    JobFacts preempted = running;
    preempted.preempted = true;
    CHECK(should_requeue(false, 20, 0, by_signal, preempted).requeue);
    preempted.requeues = false; // --no-requeue
    CHECK_FALSE(should_requeue(false, 20, 0, by_signal, preempted).requeue);
}

TEST_CASE("A job that is cancelled or out of time is not queued again", "[slurm]") {
    for (const JobState state : {JobState::ending, JobState::over}) {
        JobFacts ending = running;
        ending.state = state;
        CHECK_FALSE(should_requeue(true, 20, 0, by_signal, ending).requeue);
    }
}

TEST_CASE("Requeuing stops with advice when it leads nowhere", "[slurm]") {
    CHECK(should_requeue(true, 20, 19, by_signal, running).requeue);
    const auto often = should_requeue(true, 20, 20, by_signal, running);
    CHECK_FALSE(often.requeue);
    CHECK(often.why_not.find("slurm.max_requeues") != std::string::npos);

    CHECK(should_requeue(true, 20, 0, {By::signal, true, false, true}, running)
              .requeue); // one start without progress may be bad luck
    const auto still = should_requeue(true, 20, 1, {By::signal, true, false, false}, running);
    CHECK_FALSE(still.requeue);
    CHECK(still.why_not.find("two starts in a row brought nothing new") != std::string::npos);

    const auto never = should_requeue(true, 20, 0, {By::deadline, false, false, true}, running);
    CHECK_FALSE(never.requeue);
    CHECK(never.why_not.find("a longer --time") != std::string::npos);
}

} // namespace job_state_test
