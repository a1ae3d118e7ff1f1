// SPDX-License-Identifier: Apache-2.0
// The searcher nsga2: who has children, what they are like, and how much of a front it finds.
#include "searchers/nsga2.hpp"

#include <cmath>
#include <set>

#include "searchers/coordinates/variation.hpp"
#include "searchers/learner.hpp"
#include "support/catch.hpp"
#include "support/hypervolume.hpp"

namespace nsga2_test {

using namespace ranktune;
using namespace ranktune::searchers;
using namespace ranktune::searchers::testing;

namespace {

using Options = std::vector<study::OptionValue>;
using Losses = std::vector<double>;

study::StudySpec two_goals(const space::SearchSpace& space, const Options& options = {}, std::uint64_t seed = 1) {
    study::StudySpec spec = study_with("nsga2", space, seed, options);
    spec.objective = {"a", study::Mode::max, {}, {{"b", study::Mode::max}}};
    return spec;
}

study::Score score_of(double a, double b, double violation = 0.0) {
    const double values[] = {a, b};
    study::Score score(values, violation == 0.0);
    score.violation = violation;
    return score;
}

/// ZDT1 of Zitzler, Deb and Thiele (2000), to be minimised.
Losses zdt1(const space::Configuration& configuration, std::size_t dimensions) {
    const auto x = [&](std::size_t i) { return configuration.at("x" + std::to_string(i)).as_double(); };
    double sum = 0.0;
    for (std::size_t i = 1; i < dimensions; ++i) sum += x(i);
    const double g = 1.0 + 9.0 * sum / static_cast<double>(dimensions - 1);
    return {x(0), g * (1.0 - std::sqrt(x(0) / g))};
}

/// The volume covered after so many trials, with so many under way.
double volume_on_zdt1(const std::string& searcher, std::uint64_t seed, std::uint32_t trials, std::uint32_t workers) {
    constexpr std::size_t dimensions = 6;
    auto spec = two_goals(cube(dimensions), {}, seed);
    spec.searcher = chosen(searcher);
    Learner learner(spec);
    std::vector<std::vector<double>> points;
    std::vector<TrialId> running;
    for (std::uint32_t i = 0; i < trials; ++i) {
        while (running.size() < workers) running.push_back(learner.create_next());
        const TrialId trial = running[i % running.size()];
        std::erase(running, trial);
        const Losses loss = zdt1(learner.trials[trial.value()], dimensions);
        points.push_back({-loss[0], -loss[1]});
        learner.finish(trial, score_of(-loss[0], -loss[1]));
    }
    return ranktune::test::hypervolume(points, std::vector{-1.1, -6.0});
}

} // namespace

TEST_CASE("simulated binary crossover keeps the mean, polynomial mutation the range", "[searchers][nsga2]") {
    base::RngStream random(1, base::user_purpose(0), 0);
    double sum = 0.0;
    int near = 0;
    constexpr int draws = 20000;
    for (int i = 0; i < draws; ++i) {
        const double child = crossed(0.45, 0.55, 20.0, random);
        CHECK((child >= 0.0 && child < 1.0));
        sum += child / draws;
        if (std::min(std::abs(child - 0.45), std::abs(child - 0.55)) < 0.01) ++near;
    }
    CHECK(sum == Approx(0.5).margin(0.001));
    CHECK(near > draws * 8 / 10); // children lie near their parents
    CHECK(crossed(0.3, 0.3, 20.0, random) == 0.3);
    double change = 0.0;
    for (int i = 0; i < draws; ++i) {
        const double after = mutated(0.5, 20.0, random);
        CHECK((after >= 0.0 && after < 1.0));
        change += std::abs(after - 0.5) / draws;
        const double at_end = mutated(i % 2 == 0 ? 0.0 : below_one, 5.0, random);
        CHECK((at_end >= 0.0 && at_end < 1.0));
    }
    CHECK(change == Approx(1.0 / 22.0).epsilon(0.05)); // E|delta| = 1 / (index + 2) far from the ends
}

TEST_CASE("nsga2: the parents are the best by front, then by room, and violators come last", "[searchers][nsga2]") {
    // One coordinate, and children that are copies of a parent but for a tiny step: they show their parent.
    const Options options = {{"population", 3}, {"crossover", 0.0}, {"mutation_index", 1000.0}};
    Learner learner(two_goals(cube(1), options));
    const auto add = [&](double x, const study::Score& score) {
        const auto configuration = learner.spec->space.decode(std::vector{x});
        learner.finish(learner.create(configuration, {study::Origin::Kind::user, 0, 0}), score);
    };
    const auto parents = [&] {
        std::set<int> tenths;
        for (std::uint64_t i = 100; i < 200; ++i)
            tenths.insert(
                static_cast<int>(std::lround(learner.searcher->suggest(i, learner.seen)->at("x0").as_double() * 10)));
        return tenths;
    };
    add(0.1, score_of(0.2, 1.5));
    add(0.2, score_of(9, 9, 0.5)); // violates by 0.5
    CHECK(parents() == std::set{1, 2});
    add(0.3, score_of(2, 0));
    CHECK(parents() == std::set{1, 2, 3});
    add(0.4, score_of(0, 2)); // the violator leaves
    CHECK(parents() == std::set{1, 3, 4});
    add(0.5, score_of(1, 1)); // in the middle of the front it has more room than the first one
    CHECK(parents() == std::set{3, 4, 5});
    add(0.6, score_of(NAN, 5)); // (a score never has NaN; not finite is worst)
    learner.fail(learner.create(learner.spec->space.decode(std::vector{0.7}), {study::Origin::Kind::user, 0, 0}));
    CHECK(parents() == std::set{3, 4, 5});
    add(0.8, score_of(5, 5)); // beats all
    add(0.9, score_of(5, 5));
    CHECK(parents().contains(8));
    CHECK(parents().contains(9));
}

TEST_CASE("nsga2: a child has the values of its parents, but for what mutates", "[searchers][nsga2]") {
    std::vector<space::Parameter> parameters = space_of({{"kind", "choice(['a', 'b', 'c', 'd'])"},
                                                         {"layers", "randint(1, 3)"},
                                                         {"fixed", "choice(['this'])"},
                                                         {"lr", "loguniform(1e-5, 1)"}})
                                                   .parameters();
    parameters.push_back({"momentum", space::parse_domain("uniform(0, 1)"), space::Condition::parse("kind == 'b'")});
    const space::SearchSpace space{std::move(parameters)};
    Learner learner(two_goals(space, {{"population", 2}, {"crossover", 1.0}, {"mutation", 1e-9}}));
    for (const auto& [unit, score] : {std::pair{std::vector{0.1, 0.1, 0.5, 0.2, 0.5}, score_of(1, 0)},
                                      std::pair{std::vector{0.4, 0.9, 0.5, 0.8, 0.5}, score_of(0, 1)}})
        learner.finish(learner.create(space.decode(unit), {study::Origin::Kind::user, 0, 0}), score);
    REQUIRE(learner.trials[1].contains("momentum"));
    std::set<std::string> kinds;
    std::set<std::int64_t> layers;
    for (std::uint64_t i = 10; i < 300; ++i) {
        const auto child = *learner.searcher->suggest(i, learner.seen);
        kinds.insert(child.at("kind").as_string());
        layers.insert(child.at("layers").as_int());
        CHECK(child.contains("momentum") == (child.at("kind").as_string() == "b"));
        for (const auto& parent : learner.trials)
            CHECK(child != parent); // one that equals its parent changes once more
    }
    CHECK(kinds.contains("a"));
    CHECK(kinds.contains("b"));
    CHECK(layers.contains(1));
    CHECK(layers.contains(2));
}

TEST_CASE("nsga2: suggestions depend on the table, the seed and the number alone", "[searchers][nsga2]") {
    Learner learner(two_goals(cube(3), {{"population", 5}}));
    for (int i = 0; i < 40; ++i) {
        const TrialId trial = learner.create();
        const auto unit = learner.unit(trial);
        learner.finish(trial, score_of(unit[0], 1.0 - unit[0] * unit[1]));
    }
    const auto other = learner.restored();
    Observations again(3);
    study::Bytes bytes;
    study::Encoder out(bytes);
    learner.seen.snapshot(out);
    study::Decoder in(bytes);
    again.restore(in);
    for (std::uint64_t i = 40; i < 60; ++i)
        CHECK(*other->suggest(i, again) == *learner.searcher->suggest(i, learner.seen));
    // Another table is read from its beginning.
    const Observations first = learner.seen.first(30);
    CHECK(*other->suggest(40, first) == *learner.restored()->suggest(40, first));
}

TEST_CASE("nsga2 covers more of ZDT1 than random search, one after the other and with 16 under way",
          "[searchers][nsga2]") {
    for (const std::uint32_t workers : {1U, 16U}) {
        double own = 0.0;
        double random = 0.0;
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            own += volume_on_zdt1("nsga2", seed, 400, workers) / 3.0;
            random += volume_on_zdt1("random", seed, 400, workers) / 3.0;
        }
        // The whole front covers 6.267 of the box.
        CHECK(random < 5.2);
        CHECK(own > 5.8);
    }
}

TEST_CASE("gp covers ZDT1 in a tenth of the trials", "[searchers][gp][nsga2]") {
    CHECK(volume_on_zdt1("gp", 1, 50, 1) > 6.15);
    CHECK(volume_on_zdt1("gp", 1, 60, 8) > 6.1);
}

TEST_CASE("nsga2: a suggestion names its parents", "[searchers][nsga2]") {
    Learner learner(two_goals(cube(3), {{"population", 4}}));
    for (std::uint32_t i = 0; i < 12; ++i) {
        const study::SuggestionBasis basis = learner.searcher->basis(i, learner.seen);
        INFO(basis.note);
        CHECK(basis.model == (i < 4 ? "random" : "nsga2"));
        CHECK(basis.results == std::min(i, 4U));
        // Later results are worse, so the first four stay.
        if (i >= 4) CHECK(basis.note.size() == std::string("from #0 and #1").size());
        if (i >= 4) CHECK(basis.note.find_first_of("456789") == std::string::npos);
        learner.finish(learner.create(), score_of(-static_cast<double>(i), -static_cast<double>(i)));
    }
}

} // namespace nsga2_test
