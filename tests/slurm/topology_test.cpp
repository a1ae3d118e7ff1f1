// SPDX-License-Identifier: Apache-2.0
#include "slurm/allocation.hpp"
#include "support/catch.hpp"

using namespace ranktune::slurm;

TEST_CASE("the switches above a node are those of Slurm's tree", "[slurm]") {
    const auto of = [](const char* address, const char* pattern, const char* node = "n7") {
        return switches_above({{"SLURM_TOPOLOGY_ADDR", address}, {"SLURM_TOPOLOGY_ADDR_PATTERN", pattern}}, node);
    };
    CHECK(of("s0.s2.n7", "switch.switch.node") == "s0.s2");
    CHECK(of("s2.n7", "switch.node") == "s2");
    CHECK(of("n7", "node").empty());                     // topology/none
    CHECK(of("s0.s2.n1", "switch.switch.node").empty()); // passed on from another node
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
