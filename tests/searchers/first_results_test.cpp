// SPDX-License-Identifier: Apache-2.0
#include "searchers/results/first_results.hpp"

#include "searchers/table.hpp"
#include "support/catch.hpp"

namespace first_results_test {

using namespace ranktune;
using namespace ranktune::searchers;
using namespace ranktune::searchers::testing;

TEST_CASE("a trial has its result when it first stops", "[searchers]") {
    const space::SearchSpace space = cube(1);
    Table table(space);
    std::vector<TrialId> trials;
    for (const double x : {0.1, 0.2, 0.3, 0.4}) trials.push_back(table.ask(space.decode(std::vector{x})));
    Observations& seen = table.seen;
    seen.reported(trials[1], 1, 0.4);
    seen.reported(trials[0], 1, 0.5);
    seen.paused(trials[0], 1);
    seen.over(trials[2], 0, study::TrialPhase::failed);
    seen.reported(trials[1], 2, 0.6);
    seen.over(trials[1], 2, study::TrialPhase::stopped);
    seen.reported(trials[0], 3, 0.9); // promoted
    seen.over(trials[0], 3, study::TrialPhase::finished);
    seen.over(trials[3], 0, study::TrialPhase::finished); // without a report

    FirstResults results;
    std::vector<std::pair<std::uint32_t, double>> read;
    for (std::size_t i = 0; i < seen.size(); ++i)
        if (const auto result = results.read(seen[i])) {
            CHECK(result->point == result->trial.value());
            read.emplace_back(result->trial.value(), result->score);
        }
    CHECK(read == std::vector<std::pair<std::uint32_t, double>>{{0, 0.5}, {2, -infinite}, {1, 0.6}, {3, -infinite}});
}

TEST_CASE("pauses are in the snapshot of a table", "[searchers]") {
    const space::SearchSpace space = cube(1);
    Table table(space);
    const TrialId trial = table.add({0.5}, 1.0, 3);
    table.seen.paused(trial, 3);
    study::Bytes bytes;
    study::Encoder out(bytes);
    table.seen.snapshot(out);
    Observations copy(1);
    study::Decoder in(bytes);
    copy.restore(in);
    REQUIRE(copy.size() == 3);
    CHECK(copy[2].kind == Observation::Kind::paused);
    CHECK(copy[2].trial == trial);
    CHECK(copy[2].iteration == 3);
}

} // namespace first_results_test
