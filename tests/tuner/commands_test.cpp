// SPDX-License-Identifier: Apache-2.0
// What the group of an attempt is told.
#include "tuner/small_core.hpp"

namespace ranktune::tuner::commands_test {

using testing::small_study;
using testing::SmallCore;

TEST_CASE("A group whose attempt ends by itself is told nothing more, but to give up", "[tuner]") {
    SmallCore core(small_study("max_iterations = 2\n", "[scheduler]\ntype = \"fifo\"\n[resources]\nranks = 2\n"));
    core.began({"n0", "n0"});
    const auto report = [&](Iteration iteration, bool ends) {
        core.step(study::ReportArrived{
            TrialId{0}, core.attempt(0), core.incarnation(), iteration, 1.0, {{"score", 0.5}}, ends});
    };
    report(1, false);
    SECTION("it is waited for") {
        report(2, false);
        REQUIRE(core.commands().size() == 1);
        CHECK(std::get<study::Decide>(core.commands().front()).verdict.reason == Reason::max_iterations);
    }
    SECTION("nobody waits") {
        report(2, true);
        CHECK(core.commands().empty());
        CHECK(core.trial(0).phase == TrialPhase::finished);
        SECTION("it is over") {
            core.over(0, AttemptOutcome::stopped);
            REQUIRE(core.commands().size() == 1);
            CHECK(std::get<study::StartTrial>(core.commands().front()).trial == TrialId{1});
        }
        SECTION("a rank is lost on the way") {
            core.gone(2);
            REQUIRE(core.commands().size() == 1);
            CHECK(std::holds_alternative<study::Abandon>(core.commands().front()));
        }
    }
}

} // namespace ranktune::tuner::commands_test
