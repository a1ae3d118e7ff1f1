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

TEST_CASE("auto: who begins follows from the space", "[searchers][auto]") {
    CHECK(beginner_on(cube(1)) == Beginner::gp);
    CHECK(beginner_on(cube(60)) == Beginner::gp);
    CHECK(beginner_on(cube(61)) == Beginner::turns);
    CHECK(beginner_on(cube(200)) == Beginner::turns);
    CHECK(beginner_on(cube(201)) == Beginner::tpe);
    CHECK(beginner_on(with_categories(1, 3)) == Beginner::gp);
    CHECK(beginner_on(with_categories(1, 2)) == Beginner::turns);
    CHECK(beginner_on(with_categories(2, 0)) == Beginner::turns);
    CHECK(beginner_on(space_of({{"n", "choice([1, 2, 4])"}, {"m", "choice([0.1, 0.2])"}})) == Beginner::turns);
    CHECK(beginner_on(space_of({{"n", "choice([1, 2, 4])"}, {"m", "randint(0, 16)"}})) == Beginner::turns);
    CHECK(beginner_on(space_of({{"n", "choice([1, 2, 4])"}, {"m", "randint(0, 17)"}})) == Beginner::gp);
    CHECK(beginner_on(space_of({{"n", "choice([1, 2, 4], ordered=false)"}})) == Beginner::turns);
    CHECK(beginner_on(space_of({{"x", "randint(0, 99)"}, {"one", "choice(['a'])"}})) == Beginner::gp);
    CHECK(beginner_on(space_of({{"one", "choice(['a'])"}})) == Beginner::tpe);
    space::Parameter conditional{"y", space::parse_domain("uniform(0, 1)"), space::Condition::parse("x > 3")};
    const space::SearchSpace space({{"x", space::parse_domain("randint(0, 9)"), std::nullopt}, std::move(conditional)});
    CHECK(beginner_on(space) == Beginner::turns);
}

TEST_CASE("auto: with many lists gp and tpe take turns as soon as there is a model", "[searchers][auto]") {
    const space::SearchSpace space = with_categories(2, 2);
    Learner learner(study_with("auto", space, 5, {{"gp_trials", 30}}));
    for (std::uint64_t ticket = 0; ticket < 36; ++ticket) {
        const Suggestion next = learner.searcher->prepare(ticket, learner.seen.first(learner.seen.size()))();
        const bool by_tpe = ticket % 2 == 0 || ticket > 30;
        CHECK(next.basis.model == (ticket < 10 ? "sobol" : by_tpe ? "tpe" : "gp"));
        const TrialId trial = learner.create(next.configuration, {study::Origin::Kind::ticket, ticket, 0});
        learner.finish(trial, -learner.unit(trial)[2]);
    }
}

TEST_CASE("auto: in a wide space gp takes turns once there is a result for every four parameters",
          "[searchers][auto]") {
    const space::SearchSpace space = cube(80);
    Learner learner(study_with("auto", space, 5));
    for (std::uint64_t ticket = 0; ticket < 24; ++ticket) {
        const Suggestion next = learner.searcher->prepare(ticket, learner.seen.first(learner.seen.size()))();
        const bool by_tpe = ticket % 2 == 0 || ticket < 20;
        CHECK(next.basis.model == (ticket < 10 ? "sobol" : by_tpe ? "tpe" : "gp"));
        const TrialId trial = learner.create(next.configuration, {study::Origin::Kind::ticket, ticket, 0});
        learner.finish(trial, -learner.unit(trial)[2]);
    }
}

TEST_CASE("auto: gp keeps away from what tpe has suggested and no trial has taken", "[searchers][auto]") {
    Learner learner(study_with("auto", with_categories(1, 1), 5));
    train(learner, 12);
    const auto prepare = [&](std::uint64_t ticket) { return learner.searcher->prepare(ticket, learner.seen)(); };
    const Suggestion alone = prepare(13);
    learner.open(12);
    learner.open(15);
    const Suggestion by_tpe = prepare(12);
    REQUIRE(by_tpe.basis.model == "tpe");
    const Suggestion after = prepare(15);
    // The same as after a restart, where the suggestion is known from its record.
    learner.prepared(12, by_tpe.configuration);
    const Suggestion restored = learner.restored()->prepare(15, learner.seen)();
    CHECK(restored.configuration == after.configuration);
    CHECK(restored.basis.gain == after.basis.gain);
    CHECK(after.basis.gain != alone.basis.gain);
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
    const space::SearchSpace space = cube(201);
    Learner learner(study_with("auto", space, 5));
    Learner tpe(study_with("tpe", space, 5));
    train(learner, 30);
    train(tpe, 30);
    CHECK(learner.trials == tpe.trials);
    CHECK(learner.searcher->prepares_ahead(16, learner.seen) == tpe.searcher->prepares_ahead(16, tpe.seen));
}

TEST_CASE("auto: with several objectives nsga2 goes on after the trials of gp, from their results",
          "[searchers][auto]") {
    auto spec = study_with("auto", cube(2), 5, {{"gp_trials", 30}});
    spec.objective.others = {{"second", study::Mode::max}};
    Learner learner(spec);
    const auto finish = [&](TrialId trial) {
        const std::vector<double> x = learner.unit(trial);
        const double values[] = {-x[0], -(1.0 - x[0]) - x[1]};
        learner.finish(trial, study::Score(values, true));
    };
    std::vector<std::string> models;
    for (int i = 0; i < 40; ++i) {
        if (learner.searcher->prepares_ahead(1, learner.seen) > 0) {
            const Suggestion next = learner.searcher->prepare(learner.tickets, learner.seen)();
            models.push_back(next.basis.model);
            finish(learner.create(next.configuration, {study::Origin::Kind::ticket, learner.tickets++, 0}));
        } else {
            models.push_back(learner.searcher->basis(learner.suggested, learner.seen).model);
            finish(learner.create());
        }
    }
    std::vector<std::string> expected(10, "sobol");
    expected.insert(expected.end(), 21, "gp");
    expected.insert(expected.end(), 9, "nsga2");
    CHECK(models == expected);
}

} // namespace ranktune::searchers::testing
