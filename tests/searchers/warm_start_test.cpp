// SPDX-License-Identifier: Apache-2.0
// Results of earlier studies: how the table holds them, and what each searcher makes of them.
#include <algorithm>
#include <cmath>

#include "searchers/learner.hpp"
#include "support/catch.hpp"
#include "support/known.hpp"

namespace warm_start_test {

using namespace ranktune;
using namespace ranktune::searchers;
using namespace ranktune::searchers::testing;

namespace {

using Configuration = space::Configuration;

/// Best at 0.8 everywhere.
double far_from_optimum(const Configuration& c) {
    double sum = 0.0;
    for (const auto& [name, value] : c.entries()) sum += std::pow(value.as_double() - 0.8, 2);
    return std::sqrt(sum);
}

/// A learner that knows `count` random configurations of an earlier study of the same function.
Learner warm(const std::string& searcher, std::uint32_t count, std::size_t dimensions = 3) {
    Learner learner(study_with(searcher, cube(dimensions)));
    for (std::uint32_t i = 0; i < count; ++i) {
        const Configuration configuration = learner.spec->space.sample(55, TrialId(i));
        learner.seen.earlier({configuration, {{1, far_from_optimum(configuration)}}, false}, learner.spec->space,
                             study::Mode::min);
    }
    return learner;
}

/// Median distance from the optimum of the first suggestions.
double first_distance(Learner learner) {
    std::vector<double> distances;
    for (int i = 0; i < 10; ++i) {
        const TrialId trial = learner.create_next();
        distances.push_back(far_from_optimum(learner.trials[trial.value()]));
        learner.finish(trial, -distances.back());
    }
    std::ranges::sort(distances);
    return distances[5];
}

} // namespace

TEST_CASE("earlier trials come first in the table, with numbers of their own", "[searchers]") {
    const space::SearchSpace space = cube(1);
    Table table(space);
    const auto at = [&](double x) { return space.decode(std::vector{x}); };
    table.seen.earlier({at(0.5), {{1, 2.0}, {3, NAN}}, false}, space, study::Mode::min);
    table.seen.earlier({at(0.25), {}, true}, space, study::Mode::min);
    CHECK(table.seen.earlier_points() == 2);
    table.add({0.75}, 1.0);
    CHECK(table.seen.earlier_points() == 2);
    CHECK(table.seen.points() == 3);
    REQUIRE(table.seen.size() == 8);
    CHECK(table.seen[0].trial == TrialId(first_earlier_trial));
    CHECK(table.seen[1].score == study::Score(-2.0));
    CHECK(table.seen[2].score == study::Score(-infinite));
    CHECK(table.seen[3].phase == study::TrialPhase::finished);
    CHECK(table.seen[4].trial == TrialId(first_earlier_trial + 1));
    CHECK(table.seen[5].phase == study::TrialPhase::failed);
    CHECK(table.seen[7].trial == TrialId(0));
    CHECK(table.seen.point(table.seen[7].point) == std::vector{0.75});
    CHECK(table.seen.first(3).earlier_points() == 1);

    study::Bytes bytes;
    study::Encoder out(bytes);
    table.seen.snapshot(out);
    Observations again(1);
    study::Decoder in(bytes);
    again.restore(in);
    CHECK(in.empty());
    CHECK(again.size() == 8);
    CHECK(again.earlier_points() == 2);
    CHECK(again.point(1) == std::vector{0.25});
    again.over(TrialId(0), 1, study::TrialPhase::finished); // the newest points are known
    CHECK(again[8].point == 2);
    CHECK_THROWS(again.over(TrialId(1), 1, study::TrialPhase::finished));
}

TEST_CASE("searchers begin where an earlier study ended", "[searchers]") {
    for (const std::string& searcher : ranktune::testing::learning_searchers()) {
        INFO(searcher);
        const double cold = first_distance(warm(searcher, 0));
        const double after = first_distance(warm(searcher, 60));
        CAPTURE(cold, after);
        CHECK(after < 0.7 * cold);
    }
}

TEST_CASE("cmaes begins at the best of the earlier results that were trained furthest", "[searchers][cmaes]") {
    Learner learner(study_with("cmaes", cube(2)));
    const auto at = [&](double x, double y) { return learner.spec->space.decode(std::vector{x, y}); };
    learner.seen.earlier({at(0.1, 0.1), {{1, 9.0}}, false}, learner.spec->space, study::Mode::max);
    learner.seen.earlier({at(0.9, 0.8), {{1, 1.0}, {3, 2.0}}, false}, learner.spec->space, study::Mode::max);
    learner.seen.earlier({at(0.2, 0.3), {{3, 1.0}}, false}, learner.spec->space, study::Mode::max);
    learner.seen.earlier({at(0.5, 0.5), {{3, INFINITY}}, false}, learner.spec->space, study::Mode::max);
    double x = 0.0;
    double y = 0.0;
    for (std::uint64_t i = 0; i < 200; ++i) {
        const auto unit = learner.spec->space.encode(*learner.searcher->suggest(i, learner.seen));
        x += unit[0] / 200.0;
        y += unit[1] / 200.0;
    }
    CHECK(x > 0.7); // samples beyond the border are drawn in
    CHECK(y > 0.65);
}

TEST_CASE("what an earlier study tried can be tried again", "[searchers]") {
    const space::SearchSpace space = space_of({{"n", "choice([1, 2], ordered=true)"}});
    Learner learner(study_with("evolution", space, 1, {{"avoid_duplicates", true}}));
    for (const int n : {1, 2})
        learner.seen.earlier({space.decode(std::vector{n == 1 ? 0.25 : 0.75}), {{1, 1.0 * n}}, false}, space,
                             study::Mode::max);
    const TrialId first = learner.create();
    const TrialId second = learner.create();
    CHECK(learner.trials[first.value()] != learner.trials[second.value()]);
}

} // namespace warm_start_test
