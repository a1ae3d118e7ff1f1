// SPDX-License-Identifier: Apache-2.0
// Searchers in a study with constraints.
#include <algorithm>
#include <cmath>

#include "searchers/largest_budget.hpp"
#include "searchers/learner.hpp"
#include "support/catch.hpp"

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

TEST_CASE("violators rank below all others, the smaller violation first, or as the worst", "[searchers]") {
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
    CHECK(trials(LargestBudget::Violators::worst).first == std::vector<std::uint32_t>{1, 3, 0, 2});

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
    for (const char* searcher : {"tpe", "gp", "cmaes", "evolution", "bohb"}) {
        INFO(searcher);
        Learner learner(study_with(searcher, cube(2), 3));
        std::vector<double> last;
        double best = 1.0;
        for (int i = 0; i < 80; ++i) {
            const TrialId trial =
                learner.searcher->prepares_ahead(1) > 0 ? learner.create_prepared() : learner.create();
            const auto& configuration = learner.trials[trial.value()];
            const study::Score score = limited_score(configuration);
            learner.seen.reported(trial, 1, score);
            learner.seen.over(trial, 1, study::TrialPhase::finished);
            if (score.feasible) best = std::min(best, configuration.at("x0").as_double());
        }
        CHECK(best < 0.65);
    }
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
            const TrialId trial =
                learner.searcher->prepares_ahead(1) > 0 ? learner.create_prepared() : learner.create();
            const study::Score score = corner_score(learner.trials[trial.value()]);
            learner.seen.reported(trial, 1, score);
            learner.seen.over(trial, 1, study::TrialPhase::finished);
            least = std::min(least, score.violation);
        }
        CHECK(least < 0.1);
    }
}

} // namespace constraint_test
