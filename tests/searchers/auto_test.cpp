// SPDX-License-Identifier: Apache-2.0
// Which model `auto` asks.

#include "searchers/auto.hpp"

#include <string>
#include <utility>
#include <vector>

#include "searchers/learner.hpp"
#include "support/catch.hpp"

namespace ranktune::searchers::testing {
namespace {

space::SearchSpace with_categories(int categories, int numbers) {
    std::vector<std::pair<std::string, std::string>> calls;
    for (int i = 0; i < categories; ++i) calls.emplace_back("c" + std::to_string(i), "choice(['a', 'b', 'c'])");
    for (int i = 0; i < numbers; ++i) calls.emplace_back("x" + std::to_string(i), "uniform(0, 1)");
    return space_of(calls);
}

/// Ends `count` trials that took prepared suggestions.
void train(Learner& learner, int count) {
    for (int i = 0; i < count; ++i) {
        const TrialId trial = learner.create_prepared();
        learner.finish(trial, -learner.unit(trial)[0]);
    }
}

} // namespace

TEST_CASE("auto: a Gaussian process suggests few trials with conditions or categories, none of many parameters",
          "[searchers][auto]") {
    CHECK(gp_trials_on(cube(1), 300) == 300);
    CHECK(gp_trials_on(cube(20), 300) == 300);
    CHECK(gp_trials_on(cube(21), 300) == 0);
    CHECK(gp_trials_on(with_categories(1, 3), 300) == 300);
    CHECK(gp_trials_on(with_categories(1, 2), 300) == 60);
    CHECK(gp_trials_on(with_categories(2, 0), 300) == 60);
    CHECK(gp_trials_on(with_categories(11, 10), 300) == 0);
    CHECK(gp_trials_on(space_of({{"x", "randint(0, 9)"}, {"one", "choice(['a'])"}}), 300) == 300);
    CHECK(gp_trials_on(space_of({{"one", "choice(['a'])"}}), 300) == 0);
    space::Parameter conditional{"y", space::parse_domain("uniform(0, 1)"), space::Condition::parse("x > 3")};
    const space::SearchSpace space({{"x", space::parse_domain("randint(0, 9)"), std::nullopt}, std::move(conditional)});
    CHECK(gp_trials_on(space, 300) == 60);
}

TEST_CASE("auto: the first trials are those of gp, later ones those of tpe", "[searchers][auto]") {
    const space::SearchSpace space = cube(2);
    Learner learner(study_with("auto", space, 5, {{"gp_trials", 20}}));
    Learner gp(study_with("gp", space, 5));
    train(learner, 21);
    train(gp, 21);
    CHECK(learner.trials == gp.trials);
    const TpeSearcher direct(space, 5, TpeOptions{.n_startup_trials = 10});
    for (int i = 0; i < 5; ++i) {
        const auto expected = direct.prepare(learner.tickets, learner.seen.first(learner.seen.size()))().configuration;
        const TrialId trial = learner.create_prepared();
        CHECK(learner.trials[trial.value()] == expected);
        learner.finish(trial, -learner.unit(trial)[0]);
    }
}

TEST_CASE("auto: with many parameters all trials are those of tpe", "[searchers][auto]") {
    const space::SearchSpace space = cube(21);
    Learner learner(study_with("auto", space, 5));
    Learner tpe(study_with("tpe", space, 5));
    train(learner, 30);
    train(tpe, 30);
    CHECK(learner.trials == tpe.trials);
    CHECK(learner.searcher->prepares_ahead(16) == tpe.searcher->prepares_ahead(16));
}

} // namespace ranktune::searchers::testing
