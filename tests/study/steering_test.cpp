// SPDX-License-Identifier: Apache-2.0
// Requests of users: what they type, and the files that carry it.
#include <functional>
#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "study/steering_file.hpp"
#include "study_files.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

using namespace ranktune;
using namespace ranktune::study;
using namespace ranktune::study::testing;

namespace {

space::SearchSpace steered_space() {
    Parts parts = free_parts();
    parts.space =
        "lr = \"loguniform(1e-4, 10.0)\"\nhidden = [[64], [128, 64]]\n[space.opt]\nkind = [\"sgd\", \"adam\"]\n"
        "momentum = { domain = \"uniform(0, 1)\", condition = \"opt.kind == 'sgd'\" }\n";
    return parse(parts.text()).space;
}

std::string message_of(const std::function<void()>& act) { return ranktune::testing::error_of<base::UsageError>(act); }

} // namespace

TEST_CASE("a request is read from its file as it was asked", "[study]") {
    const space::SearchSpace space = steered_space();
    std::vector<Steering> all(5);
    all[0] = {1, SteerVerb::pause, base::TrialId{17}, {}, {}};
    all[1] = {~std::uint64_t{0}, SteerVerb::cancel, base::TrialId{0}, {}, {}};
    all[2] = {3, SteerVerb::set, {}, {}, {"study.num_trials=120", "stop.metrics=[{name='a\"b', max=1}]"}};
    all[3] = {4, SteerVerb::add, {}, {parse_point({"lr=1", "hidden=[128,64]", "opt.kind=sgd"}, space)}, {}};
    all[4] = {5, SteerVerb::add, {}, {{}, parse_point({"opt.kind='adam'"}, space)}, {}};
    for (const Steering& ask : all) {
        const SteeringFile read = parse_steering(steering_text({"ada \"x\"@n0", ask}), space);
        CHECK(read.who == "ada \"x\"@n0");
        CHECK(read.ask == ask);
    }
    CHECK(describe(all[0]) == "pause trial #17");
    CHECK(describe(all[2]) == "set study.num_trials=120, stop.metrics=[{name='a\"b', max=1}]");
    CHECK(describe(all[3]) == "add 1 trial: lr=1.0 hidden=[128,64] opt.kind=sgd");
    CHECK(describe(all[4]) == "add 2 trials: (suggested); opt.kind=adam");
}

TEST_CASE("a file that is no request says what is wrong with it", "[study]") {
    const space::SearchSpace space = steered_space();
    const std::string good = steering_text({"ada", {9, SteerVerb::pause, base::TrialId{1}, {}, {}}});
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        return text.replace(text.find(from), from.size(), to);
    };
    const auto problem = [&](const std::string& text) {
        return message_of([&] { (void)parse_steering(text, space); });
    };
    CHECK(problem("").find("no valid 'request'") != std::string::npos);
    CHECK(problem("\x01").find("no valid TOML") != std::string::npos);
    CHECK(problem(with("'pause'", "'paint'")).find("'paint' is none of pause, resume") != std::string::npos);
    CHECK(problem(with("trial = 1", "trial = -1")).find("no trial -1") != std::string::npos);
    CHECK(problem(with("0000000000000009", "nine")).find("no valid number") != std::string::npos);
    CHECK(problem(good + "[[points]]\nlr = 99.0\n").find("lr: 99.0 is no value of") != std::string::npos);
}

TEST_CASE("trials to add are read from words and from CSV, with the place of a mistake", "[study]") {
    const space::SearchSpace space = steered_space();
    const auto points = parse_points_csv("lr,hidden,opt.kind\r\n0.5,\"[128, 64]\",sgd\n\n,[64],\n", "more.csv", space);
    REQUIRE(points.size() == 2);
    CHECK(points[0].text() == "lr=0.5 hidden=[128,64] opt.kind=sgd");
    CHECK(points[1].text() == "hidden=[64]");
    const auto csv = [&](const std::string& text) {
        return message_of([&] { (void)parse_points_csv(text, "more.csv", space); });
    };
    CHECK(csv("lr\n0.5\n50\n") == "more.csv:3: lr: 50.0 is no value of loguniform(0.0001, 10.0)");
    CHECK(csv("lr,x\n0.5\n") == "more.csv:2: the row has 1 cell, and the first line names 2");
    CHECK(csv("lr\n").find("no trial in it") != std::string::npos);
    CHECK(csv("\nlr,lr\n0.1,0.2\n") == "more.csv:2: two columns have the name 'lr'");
    CHECK(csv("\"lr\n0.1\n") == "more.csv:1: a quoted cell does not end");
    CHECK(csv("lr\n0.1\n\"0.2\n") == "more.csv:3: a quoted cell does not end");
    const auto words = [&](const std::string& word) { return message_of([&] { (void)parse_point({word}, space); }); };
    CHECK(words("Lr=1").find("did you mean 'lr'?") != std::string::npos);
    CHECK(words("lr").find("the form is") != std::string::npos);
}

TEST_CASE("what can be set while a study runs is what the core alone reads", "[study]") {
    for (const char* key : {"study.num_trials", "study.time_budget", "failure.tolerate", "stop.time"})
        CHECK(may_be_set(key));
    for (const char* key : {"study.seed", "failure.report_timeout", "failure.collective_timeout",
                            "failure.forming_timeout", "scheduler.eta", "checkpoint.keep", "failure"})
        CHECK_FALSE(may_be_set(key));
    CHECK(key_of(" study.num_trials = 7") == "study.num_trials");
}
