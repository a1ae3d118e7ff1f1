// SPDX-License-Identifier: Apache-2.0
#include "slurm/allocation.hpp"
#include "support/catch.hpp"

namespace allocation_test {

using namespace ranktune::slurm;

TEST_CASE("Outside a job there is no allocation", "[slurm]") {
    CHECK_FALSE(allocation({}));
    CHECK_FALSE(allocation({{"SLURM_CONF", "/etc/slurm/slurm.conf"}, {"SLURM_JOB_ID", ""}}));
}

TEST_CASE("A task of a step knows its job, its nodes and the tasks on them", "[slurm]") {
    const auto found = allocation({{"SLURM_JOB_ID", "13"},
                                   {"SLURM_STEP_ID", "0"},
                                   {"SLURM_JOB_PARTITION", "low"},
                                   {"SLURM_JOB_NODELIST", "n[1-3]"},
                                   {"SLURM_TASKS_PER_NODE", "4(x3)"},
                                   {"SLURM_STEP_TASKS_PER_NODE", "5,4(x2)"},
                                   {"SLURM_CPUS_PER_TASK", "2"},
                                   {"SLURM_RESTART_COUNT", "1"},
                                   {"SLURM_JOB_END_TIME", "1763672400"}});
    REQUIRE(found);
    CHECK(found->job == "13");
    CHECK(found->step == "0");
    CHECK(found->partition == "low");
    CHECK(found->nodes == std::vector<std::string>{"n1", "n2", "n3"});
    CHECK(found->tasks_by_node == std::vector<std::uint32_t>{5, 4, 4});
    CHECK(found->cpus_per_task == 2U);
    CHECK(found->restarts == 1);
    CHECK(found->name == "13");
    CHECK(found->end == 1763672400);
}

TEST_CASE("Values that a batch script does not have are not guessed", "[slurm]") {
    const auto found =
        allocation({{"SLURM_JOBID", "7"}, {"SLURM_JOB_NODELIST", "n[1-"}, {"SLURM_JOB_END_TIME", "soon"}});
    REQUIRE(found);
    CHECK(found->job == "7");
    CHECK_FALSE(found->step);
    CHECK_FALSE(found->nodes);
    CHECK_FALSE(found->tasks_by_node);
    CHECK_FALSE(found->cpus_per_task);
    CHECK_FALSE(found->end);
    CHECK(found->restarts == 0);
}

TEST_CASE("A task of a job array is requeued by the array's number", "[slurm]") {
    const auto found =
        allocation({{"SLURM_JOB_ID", "1207"}, {"SLURM_ARRAY_JOB_ID", "1200"}, {"SLURM_ARRAY_TASK_ID", "7"}});
    REQUIRE(found);
    CHECK(found->job == "1207");
    CHECK(found->name == "1200_7");
}

TEST_CASE("the switches above a node are those of Slurm's tree", "[slurm]") {
    const auto of = [](const char* address, const char* pattern, const char* node = "n7") {
        return switches_above({{"SLURM_TOPOLOGY_ADDR", address}, {"SLURM_TOPOLOGY_ADDR_PATTERN", pattern}}, node);
    };
    CHECK(of("s0.s2.n7", "switch.switch.node") == "s0.s2");
    CHECK(of("s2.n7", "switch.node") == "s2");
    CHECK(of("n7", "node").empty());                     // topology/none
    CHECK(of("s0.s2.n1", "switch.switch.node").empty()); // inherited from another node
    CHECK(of("s0.xn7", "switch.node").empty());
    CHECK(switches_above({}, "n7").empty());
    CHECK(switches_above({{"SLURM_TOPOLOGY_ADDR", "s2.n7"}}, "n7").empty());
}

TEST_CASE("a job knows how many processors of a node are its own", "[slurm]") {
    CHECK(cpus_on_node({{"SLURM_JOB_ID", "7"}, {"SLURM_CPUS_ON_NODE", "16"}}) == 16);
    CHECK_FALSE(cpus_on_node({{"SLURM_CPUS_ON_NODE", "16"}}).has_value());
    CHECK_FALSE(cpus_on_node({{"SLURM_JOB_ID", "7"}}).has_value());
    CHECK_FALSE(cpus_on_node({{"SLURM_JOB_ID", "7"}, {"SLURM_CPUS_ON_NODE", "many"}}).has_value());
}

} // namespace allocation_test
