// SPDX-License-Identifier: Apache-2.0
// The tables of metrics.h5.
#include "studydir/results.hpp"

#include <cmath>

#include "tuner/small_core.hpp"

namespace ranktune::studydir::results_test {
namespace {

/// Null: the table of trials has no such column.
const std::vector<double>* numbers(const storage::Results& results, const std::string& name,
                                   storage::Column::Role role) {
    for (const storage::Column& column : results.tables.at(1).columns)
        if (column.name == name && column.role == role) return &std::get<std::vector<double>>(column.values);
    return nullptr;
}

} // namespace

TEST_CASE("the trials' table has what their side tasks reported, of the newest attempt", "[studydir]") {
    using Kind = study::SideTask::Kind;
    tuner::testing::SmallCore core(
        tuner::testing::small_study("num_trials = 2\nmax_iterations = 1\n",
                                    "[failure]\nmax_failures = 1\n[before]\ncommand = \"prepare\"\n"
                                    "[after_trial]\ncommand = \"evaluate\"\n"));
    ResultsBuilder builder(core.core().spec());
    const auto build = [&] {
        for (const study::Record& record : core.records()) builder.add(record);
    };
    const auto side = [&](const study::SideTask& task, std::uint32_t attempt, std::vector<study::NamedMetric> metrics,
                          study::AttemptOutcome outcome) {
        core.step(study::ReportArrived{unit_of(task), base::AttemptId{attempt}, core.incarnation(), 1, 1.0,
                                       std::move(metrics)});
        build();
        core.step(study::AttemptOver{unit_of(task), base::AttemptId{attempt}, core.incarnation(), outcome, {}});
        build();
    };
    build();
    core.began({"n0"});
    build();
    side({Kind::before, {}}, 1, {{"rows", 10.0}}, study::AttemptOutcome::finished);
    for (std::uint32_t trial = 0; trial < 2; ++trial) {
        core.report(trial, 1, 0.5);
        build();
        core.over(trial, study::AttemptOutcome::stopped);
        build();
    }
    const study::SideTask first{Kind::after_trial, base::TrialId{0}};
    side(first, 1, {{"test", 0.1}, {"early", 1.0}}, study::AttemptOutcome::failed);
    side(first, 2, {{"test", 0.2}, {"seconds", 7.0}}, study::AttemptOutcome::finished);
    const storage::Results results = builder.finish("now");
    using Role = storage::Column::Role;
    const auto* test = numbers(results, "test", Role::metric);
    REQUIRE(test != nullptr);
    REQUIRE(test->size() == 2);
    CHECK(test->front() == 0.2);
    CHECK(std::isnan(test->back()));
    CHECK(std::isnan(numbers(results, "early", Role::metric)->front())); // of the attempt that failed
    CHECK(numbers(results, "seconds", Role::metric)->front() == 7.0);    // beside the field of that name
    CHECK(numbers(results, "seconds", Role::field)->front() == 1.0);
    CHECK(numbers(results, "rows", Role::metric) == nullptr);
    CHECK(results.tables.at(0).columns.front().size() == 2); // no reports of trials
}

} // namespace ranktune::studydir::results_test
