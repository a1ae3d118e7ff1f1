// SPDX-License-Identifier: Apache-2.0
// The lines that a program which makes suggestions reads and writes.

#include "head/external/protocol.hpp"

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "head/external/question.hpp"
#include "ranktune/base/error.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace ranktune::head::testing {
namespace {

space::Configuration configuration(const std::vector<double>& unit) { return conditional_space().decode(unit); }

/// What is wrong with an answer to ask 4; empty: nothing.
std::string mistake(const std::string& line) {
    return ranktune::testing::error_of<base::FormatError>([&] { return read_answer(line, 4, conditional_space()); });
}

} // namespace

TEST_CASE("the first line describes the study and its space", "[external]") {
    const Study study(conditional_space(), "x");
    CHECK(study_line(*study.setting) ==
          R"({"protocol":1,"study":{"name":"s","seed":7,"metric":"loss","mode":"min",)"
          R"("objectives":[{"metric":"loss","mode":"min"}],"num_trials":20,"max_iterations":3,)"
          R"("space":[{"name":"lr","type":"float","low":0.0,"high":1.0,"log":false},)"
          R"({"name":"n","type":"int","low":1,"high":8,"log":false,"step":1},)"
          R"({"name":"act","type":"choice","values":["a","b"],"ordered":false},)"
          R"({"name":"opt.m","type":"float","low":0.0,"high":1.0,"log":false,"step":0.1,"when":"act == 'b'"}]}})"
          "\n");
}

TEST_CASE("every line of the table is told once, with values in the direction of the metric", "[external]") {
    Study study(conditional_space(), "x");
    const TrialId first = study.create(configuration({0.0, 0.0, 0.0, 0.0}), 3);
    study.report(first, 1, 0.5);
    const TrialId second = study.create(configuration({0.0, 0.99, 0.9, 0.5}));
    study.seen.paused(first, 1);
    study.report(second, 1, std::numeric_limits<double>::quiet_NaN());
    study.seen.over(second, 1, study::TrialPhase::failed);
    study.report(first, 2, 0.25);
    study.seen.over(first, 2, study::TrialPhase::finished);
    Teller teller;
    std::string all;
    const auto question = study.question(0);
    for (std::size_t line = 0; line < question.seen.size(); ++line) all += teller.next(question, line);
    CHECK(all == R"({"tell":{"trial":0,"state":"running","ask":3,"config":{"lr":0.0,"n":1,"act":"a"}}}
{"tell":{"trial":0,"state":"reported","iteration":1,"value":0.5}}
{"tell":{"trial":1,"state":"running","config":{"lr":0.0,"n":8,"act":"b","opt.m":0.5}}}
{"tell":{"trial":0,"state":"paused","iteration":1,"value":0.5}}
{"tell":{"trial":1,"state":"reported","iteration":1,"value":null}}
{"tell":{"trial":1,"state":"failed","iteration":1,"value":null}}
{"tell":{"trial":0,"state":"reported","iteration":2,"value":0.25}}
{"tell":{"trial":0,"state":"finished","iteration":2,"value":0.25}}
)");
    CHECK(ask_line(9) == "{\"ask\":9}\n");
}

TEST_CASE("several objectives and violations are told as they were reported", "[external]") {
    Study study(conditional_space(), "x");
    study.setting->objective.others = {{"speed", study::Mode::max}};
    study.setting->objective.constraints = {{"bytes", 10.0, true}};
    CHECK(study_line(*study.setting)
              .find(R"("objectives":[{"metric":"loss","mode":"min"},{"metric":"speed","mode":"max"}])") !=
          std::string::npos);
    const std::array<double, 2> values{-0.5, 3.0}; // larger is better
    const TrialId trial = study.create(configuration({0.0, 0.0, 0.0, 0.0}));
    study.report(trial, 1, study::Score(values, true));
    study::Score violates(values, false);
    violates.violation = 2.5;
    study.report(trial, 2, violates);
    study.report(trial, 3, study::Score());
    study.seen.over(trial, 3, study::TrialPhase::finished);
    Teller teller;
    const auto question = study.question(0);
    const auto told = [&](std::size_t line) { return teller.next(question, line); };
    static_cast<void>(told(0));
    CHECK(told(1) == R"({"tell":{"trial":0,"state":"reported","iteration":1,"value":0.5,"values":[0.5,3.0],)"
                     R"("violation":0.0}})"
                     "\n");
    CHECK(told(2) == R"({"tell":{"trial":0,"state":"reported","iteration":2,"value":null,"values":[0.5,3.0],)"
                     R"("violation":2.5}})"
                     "\n");
    const std::string last = R"("iteration":3,"value":null,"values":[null,null],"violation":null}})"
                             "\n";
    CHECK(told(3) == R"({"tell":{"trial":0,"state":"reported",)" + last);
    CHECK(told(4) == R"({"tell":{"trial":0,"state":"finished",)" + last);
}

