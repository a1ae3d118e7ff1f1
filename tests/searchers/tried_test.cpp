// SPDX-License-Identifier: Apache-2.0
// avoid_duplicates: no configuration of a finite space comes twice while there is another one.

#include "searchers/coordinates/tried.hpp"

#include <set>
#include <string>

#include "searchers/learner.hpp"
#include "support/catch.hpp"

namespace ranktune::searchers::testing {
namespace {

/// How many of so many suggestions are different. Each trial ends before the next one.
std::size_t different(const std::string& searcher, const space::SearchSpace& space, int suggestions, bool avoid) {
    Learner learner(study_with(searcher, space, 1, {{"avoid_duplicates", avoid}}));
    std::set<std::string> seen;
    for (int i = 0; i < suggestions; ++i) {
        const TrialId trial = learner.create_next();
        seen.insert(learner.trials[trial.value()].text());
        learner.finish(trial, -learner.unit(trial)[0]);
    }
    return seen.size();
}

} // namespace

TEST_CASE("avoid_duplicates: every configuration comes once before one comes twice", "[searchers]") {
    space::Parameter conditional{"m", space::parse_domain("quniform(0, 1, 0.25)"),
                                 space::Condition::parse("kind == 'b'")};
    const space::SearchSpace space({{"kind", space::parse_domain("choice(['a', 'b'])"), std::nullopt},
                                    {"n", space::parse_domain("randint(0, 4)"), std::nullopt},
                                    conditional});
    constexpr int size = 4 + 4 * 5;
    for (const std::string searcher : {"random", "sobol", "bohb", "evolution"}) {
        INFO(searcher);
        CHECK(different(searcher, space, size, true) == size);
        CHECK(different(searcher, space, size + 5, true) == size);
        CHECK(different(searcher, space, size, false) < size);
    }
    const space::SearchSpace numbers = space_of({{"n", "randint(0, 4)"}, {"m", "randint(0, 4)"}});
    CHECK(different("cmaes", numbers, 16, true) == 16);
    CHECK(different("cmaes", numbers, 16, false) < 16);
}

TEST_CASE("avoid_duplicates: trials that run and points from elsewhere count, too", "[searchers]") {
    const space::SearchSpace space = space_of({{"n", "randint(0, 3)"}});
    Learner learner(study_with("random", space, 1, {{"avoid_duplicates", true}}));
    space::Configuration one;
    one.set("n", 1);
    learner.create(one, {study::Origin::Kind::start, 0, 0});
    std::set<std::string> seen;
    for (int i = 0; i < 2; ++i) seen.insert(learner.trials[learner.create().value()].text());
    CHECK(seen == std::set<std::string>{"n=0", "n=2"});
}

TEST_CASE("avoid_duplicates: a large finite space, and spaces where it has no effect", "[searchers]") {
    CHECK(different("random", space_of({{"n", "randint(0, 1000)"}, {"m", "randint(0, 1000)"}}), 500, true) == 500);
    CHECK(different("random", cube(1), 50, true) == 50);
    const space::SearchSpace grid = space_of({{"g", "grid([1, 2])"}, {"n", "randint(0, 2)"}});
    CHECK(is_finite(grid));
    CHECK(different("random", grid, 4, true) == 4);
    CHECK(different("random", grid, 20, true) == 4);
    CHECK(different("random", space_of({{"n", "choice([1, 1, 2])"}}), 2, true) == 2);
    const study::StudySpec spec = study_with("random", space_of({{"n", "randint(0, 3)"}}));
    CHECK_FALSE(make_searcher(spec)->learns());
}

} // namespace ranktune::searchers::testing
