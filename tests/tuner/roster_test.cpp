// SPDX-License-Identifier: Apache-2.0
// What attempts may be that no trainable of today uses: ranks that divide into roles, a group that gives its ranks back
// to get others, an end without a report.
#include "tuner/small_core.hpp"

namespace ranktune::tuner::roster_test {
namespace {

using testing::small_study;
using testing::SmallCore;

study::StudySpec spec_of(const std::string& more) {
    return study::parse_study(small_study("max_iterations = 9\nnum_trials = 2\n", more), "small.toml", {},
                              ranktune::testing::known({ranktune::testing::any_trainable("any")}));
}

} // namespace

TEST_CASE("the roles of a trial's ranks are recorded, sent, and sent again by a new head", "[tuner]") {
    study::StudySpec spec = spec_of("[resources]\nranks = 3\n");
    const std::vector<Role> roles = {{"learner", 1}, {"rollout", 2}};
    spec.resources.roles = roles;
    SmallCore core(spec);
    core.began({"n0", "n1", "n2"});
    REQUIRE(core.record<study::TrialStarted>() != nullptr);
    CHECK(core.record<study::TrialStarted>()->roles == roles);
    CHECK(core.trial(0).attempt.roles == roles);
    for (const auto& commands : {core.commands(), core.core().pending_commands()}) {
        REQUIRE(commands.size() == 1);
        const auto& start = std::get<study::StartTrial>(commands[0]);
        CHECK(start.ranks.size() == 3);
        CHECK(start.roles == roles);
    }

    study::TrialStarted wrong = *core.record<study::TrialStarted>();
    wrong.roles[1].size = 3;
    Tuner twin(spec);
    Output created;
    twin.create("uuid", "", "test", created);
    for (const auto& record : core.records())
        if (!std::holds_alternative<study::TrialStarted>(record)) twin.apply(record);
    CHECK_THROWS_WITH(twin.apply(wrong), Catch::Matchers::Contains("roles"));
}

TEST_CASE("a group that gives its ranks back to get others costs its trial nothing, and schedulers see nothing",
          "[tuner]") {
    SmallCore core(spec_of(""));
    core.began({"n0"});
    core.report(0, 1, 0.5);
    const Verdict before = core.trial(0).verdict;
    core.saved(0, 1, 0.5);
    core.over(0, AttemptOutcome::resized);
    const auto* started = core.record<study::TrialStarted>();
    REQUIRE(started != nullptr);
    CHECK(started->trial == TrialId{0});
    CHECK(study::checkpoint_of(started->from) != nullptr);
    CHECK(core.attempt(0) == AttemptId{2});
    CHECK(core.trial(0).verdict == before);
    CHECK(core.trial(0).failures + core.trial(0).losses == 0);
    CHECK(core.record<study::TrialClosed>() == nullptr);
}

TEST_CASE("where trials may be silent, one that ends without a report has finished", "[tuner]") {
    for (const bool may : {true, false}) {
        study::StudySpec spec = spec_of("");
        spec.may_be_silent = may;
        SmallCore core(spec);
        core.began({"n0"});
        for (const std::uint32_t trial : {0U, 1U}) {
            core.over(trial, AttemptOutcome::finished);
            REQUIRE(core.record<study::TrialClosed>() != nullptr);
            CHECK(core.trial(trial).phase == (may ? TrialPhase::finished : TrialPhase::failed));
        }
        REQUIRE(core.state().ended);
        CHECK(core.state().outcome == (may ? StudyOutcome::ok : StudyOutcome::no_success));
    }
}

} // namespace ranktune::tuner::roster_test