TEST_CASE("a configuration that a trial took over is told as the table has it", "[external]") {
    Study study(conditional_space(), "x");
    const TrialId trial = study.create(configuration({0.0, 0.0, 0.0, 0.0}));
    study.seen.asked(trial, 2, study.setting->space, configuration({0.0, 0.0, 0.9, 0.5}));
    CHECK(study.question(0).configuration_at(0).text() == "lr=0.0 n=1 act=a");
    CHECK(study.question(0).configuration_at(1).text() == "lr=0.0 n=1 act=b opt.m=0.5");
}

TEST_CASE("an answer is a configuration of the space; rounding is forgiven", "[external]") {
    const auto read = [](const std::string& config) {
        return read_answer(R"({"ask": 4, "config": )" + config + "}", 4, conditional_space()).text();
    };
    CHECK(read(R"({"act": "b", "n": 3, "lr": 0.5, "opt.m": 0.3})") == "lr=0.5 n=3 act=b opt.m=0.3");
    CHECK(read(R"({"act": "b", "n": 3.0, "lr": 0.5, "opt.m": 0.30000000000000004})") == "lr=0.5 n=3 act=b opt.m=0.3");
    CHECK(read(R"({"act": "a", "n": 3, "lr": 0.5, "opt.m": 0.3})") == "lr=0.5 n=3 act=a");
    CHECK(read(R"({"act": "a", "n": 3, "lr": 0.5, "note": "another name", "nn": {"a": [null]}})") ==
          "lr=0.5 n=3 act=a");
    CHECK(read(R"({"act": "a", "n": 3, "lr": 1.0})") == "lr=0.9999999999999999 n=3 act=a");
    const space::SearchSpace fixed({{"g", space::parse_domain("grid([1, 2, 3])"), {}},
                                    {"c", space::Constant{"v"}, {}},
                                    {"x", space::parse_domain("uniform(0, 10)"), {}}});
    const auto left_out = read_answer(R"({"ask": 4, "config": {"x": 2}})", 4, fixed);
    CHECK(left_out.text() == "g=2 c=v x=2.0"); // grids cycle with the asks
    CHECK(left_out.at("x").is_double());
}

TEST_CASE("a wrong answer is named", "[external]") {
    CHECK(mistake("hello") == R"(wrote 'hello', where {"ask": N, "config": {...}} is expected)");
    CHECK(mistake("[1]") == R"(wrote '[1]', where {"ask": N, "config": {...}} is expected)");
    CHECK(mistake(R"({"ask": 4})") == R"(wrote '{"ask": 4}', where {"ask": N, "config": {...}} is expected)");
    CHECK(mistake(R"({"ask": 3, "config": {}})") == "answers ask 3, where ask 4 was to be answered");
    CHECK(mistake(R"({"ask": "4", "config": {}})") == "answers ask \"4\", where ask 4 was to be answered");
    CHECK(mistake(R"({"ask": 4, "config": 1})") == "has a \"config\" that is no object");
    CHECK(mistake(R"({"ask": 4, "config": {"act": "a", "n": 3}})") == "gives no value for 'lr'");
    CHECK(mistake(R"({"ask": 4, "config": {"act": "a", "n": 3, "lrr": 0.5, "note": 1}})") ==
          "gives no value for 'lr'; it has 'lrr', which is no hyper-parameter of [space]");
    const std::string much(100'000, 'x');
    for (const std::string& line : {much, R"({"ask": ")" + much + R"(", "config": {}})",
                                    R"({"ask": 4, "config": {"act": ")" + much + R"(", "n": 3, "lr": 0.5}})",
                                    R"({"ask": 4, "config": {"act": {")" + much + R"(": 1}, "n": 3, "lr": 0.5}})"})
        CHECK(mistake(line).size() < 400);
    CHECK(mistake(R"({"ask": 4, "config": {"act": "a", "n": 9, "lr": 0.5}})") ==
          "suggests n = 9, which is no value of randint(1, 9)");
    CHECK(mistake(R"({"ask": 4, "config": {"act": "a", "n": 3, "lr": 1.5}})") ==
          "suggests lr = 1.5, which is no value of uniform(0.0, 1.0)");
    CHECK(mistake(R"({"ask": 4, "config": {"act": "b", "n": 3, "lr": 0.5, "opt.m": 0.33}})") ==
          "suggests opt.m = 0.33, which is no value of quniform(0.0, 1.0, 0.1)");
    CHECK(mistake(R"({"ask": 4, "config": {"act": null, "n": 3, "lr": 0.5}})") ==
          "suggests act = None, which is no value of ['a', 'b']");
    CHECK_FALSE(mistake(std::string(100, '[')).empty());
}

} // namespace ranktune::head::testing
