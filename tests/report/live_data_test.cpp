// SPDX-License-Identifier: Apache-2.0
#include "report/page/live_data.hpp"

#include <string>

#include <nlohmann/json.hpp>

#include "report/view/wall_time.hpp"
#include "study_by_hand.hpp"
#include "support/catch.hpp"

namespace live_data_test {

using namespace ranktune;
using namespace ranktune::report;
using namespace ranktune::report::testing;
using Json = nlohmann::json;

namespace {

std::string study_of(std::uint32_t trials) {
    return "[study]\nname = \"by-hand\"\nmetric = \"score\"\nmode = \"max\"\nnum_trials = " + std::to_string(trials) +
           "\nmax_iterations = 9\n[trainable]\nname = \"any\"\n[space]\nlr = \"loguniform(1e-4, 1.0)\"\n";
}

/// Three seconds after the newest record.
Json live_of(const StudyByHand& study, const report::Standing& standing = {"run by a test", true, ""}) {
    return Json::parse(
        live_data(study.tuner, standing, time_of_newest_record(study.tuner.state()).value_or(0.0) + 3.0));
}

std::string states_in(const Json& live) {
    std::string text;
    for (const Json& each : live.at("trials"))
        text += (text.empty() ? "#" : ", #") + std::to_string(each.at("trial").get<int>()) + " " +
                each.at("state").get<std::string>();
    return text;
}

void ask_for(StudyByHand& study, study::SteerVerb verb, std::uint32_t trial, std::uint64_t request) {
    study::Steering ask;
    ask.request = request;
    ask.verb = verb;
    ask.trial = base::TrialId{trial};
    study.step(study::SteerAsked{"ada@login1", ask});
}

} // namespace

TEST_CASE("a live page shows what each trial does that has begun and not ended", "[report]") {
    StudyByHand study(study_of(3));
    study.began(2);
    CHECK(states_in(live_of(study)) == "#0 starting, #1 starting");
    study.report(0, 1, 0.25);
    const Json live = live_of(study);
    CHECK(states_in(live) == "#0 running, #1 starting");
    const Json& first = live.at("trials").at(0);
    CHECK(first.at("iteration") == 1);
    CHECK(live.at("most") == 9);
    CHECK(first.at("last") == 0.25);
    CHECK(first.at("age") == 3.0);
    CHECK(live.at("trials").at(1).at("age") == 3.5);
    CHECK(live.at("trials").at(1).at("last").is_null());
    CHECK(first.at("configuration").get<std::string>().starts_with("lr="));

    ask_for(study, study::SteerVerb::pause, 0, 1);
    CHECK(states_in(live_of(study)) == "#0 pausing, #1 starting");
    study.report(0, 2, 0.5);
    study.saved(0, 2);
    study.over(0, study::AttemptOutcome::paused);
    CHECK(states_in(live_of(study)) == "#1 starting, #2 starting, #0 paused by a user");
    CHECK(live_of(study).at("trials").at(2).at("age").is_null());
    ask_for(study, study::SteerVerb::resume, 0, 2);
    CHECK(states_in(live_of(study)) == "#1 starting, #2 starting, #0 waits for ranks");
    ask_for(study, study::SteerVerb::cancel, 1, 3);
    CHECK(states_in(live_of(study)) == "#1 ending, #2 starting, #0 waits for ranks");
    CHECK(states_in(live_of(study, {"not running", false, ""})) ==
          "#1 interrupted, #2 interrupted, #0 waits for ranks");
}

TEST_CASE("a live page of many trials lists some, and counts all", "[report]") {
    StudyByHand study(study_of(300));
    study.began(250);
    const Json live = live_of(study, {"run by \xff", true, "only <the owner>"});
    CHECK(live.at("on_ranks") == 250);
    CHECK(live.at("trials").size() == most_live_trials);
    CHECK(live.at("standing") == "run by \\xff");
    CHECK(live.at("closed") == "only <the owner>");
    study.stop("asked to");
    CHECK(live_of(study).at("stopping").get<std::string>().starts_with("stopping for "));
}

} // namespace live_data_test
