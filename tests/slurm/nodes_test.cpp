// SPDX-License-Identifier: Apache-2.0
#include "slurm/nodes.hpp"

#include "support/catch.hpp"

namespace nodes_test {

using namespace ranktune::slurm;

TEST_CASE("Nodes are read from scontrol's one-line form", "[slurm]") {
    const auto nodes = nodes_in(
        "NodeName=n1 Arch=x86_64 NodeAddr=10.0.0.1 NodeHostName=h State=MIXED Port=16818 Version=22\n"
        "Node n7 not found\n"
        "NodeName=n2 NodeAddr=10.0.0.2 State=DOWN*+CLOUD Reason=NodeName=x\n");
    REQUIRE(nodes.size() == 2);
    CHECK(nodes[0] == NodeFacts{"n1", "MIXED", "10.0.0.1", 16818});
    CHECK(nodes[1] == NodeFacts{"n2", "DOWN*+CLOUD", "10.0.0.2", 0});
    CHECK(nodes_in("").empty());
}

TEST_CASE("A node is gone when no step can be started on it", "[slurm]") {
    for (const char* state : {"DOWN", "DOWN*", "IDLE*", "ALLOCATED*+DRAIN", "DOWN+DRAIN", "FAIL", "IDLE+POWERED_DOWN",
                              "ERROR", "MIXED+NOT_RESPONDING", "DOWN$"})
        CHECK(is_gone(state));
    for (const char* state :
         {"IDLE", "ALLOCATED", "MIXED+DRAIN", "COMPLETING", "ALLOCATED+CLOUD", "RESERVED", "IDLE#", "A_NEW_WORD", ""})
        CHECK_FALSE(is_gone(state));
}

TEST_CASE("The port of slurmd comes from the configuration", "[slurm]") {
    CHECK(slurmd_port("SlurmctldPort           = 6817\nSlurmdPort              = 7000\nSlurmdTimeout = 300 sec\n") ==
          7000);
    CHECK(slurmd_port("nothing of the kind") == 6818);
}

TEST_CASE("Launchers name the nodes that are gone, and only those count", "[slurm]") {
    const std::vector<std::string> nodes{"n1", "n2", "n3", "n12"};
    using Names = std::vector<std::string>;
    CHECK(nodes_blamed("srun: error: Node failure on n2", nodes) == Names{"n2"});
    CHECK(nodes_blamed("srun: error: Node failure on n[1-2],n12.", nodes) == Names{"n1", "n2", "n12"});
    CHECK(nodes_blamed("srun: error: Task launch for StepId=5.1 failed on node n3: Communication connection failure",
                       nodes) == Names{"n3"});
    CHECK(nodes_blamed("srun: error: Node failure on n12.cluster", nodes) == Names{"n12"});
    // A killed task, a killed orted, a foreign node.
    CHECK(nodes_blamed("  Remote daemon: [[1234,0],2] on node n12", nodes).empty());
    CHECK(nodes_blamed("srun: error: n2: task 3: Killed", nodes).empty());
    CHECK(nodes_blamed("srun: error: Node failure on m2", nodes).empty());
    CHECK(nodes_blamed("mpirun noticed that process rank 2 with PID 0 on node n2 exited on signal 9", nodes).empty());
    CHECK(nodes_blamed("", nodes).empty());
}

TEST_CASE("srun names tasks that have ended badly", "[slurm]") {
    for (const char* line : {"srun: error: n2: task 3: Killed", "srun: error: n2: tasks 3-4,7: Segmentation fault",
                             "srun: error: n1: task 0: Exited with exit code 2"})
        CHECK(is_about_a_dead_task(line));
    for (const char* line : {"srun: error: Node failure on n2", "a rank says srun: error: n2: task 3: Killed", "",
                             "srun: error: Task launch for StepId=5.1 failed on node n3: task 3", "srun: job 7 queued"})
        CHECK_FALSE(is_about_a_dead_task(line));
}

TEST_CASE("A job that ends or is being preempted starts no further step", "[slurm]") {
    CHECK(may_start_steps("JobId=7 JobState=RUNNING RunTime=00:00:10 TimeLimit=01:00:00 PreemptTime=None"));
    CHECK(may_start_steps("JobId=7 JobState=RUNNING RunTime=00:00:10 TimeLimit=UNLIMITED"));
    CHECK_FALSE(may_start_steps("JobId=7 JobState=COMPLETING RunTime=00:00:10 TimeLimit=01:00:00"));
    CHECK_FALSE(
        may_start_steps("JobState=RUNNING RunTime=00:00:10 TimeLimit=01:00:00 PreemptTime=2026-11-20T10:00:00"));
    CHECK_FALSE(may_start_steps("JobState=RUNNING RunTime=00:59:40 TimeLimit=01:00:00"));
    CHECK(may_start_steps("slurm_load_jobs error: Unable to contact slurm controller"));
    CHECK(may_start_steps(""));
}

} // namespace nodes_test
