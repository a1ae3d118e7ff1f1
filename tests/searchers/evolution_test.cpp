// SPDX-License-Identifier: Apache-2.0
// The searcher evolution: who has children, and what changes in them.
#include "searchers/evolution.hpp"

#include <cmath>
#include <map>

#include "searchers/learner.hpp"
#include "support/catch.hpp"

namespace evolution_test {

using namespace ranktune;
using namespace ranktune::searchers;
using namespace ranktune::searchers::testing;

namespace {

using Configuration = space::Configuration;

/// Parameters of every kind, with conditions.
space::SearchSpace mixed() {
    std::vector<space::Parameter> parameters = space_of({{"kind", "choice(['a', 'b', 'c'])"},
                                                         {"lr", "loguniform(1e-5, 1)"},
                                                         {"layers", "randint(1, 9)"},
                                                         {"width", "qlograndint(16, 1024, 16)"},
                                                         {"order", "choice([1, 2, 5], ordered=true)"},
                                                         {"fixed", "choice(['this'])"}})
                                                   .parameters();
    parameters.push_back({"momentum", space::parse_domain("uniform(0, 1)"), space::Condition::parse("kind == 'b'")});
    return space::SearchSpace(std::move(parameters));
}

/// Names of the parameters that differ; an absent one differs from a present one.
std::vector<std::string> differences(const space::SearchSpace& space, const Configuration& a, const Configuration& b) {
    std::vector<std::string> names;
    for (const space::Parameter& parameter : space.parameters()) {
        const space::Value* in_a = a.find(parameter.name);
        const space::Value* in_b = b.find(parameter.name);
        const bool same = in_a == nullptr || in_b == nullptr ? in_a == in_b : *in_a == *in_b;
        if (!same) names.push_back(parameter.name);
    }
    return names;
}

} // namespace

TEST_CASE("evolution: a child has its parent's values but for one", "[searchers][evolution]") {
    const space::SearchSpace space = mixed();
    // One parent, and each later suggestion is its child.
    Learner learner(study_with("evolution", space, 1, {{"population", 1}, {"sample", 1}}));
    const std::vector<double> unit{0.5, 0.3, 0.4, 0.6, 0.5, 0.5, 0.7};
    const TrialId trial = learner.create(space.decode(unit), {study::Origin::Kind::user, 0, 0});
    learner.finish(trial, 1.0);
    const Configuration& parent = learner.trials.front();
    REQUIRE(parent.contains("momentum"));
    std::map<std::string, int> changed;
    std::map<std::string, int> kinds;
    for (std::uint64_t i = 1; i <= 600; ++i) {
        const Configuration child = *learner.searcher->suggest(i, learner.seen);
        const auto names = differences(space, parent, child);
        for (const std::string& name : names) ++changed[name];
        const bool loses_condition = names == std::vector<std::string>{"kind", "momentum"};
        CHECK((names.size() == 1 || loses_condition));
        ++kinds[child.at("kind").as_string()];
    }
    CHECK_FALSE(changed.contains("fixed"));
    for (const char* name : {"lr", "layers", "width", "order"}) CHECK(std::abs(changed[name] - 100) < 40);
    CHECK(std::abs(changed["kind"] - 100) < 40);
    CHECK(kinds["a"] > 25); // both others, alike
    CHECK(kinds["c"] > 25);
}

TEST_CASE("evolution: numbers move by the step, and a list of two values changes", "[searchers][evolution]") {
    Learner learner(study_with("evolution", space_of({{"x", "uniform(0, 1)"}}), 1,
                               {{"population", 1}, {"sample", 1}, {"step", 0.05}}));
    learner.finish(learner.create(learner.spec->space.decode(std::vector{0.5}), {study::Origin::Kind::user, 0, 0}),
                   1.0);
    double squares = 0.0;
    for (std::uint64_t i = 1; i <= 2000; ++i)
        squares += std::pow(learner.searcher->suggest(i, learner.seen)->at("x").as_double() - 0.5, 2) / 2000.0;
    CHECK(std::sqrt(squares) == Approx(0.05).epsilon(0.05));

    Learner two(study_with("evolution", space_of({{"n", "choice([1, 2], ordered=true)"}}), 1,
                           {{"population", 1}, {"sample", 1}}));
    two.finish(two.create(two.spec->space.decode(std::vector{0.9}), {study::Origin::Kind::user, 0, 0}), 1.0);
    for (std::uint64_t i = 1; i <= 50; ++i) CHECK(two.searcher->suggest(i, two.seen)->at("n").as_int() == 1);
}

TEST_CASE("evolution: only the newest results have children, and the best of the sample wins",
          "[searchers][evolution]") {
    const auto parents = [](std::int64_t population, std::int64_t sample) {
        Learner learner(study_with("evolution", cube(12), 1, {{"population", population}, {"sample", sample}}));
        for (std::uint32_t i = 0; i < 6; ++i) { // the later, the worse
            const TrialId trial =
                learner.create(learner.spec->space.sample(7, TrialId(i)), {study::Origin::Kind::user, 0, 0});
            learner.finish(trial, -1.0 * i);
        }
        std::map<std::uint32_t, int> count;
        for (std::uint64_t i = 10; i < 310; ++i) {
            const Configuration child = *learner.searcher->suggest(i, learner.seen);
            for (std::uint32_t trial = 0; trial < 6; ++trial)
                if (differences(learner.spec->space, learner.trials[trial], child).size() == 1) ++count[trial];
        }
        return count;
    };
    const auto newest = parents(3, 20);
    CHECK(newest.size() <= 2);
    CHECK(newest.at(3) > 290); // in a sample of twenty of three, the best is hardly ever missing
    const auto drawn = parents(3, 1);
    CHECK(drawn.size() == 3);
    for (const auto& [trial, count] : drawn) CHECK(std::abs(count - 100) < 40);
}

TEST_CASE("evolution: the first suggestions are random, and those while all results failed", "[searchers][evolution]") {
    Learner learner(study_with("evolution", cube(3), 5, {{"population", 4}, {"sample", 2}}));
    for (std::uint32_t i = 0; i < 10; ++i) {
        CHECK(*learner.searcher->suggest(i, learner.seen) == learner.spec->space.sample(5, TrialId(i)));
        const TrialId trial = learner.create();
        if (i % 2 == 0)
            learner.fail(trial);
        else
            learner.finish(trial, -infinite);
    }
    learner.finish(learner.create(), 1.0);
    bool child = false;
    for (std::uint32_t i = 20; i < 40; ++i)
        child = child || *learner.searcher->suggest(i, learner.seen) != learner.spec->space.sample(5, TrialId(i));
    CHECK(child);
}

TEST_CASE("evolution finds the optimum of a space with categories and conditions", "[searchers][evolution]") {
    const auto loss = [](const Configuration& c) {
        const double lr = std::log10(c.at("lr").as_double()) + 2.3;
        const double layers = static_cast<double>(c.at("layers").as_int()) - 6.0;
        const bool b = c.at("kind").as_string() == "b";
        const double momentum = b ? c.at("momentum").as_double() - 0.9 : 1.0;
        return lr * lr + layers * layers / 9.0 + momentum * momentum;
    };
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        Learner learner(study_with("evolution", mixed(), seed));
        Learner random(study_with("random", mixed(), seed));
        const double found = search(learner, 300, 4, loss);
        CHECK(found < 0.02);
        CHECK(found < search(random, 300, 4, loss));
    }
}

TEST_CASE("evolution: a suggestion names its parent", "[searchers][evolution]") {
    Learner learner(study_with("evolution", mixed(), 5, {{"population", 4}, {"sample", 2}}));
    for (std::uint32_t i = 0; i < 20; ++i) {
        const study::SuggestionBasis basis = learner.searcher->basis(i, learner.seen);
        const Configuration suggested = *learner.searcher->suggest(i, learner.seen);
        INFO(basis.note);
        CHECK(basis.model == (i < 4 ? "random" : "evolution"));
        CHECK(basis.results == std::min(i, 4U));
        if (i >= 4) {
            REQUIRE(basis.note.rfind("a change of #", 0) == 0);
            const Configuration& parent = learner.trials.at(std::stoul(basis.note.substr(13)));
            // A change of `kind` brings the momentum, or takes it away.
            CHECK(differences(learner.spec->space, suggested, parent).size() <= 2);
            CHECK(suggested != parent);
        }
        learner.finish(learner.create(), i);
    }
}

} // namespace evolution_test
