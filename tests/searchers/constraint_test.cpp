// SPDX-License-Identifier: Apache-2.0
// Searchers in a study with constraints.
#include <algorithm>
#include <cmath>

#include "searchers/learner.hpp"
#include "searchers/results/largest_budget.hpp"
#include "support/catch.hpp"
#include "support/known.hpp"

namespace constraint_test {

using namespace ranktune;
using namespace ranktune::searchers;
using namespace ranktune::searchers::testing;

namespace {

/// Smaller x0 is better, and 0.6 <= x0 is demanded.
study::Score limited_score(const space::Configuration& configuration) {
    const double x = configuration.at("x0").as_double();
    study::Score score(-x, x >= 0.6);
    score.violation = std::max(0.0, 0.6 - x);
    return score;
}

} // namespace

TEST_CASE("violators rank below all others, the smaller violation first, or as if there were no constraint",
          "[searchers]") {
    const space::SearchSpace space = cube(1);
    Table table(space);
    for (const double x : {0.1, 0.7, 0.5, 0.9}) {
        const auto configuration = space.decode(std::vector{x});
        table.seen.reported(table.ask(configuration), 1, limited_score(configuration));
    }
    const auto trials = [&](LargestBudget::Violators violators) {
        std::size_t counted = 0;
        LargestBudget budget(
            [&](std::size_t, std::size_t finite) {
                counted = finite;
                return true;
            },
            violators);
        budget.read(table.seen);
        std::vector<std::uint32_t> order;
        for (const auto& point : budget.points()) order.push_back(point.trial.value());
        return std::pair(order, counted);
    };
    CHECK(trials(LargestBudget::Violators::ordered).first == std::vector<std::uint32_t>{1, 3, 2, 0});
    CHECK(trials(LargestBudget::Violators::as_reported).first == std::vector<std::uint32_t>{0, 2, 1, 3});

    study::Bytes bytes;
    study::Encoder out(bytes);
    table.seen.snapshot(out);
    Observations again(1);
    study::Decoder in(bytes);
    again.restore(in);
    CHECK(again[1].score == table.seen[1].score);
    CHECK(again[1].score.violation == 0.5);
}

TEST_CASE("searchers find the best result that keeps the constraints", "[searchers]") {
    for (const std::string& searcher : ranktune::testing::learning_searchers()) {
        INFO(searcher);
        Learner learner(study_with(searcher, cube(2), 3));
        std::vector<double> last;
        double best = 1.0;
        for (int i = 0; i < (learner.searcher->name() == "gp" ? 40 : 80); ++i) {
            const TrialId trial = learner.create_next();
            const auto& configuration = learner.trials[trial.value()];
            const study::Score score = limited_score(configuration);
            learner.seen.reported(trial, 1, score, std::vector{0.6 - configuration.at("x0").as_double()});
            learner.seen.over(trial, 1, study::TrialPhase::finished);
            if (score.feasible) best = std::min(best, configuration.at("x0").as_double());
        }
        CHECK(best < 0.65);
    }
}

TEST_CASE("gp finds a feasible corner, and the optimum on the border of two constraints", "[searchers][gp]") {
    const auto corner = [](const space::Configuration& c) {
        return std::vector{c.at("x0").as_double() - 0.2, c.at("x1").as_double() - 0.1};
    };
    const auto score_of = [&](const space::Configuration& c) {
        const std::vector<double> distances = corner(c);
        // The unlimited optimum, at (1, 1), is far outside.
        const double loss = std::hypot(c.at("x0").as_double() - 1.0, c.at("x1").as_double() - 1.0);
        study::Score score(-loss, distances[0] <= 0.0 && distances[1] <= 0.0);
        score.violation = std::max(0.0, distances[0]) + std::max(0.0, distances[1]);
        return score;
    };
    for (std::uint64_t seed = 1; seed < 4; ++seed) {
        Learner learner(study_with("gp", cube(2), seed));
        double best = 2.0;
        int feasible = 0;
        for (int i = 0; i < 40; ++i) {
            const TrialId trial = learner.create_prepared();
            const auto& configuration = learner.trials[trial.value()];
            const study::Score score = score_of(configuration);
            learner.seen.reported(trial, 1, score, corner(configuration));
            learner.seen.over(trial, 1, study::TrialPhase::finished);
            if (!score.feasible) continue;
            ++feasible;
            best = std::min(best, -score.values()[0]);
        }
        // The best feasible point is the corner (0.2, 0.1): 1.2042. Two points in a hundred are feasible at random.
        CHECK(best < 1.21);
        CHECK(feasible >= 5);
        const Observations seen = learner.seen.first(learner.seen.size());
        CHECK(make_searcher(*learner.spec)->prepare(1000, seen)().configuration ==
              learner.searcher->prepare(1000, seen)().configuration);
    }
}

TEST_CASE("distances from constraints are in the table, in its views and in its snapshot", "[searchers]") {
    const space::SearchSpace space = cube(1);
    Table table(space);
    table.add({0.5}, 1.0);
    const TrialId trial = table.ask(space.decode(std::vector{0.25}));
    table.seen.reported(trial, 1, study::Score(1.0), std::vector{-0.5, 2.0});
    CHECK(table.seen.distances(1).empty());
    CHECK(table.seen.distances(3) == std::vector{-0.5, 2.0});
    CHECK(table.seen.first(4).distances(3) == std::vector{-0.5, 2.0});
    study::Bytes bytes;
    study::Encoder out(bytes);
    table.seen.snapshot(out);
    Observations again(1);
    study::Decoder in(bytes);
    again.restore(in);
    CHECK(again.distances(1).empty());
    CHECK(again.distances(3) == std::vector{-0.5, 2.0});
}

TEST_CASE("tpe, cmaes and evolution approach the feasible region while nothing is feasible", "[searchers]") {
    // Random search would need some 16,000 trials for the corner of 0.04 along each of three axes.
    const auto corner_score = [](const space::Configuration& configuration) {
        double violation = 0.0;
        for (const auto& [name, value] : configuration.entries()) violation += std::max(0.0, value.as_double() - 0.04);
        study::Score score(1.0, violation == 0.0);
        score.violation = violation;
        return score;
    };
    for (const char* searcher : {"tpe", "cmaes", "evolution"}) {
        INFO(searcher);
        Learner learner(study_with(searcher, cube(3), 5));
        double least = 3.0;
        for (int i = 0; i < 150; ++i) {
            const TrialId trial = learner.create_next();
            const study::Score score = corner_score(learner.trials[trial.value()]);
            learner.seen.reported(trial, 1, score);
            learner.seen.over(trial, 1, study::TrialPhase::finished);
            least = std::min(least, score.violation);
        }
        CHECK(least < 0.1);
    }
}

TEST_CASE("gp with several objectives covers what keeps the constraints", "[searchers]") {
    auto spec = study_with("gp", cube(2), 3);
    spec.objective.others = {{"second", study::Mode::max}};
    Learner learner(spec);
    int kept = 0;
    std::set<int> tenths;
    for (int i = 0; i < 30; ++i) {
        const TrialId trial = i < 10 ? learner.create() : learner.create_prepared();
        const std::vector<double> x = learner.unit(trial);
        const double values[] = {x[0], 1.0 - x[0]}; // every x0 is on the front
        study::Score score(values, x[1] >= 0.7);
        score.violation = score.feasible ? 0.0 : 0.7 - x[1];
        learner.seen.reported(trial, 1, score, std::vector{0.7 - x[1]});
        learner.seen.over(trial, 1, study::TrialPhase::finished);
        if (i >= 10 && score.feasible) ++kept;
        if (i >= 10 && score.feasible) tenths.insert(static_cast<int>(10.0 * x[0]));
    }
    CHECK(kept >= 16); // of 20
    CHECK(tenths.contains(0));
    CHECK(tenths.contains(9));
}

} // namespace constraint_test
