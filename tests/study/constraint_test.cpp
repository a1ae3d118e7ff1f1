// SPDX-License-Identifier: Apache-2.0
// study.constraints: how they are read, written and compared.
#include "study/constraint.hpp"

#include <cmath>

#include "ranktune/schedulers/objective_reader.hpp"
#include "ranktune/study/change.hpp"
#include "study_files.hpp"
#include "support/catch.hpp"

namespace constraint_test {

using namespace ranktune;
using namespace ranktune::study;
using namespace ranktune::study::testing;

namespace {

Parts with_constraints(const std::string& list) {
    Parts parts = free_parts();
    parts.study += "constraints = " + list + "\n"; // line 7
    return parts;
}

} // namespace

TEST_CASE("constraints are comparisons of metrics, and part of what a study is", "[study]") {
    const StudySpec spec = parse(with_constraints(R"(["latency <= 5", "recall>=0.9"])").text());
    const std::vector<Constraint> expected = {{"latency", 5.0, true}, {"recall", 0.9, false}};
    CHECK(spec.objective.constraints == expected);
    CHECK(study::text(spec.objective.constraints) == "latency <= 5.0 and recall >= 0.9");
    const std::string resolved = resolved_toml(spec);
    CHECK(resolved.find("constraints = [\"latency <= 5.0\", \"recall >= 0.9\"]\n") != std::string::npos);
    CHECK(parse_resolved(resolved).objective.constraints == expected);
    const auto changes = differences(spec, parse(with_constraints(R"(["latency <= 6"])").text()));
    REQUIRE(changes.size() == 1);
    CHECK(changes.front().key == "study.constraints");
    CHECK_FALSE(changes.front().may_change);
}

TEST_CASE("mistakes of study.constraints", "[study]") {
    CHECK(mistake(with_constraints("\"latency <= 5\"").text()) ==
          "7:15 study.constraints: needs a list of comparisons: [\"METRIC <= NUMBER\", ...]");
    CHECK(mistake(with_constraints("[\"latency < 5\"]").text()) ==
          "7:16 study.constraints: needs a comparison in quotes, METRIC <= NUMBER or METRIC >= NUMBER, not \"latency < "
          "5\"");
    CHECK(mistake(with_constraints("[5]").text()) ==
          "7:16 study.constraints: needs a comparison in quotes, METRIC <= NUMBER or METRIC >= NUMBER, not an integer");
    Parts mlp;
    mlp.study += "constraints = [\"val_los <= 5\"]\n";
    CHECK(mistake(mlp.text())
              .find("7:16 study.constraints: the trainable 'mlp' does not report \"val_los\"; did you "
                    "mean 'val_loss'?") == 0);
    Parts warm = with_constraints("[\"latency <= 5\"]");
    warm.rest = "[searcher]\ntype = \"tpe\"\nwarm_start = [\"old\"]\n";
    CHECK(mistake(warm.text()).find("searcher.warm_start: does not go with study.constraints") != std::string::npos);
}

TEST_CASE("a report is complete with the metrics of all constraints, and worst where one is violated", "[study]") {
    schedulers::ObjectiveReader reader({"loss", Mode::min, {{"latency", 5.0, true}, {"recall", 0.5, false}}});
    const auto id = [](unsigned n) { return MetricId(static_cast<MetricId::rep>(n)); };
    reader.apply(MetricDefined{id(0), "recall"});
    reader.apply(MetricDefined{id(1), "loss"});
    CHECK_FALSE(reader.read({{id(1), 1.0}, {id(0), 0.75}}).complete); // latency was never reported
    reader.apply(MetricDefined{id(2), "latency"});
    const auto reading = reader.read({{id(2), 7.0}, {id(1), 1.5}, {id(0), 0.25}});
    CHECK(reading.complete);
    CHECK(reading.value == 1.5);
    CHECK(reading.violation == 2.25);
    CHECK(reader.read({{id(2), 5.0}, {id(1), 1.5}, {id(0), 0.5}}).feasible());
    CHECK(reader.read({{id(2), NAN}, {id(1), 1.5}, {id(0), 0.5}}).violation == INFINITY);
    Reported report;
    report.metrics = {{id(2), 7.0}, {id(1), 1.5}, {id(0), 0.25}};
    CHECK(reader.value(report) == INFINITY);
    CHECK(reader.score(reader.value(report)) == -INFINITY);
    report.metrics.pop_back();
    CHECK(std::isnan(reader.value(report)));

    Bytes bytes;
    Encoder out(bytes);
    reader.snapshot(out);
    schedulers::ObjectiveReader again({"loss", Mode::min, {{"latency", 5.0, true}, {"recall", 0.5, false}}});
    Decoder in(bytes);
    again.restore(in);
    CHECK(in.empty());
    CHECK(again.read({{id(2), 7.0}, {id(1), 1.5}, {id(0), 0.25}}).violation == 2.25);
}

TEST_CASE("violations have an order below every feasible result", "[study]") {
    const auto violating = [](double violation, double value = 1.0) {
        Score score(value, false);
        score.violation = violation;
        return score;
    };
    CHECK(Score(-1e299).order() > violating(1e-9).order());
    CHECK(violating(1e-9).order() > violating(0.5).order());
    CHECK(violating(0.5).order() > violating(1e12).order());
    CHECK(violating(1e12).order() > Score(-INFINITY).order());
    CHECK(violating(INFINITY).order() == -INFINITY);
    CHECK(violating(0.5, -INFINITY).order() == -INFINITY);
    CHECK(violating(0.5).rank() == -INFINITY);
}

} // namespace constraint_test
