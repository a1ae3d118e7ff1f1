// SPDX-License-Identifier: Apache-2.0
// Results that violate a constraint: never best, never promoted before others, and told to the searcher.
#include <string>
#include <vector>

#include "small_core.hpp"

namespace ranktune::tuner {
namespace {

using testing::SmallCore;

const std::string latency_limit = "constraints = [\"latency <= 5\"]\n";

void report_with(SmallCore& core, std::uint32_t trial, Iteration iteration, double score,
                 std::optional<double> latency) {
    std::vector<study::NamedMetric> metrics = {{"score", score}};
    if (latency) metrics.push_back({"latency", *latency});
    core.step(study::ReportArrived{TrialId{trial}, core.attempt(trial), core.incarnation(), iteration, 1.0 * iteration,
                                   std::move(metrics)});
}

} // namespace

TEST_CASE("the best trial keeps the constraints", "[tuner]") {
    SmallCore core(testing::small_study("max_iterations = 2\n" + latency_limit, "[searcher]\ntype = \"tpe\"\n"));
    core.began({"n0", "n1"});
    report_with(core, 0, 1, 0.9, 7.0);
    CHECK_FALSE(core.state().best);
    CHECK(core.trial(0).last == 0.9);
    report_with(core, 1, 1, 0.5, 5.0);
    CHECK(core.state().best == TrialId(1));
    report_with(core, 0, 2, 0.75, 4.0);
    CHECK(core.state().best == TrialId(0));
    CHECK(core.trial(0).best == 0.75);
    CHECK(core.trial(0).best_iteration == 2);
    const auto& table = core.state().observations;
    std::vector<double> violations;
    for (std::size_t i = 0; i < table.size(); ++i)
        if (table[i].kind == searchers::Observation::Kind::reported) violations.push_back(table[i].score.violation);
    CHECK(violations == std::vector{2.0, 0.0, 0.0});

    study::Bytes bytes;
    study::Encoder out(bytes);
    core.core().snapshot(out);
    Tuner restored(core.core().spec());
    study::Decoder in(bytes);
    restored.restore(in);
    CHECK(restored.digest() == core.core().digest());
}

TEST_CASE("a rung ranks what violates a constraint last", "[tuner]") {
    SmallCore core(testing::small_study("max_iterations = 2\n" + latency_limit,
                                        "[scheduler]\ntype = \"asha\"\nvariant = \"stop\"\neta = 2\n"));
    core.began({"n0", "n1"});
    report_with(core, 0, 1, 0.1, 1.0);
    report_with(core, 1, 1, 0.9, 6.0);
    CHECK(core.trial(0).verdict.verb == Verb::go_on);
    CHECK(core.trial(1).verdict.verb == Verb::stop);
}

TEST_CASE("a study whose reports lack the metric of a constraint stops with its name", "[tuner]") {
    SmallCore core(testing::small_study("max_iterations = 2\n" + latency_limit, ""));
    core.began({"n0"});
    report_with(core, 0, 1, 0.9, {});
    CHECK(core.state().draining);
    CHECK(core.state().drain_message ==
          "the first report of trial #0 lacks the metric of a constraint 'latency'; it has score");
}

TEST_CASE("a study none of whose results keeps the constraints has no success", "[tuner]") {
    SmallCore core(testing::small_study("max_iterations = 1\n" + latency_limit, ""));
    core.began({"n0"});
    for (std::uint32_t trial = 0; trial < 4; ++trial) {
        report_with(core, trial, 1, 0.5, 6.0);
        core.over(trial, AttemptOutcome::stopped);
    }
    REQUIRE(core.state().ended);
    CHECK(core.state().outcome == StudyOutcome::no_success);
    CHECK(core.state().end_message.find("no report had a finite score and kept study.constraints (latency <= 5.0) in "
                                        "all 4 reports") == 0);
}

} // namespace ranktune::tuner
