// SPDX-License-Identifier: Apache-2.0
// Names of metrics: each gets a number once, however many there are.

#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "small_core.hpp"

namespace ranktune::tuner::metrics_test {
namespace {

using testing::SmallCore;

study::ReportArrived report_of(const SmallCore& study, Iteration iteration, std::vector<study::NamedMetric> metrics) {
    return {TrialId{0}, study.attempt(0), study.incarnation(), iteration, 1.0, std::move(metrics)};
}

std::vector<study::NamedMetric> numbered(std::uint32_t from, std::uint32_t to) {
    std::vector<study::NamedMetric> metrics;
    for (std::uint32_t i = from; i < to; ++i) metrics.push_back({"m" + std::to_string(i), 1.0 * i});
    return metrics;
}

} // namespace

TEST_CASE("a metric keeps its number, wherever it stands in a report", "[tuner]") {
    SmallCore study(testing::small_study("max_iterations = 9", ""));
    study.began({"n0"});
    study.step(report_of(study, 1, {{"a", 1.0}, {"score", 2.0}, {"b", 3.0}}));
    CHECK(study.records().size() == 4); // three definitions and the report
    study.step(report_of(study, 2, {{"b", 4.0}, {"new", 5.0}, {"score", 6.0}, {"a", 7.0}}));
    const auto* report = study.record<study::Reported>();
    REQUIRE(report != nullptr);
    std::string shown;
    for (const auto& [id, value] : report->metrics)
        shown += study.state().metrics[id.value()] + "=" + std::to_string(static_cast<int>(value)) + " ";
    CHECK(shown == "b=4 new=5 score=6 a=7 ");
    CHECK(study.state().metrics == std::vector<std::string>{"a", "score", "b", "new"});
    CHECK(study.trial(0).best == 6.0);
}

TEST_CASE("a study has at most 65,535 names of metrics, and says so", "[tuner]") {
    Tuner core(study::parse_study(testing::small_study("max_iterations = 9", ""), "small.toml", {},
                                  ranktune::testing::known({ranktune::testing::any_trainable("any")})));
    Output out;
    core.create("uuid", study::resolved_toml(core.spec()), "test", out);
    const Incarnation incarnation = Incarnation{}.next();
    core.step({StudyTime{}, study::Began{incarnation, {{Rank{1}, "n0", 0}}, "", {}}}, out);
    out.clear();
    const auto report = [&](Iteration iteration, std::uint32_t from, std::uint32_t to) {
        std::vector<study::NamedMetric> metrics = numbered(from, to);
        metrics.insert(metrics.begin(), {"score", 1.0});
        core.step({StudyTime{}, study::ReportArrived{TrialId{0}, core.state().trial(TrialId{0}).attempt.id, incarnation,
                                                     iteration, 1.0, std::move(metrics)}},
                  out);
    };
    report(1, 0, 65'534);
    CHECK(core.state().metrics.size() == 65'535);
    CHECK(core.state().trial(TrialId{0}).iteration == 1);
    report(2, 0, 65'534); // no new name
    CHECK_THROWS_WITH(report(3, 65'000, 65'600), Catch::Contains("at most 65535") && Catch::Contains("'m65534'"));
    CHECK(core.state().trial(TrialId{0}).iteration == 2);
}

} // namespace ranktune::tuner::metrics_test
