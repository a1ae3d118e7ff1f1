// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "report/explain/life.hpp"
#include "study_by_hand.hpp"
#include "support/catch.hpp"

namespace life_test {

using namespace ranktune;
using namespace ranktune::report;
using ranktune::report::testing::rising;
using ranktune::report::testing::small_study;
using ranktune::report::testing::StudyByHand;

namespace {

std::vector<std::string> life(const StudyByHand& study, std::uint32_t trial) {
    TrialLife told(study::TrialId{trial}, "score");
    for (const auto& record : study.records) told.add(record);
    return told.lines();
}

} // namespace

TEST_CASE("The life of a trial that goes well has its start, its rungs and its end", "[report]") {
    StudyByHand study(small_study(9));
    study.began(2);
    study.play_out(rising);
    REQUIRE(study.tuner.state().ended);
    const std::vector<std::string> expected{
        "    0.5s  created",
        "    0.5s  attempt 1 started on n0 (w1), from scratch",
        "    1.0s  iteration 1: score 0.0100, pause: waits at rung 1 with 1 entry",
        "    1.5s  checkpoint of iteration 1: checkpoints/0/1-1.1.h5",
        "    2.0s  attempt 1 paused",
    };
    auto first = life(study, 0);
    REQUIRE(first.size() > expected.size());
    CHECK(first.back().find("stopped: not promoted") != std::string::npos);
    first.resize(expected.size());
    CHECK(first == expected);
    std::string best;
    for (const auto& line : life(study, study.tuner.state().best->value())) best += line + "\n";
    INFO(best);
    CHECK((best.find("goes on: ") != std::string::npos || best.find("promoted from iteration") != std::string::npos));
    CHECK(best.find("finished: reached the ceiling of 9 iterations") != std::string::npos);
}

TEST_CASE("The life of a trial that fails has its message, in one line, and no other trial's", "[report]") {
    StudyByHand study(small_study(9));
    study.began(2);
    study.over(1, study::AttemptOutcome::failed,
               {"exit code 1: no such file\nlast lines of its standard error:\nx", 1});
    const auto lines = life(study, 1);
    REQUIRE(lines.size() == 4);
    CHECK(lines[2] == "    1.0s  attempt 1 failed: rank 1: exit code 1: no such file");
    CHECK(lines[3] == "    1.0s  failed: the trainable failed");
    CHECK(life(study, 0).size() == 2);
}

TEST_CASE("A task after the trial that a user has tried again has not failed once more", "[report]") {
    const study::SideTask task{study::SideTask::Kind::after_trial, study::TrialId{1}};
    TrialLife told(study::TrialId{1}, "score");
    const auto ends = [&](std::uint32_t attempt, study::AttemptOutcome outcome, bool retry, const char* message) {
        told.add(study::SideEnded{task, study::AttemptId{attempt}, {}, outcome, retry, {message}});
    };
    ends(1, study::AttemptOutcome::failed, true, "exit code 2");
    ends(2, study::AttemptOutcome::failed, false, "exit code 3");
    ends(2, study::AttemptOutcome::failed, true, ""); // Tuner::reopen
    ends(3, study::AttemptOutcome::finished, false, "");
    std::vector<std::string> texts;
    for (const std::string& line : told.lines()) texts.push_back(line.substr(line.find("after")));
    CHECK(texts == std::vector<std::string>{"after the trial: failed: exit code 2; tried again",
                                            "after the trial: failed: exit code 3", "after the trial: tried again",
                                            "after the trial: finished"});
}

} // namespace life_test
