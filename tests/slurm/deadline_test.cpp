// SPDX-License-Identifier: Apache-2.0
#include "slurm/deadline.hpp"
#include "support/catch.hpp"

namespace deadline_test {

using namespace ranktune::slurm;
using namespace std::chrono_literals;
using Kind = TimeLeft::Kind;

TEST_CASE("The time left as squeue prints it", "[slurm]") {
    CHECK(time_left("0:42\n") == TimeLeft{Kind::known, 42s});
    CHECK(time_left("5:00") == TimeLeft{Kind::known, 5min});
    CHECK(time_left("  1:02:03 ") == TimeLeft{Kind::known, 1h + 2min + 3s});
    CHECK(time_left("1-00:00:00") == TimeLeft{Kind::known, 24h});
    CHECK(time_left("12-23:59:59") == TimeLeft{Kind::known, 12 * 24h + 23h + 59min + 59s});
    CHECK(time_left("UNLIMITED") == TimeLeft{Kind::unlimited, {}});
    CHECK(time_left("INVALID") == TimeLeft{Kind::known, 0s});
}

TEST_CASE("An answer that is not understood leaves the time unknown", "[slurm]") {
    for (const char* text : {"", "NOT_SET", "slurm_load_jobs error: Invalid job id specified", "1:2:3:4", "-1:00", "1-",
                             "5:", "1.5", "99999999999999999999:00"}) {
        CAPTURE(text);
        CHECK(time_left(text) == TimeLeft{});
    }
}

TEST_CASE("The time left from what scontrol knows of the job", "[slurm]") {
    CHECK(time_left_in_job("JobId=7 JobName=ranktune RunTime=00:01:30 TimeLimit=01:00:00 TimeMin=N/A") ==
          TimeLeft{Kind::known, 58min + 30s});
    CHECK(time_left_in_job("JobId=7\n   RunTime=1-00:00:01 TimeLimit=1-00:00:00\n") == TimeLeft{Kind::known, 0s});
    CHECK(time_left_in_job("RunTime=00:01:30 TimeLimit=UNLIMITED") == TimeLeft{Kind::unlimited, {}});
    CHECK(time_left_in_job("RunTime=00:01:30 TimeLimit=Partition_Limit") == TimeLeft{});
    CHECK(time_left_in_job("Comment=TimeLimit=9:00 here RunTime=0:01") == TimeLeft{});
    CHECK(time_left_in_job("slurm_load_jobs error: Invalid job id specified") == TimeLeft{});
}

TEST_CASE("States of a job by their names, short and long; a new one is a value", "[slurm]") {
    CHECK(job_state("RUNNING\n") == JobState::running);
    CHECK(job_state("PD") == JobState::pending);
    CHECK(job_state("CANCELLED by 1000") == JobState::over);
    CHECK(job_state("CANCELLED+") == JobState::over);
    CHECK(job_state("COMPLETING") == JobState::ending);
    CHECK(job_state("REQUEUED") == JobState::requeued);
    CHECK(job_state("SUSPENDED") == JobState::suspended);
    CHECK(job_state("EXPEDITING") == JobState::other);
    CHECK(job_state("") == JobState::other);
}

} // namespace deadline_test
