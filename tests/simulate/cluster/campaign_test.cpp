// SPDX-License-Identifier: Apache-2.0
#include "simulate/cluster/campaign.hpp"
#include "support/catch.hpp"

namespace campaign_test {

using namespace ranktune;
using namespace ranktune::simulate;

TEST_CASE("Random studies with random faults end, and their journals replay to the same state", "[sim]") {
    std::uint64_t lost = 0;
    std::uint64_t killed = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        const CaseResult result = run_case(seed);
        INFO("seed " << seed << ": " << result.description);
        for (const std::string& problem : result.problems) UNSCOPED_INFO(problem);
        CHECK(result.problems.empty());
        lost += result.ranks_lost;
        killed += result.heads_killed;
    }
    // Otherwise the cases have too few faults to test anything.
    CHECK(lost > 100);
    CHECK(killed > 10);
}

TEST_CASE("Synchronous populations with bounded checkpoints, and with hosts taken out of service, keep their lists",
          "[sim]") {
    for (const std::uint64_t seed : {2617U, 2652U, 9431U, 10138U, 15202U}) { // wrong once
        const CaseResult result = run_case(seed);
        INFO("seed " << seed << ": " << result.description);
        for (const std::string& problem : result.problems) UNSCOPED_INFO(problem);
        CHECK(result.problems.empty());
        CHECK(result.description.starts_with("pbt synchronous"));
    }
}

TEST_CASE("A case runs the same way twice", "[sim]") {
    for (const std::uint64_t seed : {1U, 2U, 3U, 17U}) {
        const CaseResult first = run_case(seed);
        const CaseResult second = run_case(seed);
        CHECK(first.digest == second.digest);
        CHECK(first.steps == second.steps);
        CHECK(first.messages == second.messages);
        CHECK(first.virtual_seconds == second.virtual_seconds);
    }
}

} // namespace campaign_test
