// SPDX-License-Identifier: Apache-2.0
// The searcher gp: what its model learns from, and that a suggestion follows from ticket, table and open tickets.
#include "searchers/gp.hpp"

#include <cmath>
#include <set>

#include "searchers/gp/gp_data.hpp"
#include "searchers/gp/gp_repeats.hpp"
#include "searchers/learner.hpp"
#include "support/catch.hpp"

namespace gp_test {

using namespace ranktune;
using namespace ranktune::searchers;
using namespace ranktune::searchers::testing;

namespace {

using Configuration = space::Configuration;

double distance(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0.0;
    for (std::size_t j = 0; j < a.size(); ++j) sum += (a[j] - b[j]) * (a[j] - b[j]);
    return std::sqrt(sum);
}

/// Minimum 0 at (0.2, 0.7), with a valley that is not along an axis.
double valley(const Configuration& c) {
    const double x = c.at("x0").as_double() - 0.2;
    const double y = c.at("x1").as_double() - 0.7;
    return (x + y) * (x + y) + 10.0 * (x - y) * (x - y);
}

space::SearchSpace mixed() {
    std::vector<space::Parameter> parameters = space_of({{"kind", "choice(['a', 'b', 'c'])"},
                                                         {"lr", "loguniform(1e-5, 1)"},
                                                         {"layers", "randint(1, 9)"},
                                                         {"width", "randint(1, 1000)"},
                                                         {"fixed", "choice(['this'])"}})
                                                   .parameters();
    parameters.push_back({"momentum", space::parse_domain("uniform(0, 1)"), space::Condition::parse("kind == 'b'")});
    return space::SearchSpace(std::move(parameters));
}

double mixed_loss(const Configuration& c) {
    const double lr = std::log10(c.at("lr").as_double()) + 2.3;
    const double layers = static_cast<double>(c.at("layers").as_int()) - 6.0;
    const double width = static_cast<double>(c.at("width").as_int()) / 1000.0 - 0.4;
    const bool b = c.at("kind").as_string() == "b";
    const double momentum = b ? c.at("momentum").as_double() - 0.9 : 0.5;
    return 0.1 * lr * lr + layers * layers / 30.0 + width * width + momentum * momentum;
}

} // namespace

TEST_CASE("gp: without a model, tickets and stopgaps get points of two sequences", "[searchers][gp]") {
    Learner learner(study_with("gp", cube(2), 3));
    std::set<std::string> all;
    for (std::uint64_t i = 0; i < 8; ++i) {
        all.insert(learner.searcher->suggest(i, learner.seen)->text());
        all.insert(learner.searcher->prepare(i, learner.seen.first(0))().configuration.text());
    }
    CHECK(all.size() == 16);
}

TEST_CASE("gp and tpe prepare nothing ahead before there are results for a model", "[searchers][gp][tpe]") {
    for (const std::string name : {"gp", "tpe"}) {
        INFO(name);
        Learner learner(study_with(name, cube(1), 3));
        for (int i = 0; i < 10; ++i) {
            CHECK(learner.searcher->prepares_ahead(16, learner.seen) == 0);
            const TrialId trial = learner.create();
            if (i == 4) learner.fail(learner.create()); // no result
            learner.finish(trial, -i);
        }
        const Searcher& searcher = *learner.searcher;
        const auto ahead = [&](std::uint32_t groups) { return searcher.prepares_ahead(groups, learner.seen); };
        CHECK(learner.restored()->prepares_ahead(16, learner.seen) == ahead(16));
        CHECK(ahead(1) == 1);
        CHECK(ahead(4) == 1);
        CHECK(ahead(16) == (name == "gp" ? 4 : 2));
        CHECK(ahead(4000) == (name == "gp" ? 1000 : 16));
    }
}

TEST_CASE("gp finds the optimum in few trials", "[searchers][gp]") {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
        Learner learner(study_with("gp", cube(2), seed));
        CHECK(search(learner, 30, 1, valley) < 1e-3);
        Learner parallel(study_with("gp", cube(2), seed));
        CHECK(search(parallel, 40, 4, valley) < 1e-2);
    }
}

TEST_CASE("gp searches spaces with integers, categories and conditions", "[searchers][gp]") {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
        Learner learner(study_with("gp", mixed(), seed));
        Learner random(study_with("random", mixed(), seed));
        const double found = search(learner, 50, 1, mixed_loss);
        CHECK(found < 0.02);
        CHECK(found < search(random, 50, 1, mixed_loss));
    }
}

TEST_CASE("gp keeps away from trials that run and from suggestions that wait", "[searchers][gp]") {
    Learner learner(study_with("gp", cube(2), 1));
    search(learner, 14, 1, valley);
    const auto at = [&](std::uint64_t ticket) {
        return learner.spec->space.encode(
            learner.searcher->prepare(ticket, learner.seen.first(learner.seen.size()))().configuration);
    };
    // Tickets that do not know each other ask for nearly the same point.
    const std::vector<double> first = at(100);
    CHECK(distance(first, at(101)) < 0.02);
    learner.open(102);
    learner.open(103);
    const std::vector<double> second = at(102);
    CHECK(distance(second, at(103)) > 0.02);
    // After a restart the first of two tickets is known from its record.
    learner.prepared(102, learner.spec->space.decode(second));
    const auto restored = learner.restored();
    CHECK(restored->prepare(103, learner.seen.first(learner.seen.size()))().configuration ==
          learner.spec->space.decode(at(103)));
    // A trial that took the point and runs.
    learner.create(learner.spec->space.decode(second), {study::Origin::Kind::ticket, 102, 0});
    CHECK(distance(second, at(104)) > 0.02);
}

TEST_CASE("gp: what trials that run are going to find is no improvement any more", "[searchers][gp]") {
    Learner learner(study_with("gp", cube(2), 1));
    search(learner, 10, 1, valley);
    // The logarithm of the expected improvement.
    const auto next_gain = [&](std::uint64_t ticket) {
        const Suggestion next = learner.searcher->prepare(ticket, learner.seen.first(learner.seen.size()))();
        learner.create(next.configuration, {study::Origin::Kind::ticket, ticket, 0});
        return next.basis.gain.value();
    };
    const double first = next_gain(100);
    CHECK(next_gain(101) < first - std::log(3.0));
}

TEST_CASE("gp: a suggestion is the same, whatever was computed before", "[searchers][gp]") {
    for (const bool conditional : {false, true}) {
        const space::SearchSpace space = conditional ? mixed() : cube(3);
        Learner learner(study_with("gp", space, 5, {{"max_results", 20}}));
        for (std::uint32_t i = 0; i < 60; ++i) {
            const TrialId trial = learner.create_prepared();
            if (i % 5 == 4) learner.create_prepared(); // never ends
            const double loss = conditional ? mixed_loss(learner.trials[trial.value()]) : learner.unit(trial)[0];
            if (i % 9 == 8)
                learner.fail(trial);
            else
                learner.finish(trial, -loss);
            if (i % 8 != 7) continue;
            const Observations seen = learner.seen.first(learner.seen.size());
            const auto fresh = make_searcher(*learner.spec);
            CHECK(fresh->prepare(1000, seen)().configuration == learner.searcher->prepare(1000, seen)().configuration);
        }
    }
}

TEST_CASE("gp suggests no configuration of a finite space twice before the others", "[searchers][gp]") {
    const space::SearchSpace space = space_of({{"a", "choice([1, 2, 3, 4])"}, {"b", "randint(0, 5)"}});
    Learner learner(study_with("gp", space, 2, {{"startup", 4}}));
    std::set<std::string> all;
    for (std::uint32_t i = 0; i < 4; ++i)
        learner.create(space.sample(8, TrialId(i)), {study::Origin::Kind::user, 0, 0});
    for (std::uint32_t i = 0; i < 4; ++i) learner.finish(TrialId(i), i);
    for (const Configuration& each : learner.trials) all.insert(each.text());
    while (all.size() < 20) {
        const TrialId trial = learner.create_prepared();
        CHECK(all.insert(learner.trials[trial.value()].text()).second);
        learner.finish(trial, static_cast<double>(learner.trials[trial.value()].at("b").as_int()));
        if (learner.trials.size() > 30) break;
    }
    CHECK(all.size() == 20);
    CHECK(space.encode(learner.trials[learner.create_prepared().value()]).size() == 2); // there is none left
}

TEST_CASE("gp trains no configuration twice where the optimum is in a corner", "[searchers][gp]") {
    const space::SearchSpace space({{"x", space::FloatRange{0.0, 1.0, false, 0.0}, {}},
                                    {"y", space::FloatRange{1e-3, 1e3, true, 0.0}, {}},
                                    {"n", space::Grid{{1, 2, 3}}, {}}});
    for (const std::string name : {"gp", "auto"}) {
        Learner learner(study_with(name, space));
        const auto loss = [](const Configuration& c) {
            return 2.0 - c.at("x").as_double() + 0.1 * std::log(c.at("y").as_double() * 1e3) +
                   0.1 * static_cast<double>(c.at("n").as_int());
        };
        CHECK(search(learner, 40, 2, loss) < 1.2);
        std::set<std::string> different;
        for (const Configuration& each : learner.trials) different.insert(each.text());
        // The model does not see n: its effect looks like noise, until a configuration comes twice.
        CHECK(different.size() + 1 >= learner.trials.size());
    }
}

TEST_CASE("gp repeats a configuration where results are noisy, and says so", "[searchers][gp]") {
    const space::SearchSpace space = space_of({{"a", "randint(0, 6)"}, {"b", "randint(0, 6)"}});
    for (const double noise : {0.0, 2.0}) {
        Learner learner(study_with("gp", space, 4));
        base::RngStream random(7, base::user_purpose(0), 0);
        std::set<std::string> different;
        std::size_t told = 0;
        for (std::uint64_t i = 0; i < 30; ++i) {
            const Suggestion next = learner.searcher->prepare(i, learner.seen.first(learner.seen.size()))();
            told += next.basis.note.starts_with("tried before") ? 1 : 0;
            const TrialId trial = learner.create(next.configuration, {study::Origin::Kind::ticket, i, 0});
            different.insert(next.configuration.text());
            const double a = static_cast<double>(next.configuration.at("a").as_int()) - 2.0;
            const double b = static_cast<double>(next.configuration.at("b").as_int()) - 3.0;
            learner.finish(trial, -a * a - b * b + noise * random.normal());
        }
        CHECK(different.size() + told == 30);
        CHECK((told > 0) == (noise > 0.0));
    }
}

TEST_CASE("gp: what was tried twice says whether results are noisy", "[searchers][gp]") {
    const models::GpKernel quiet{.weights = {1.0}, .noise = 1e-3};
    const models::GpKernel noisy{.weights = {1.0}, .noise = 0.5};
    const std::vector<double> here = {0.5, std::numeric_limits<double>::quiet_NaN()};
    const std::vector<double> there = {0.6, 0.1};
    GpRepeats repeats;
    repeats.add(here, 0, 1.0);
    repeats.add(there, 0, -3.0);
    repeats.add(here, 1, 5.0); // with another value in a grid
    CHECK(repeats.scatter().freedom == 0);
    CHECK_FALSE(are_noisy(noisy, repeats)); // of so few the kernel knows nothing
    for (int i = 0; i < 20; ++i) repeats.add(std::vector<double>{0.01 * i}, 0, 0.0);
    CHECK(are_noisy(noisy, repeats));
    CHECK_FALSE(are_noisy(quiet, repeats));
    GpRepeats rugged = repeats;
    rugged.add(here, 0, 1.0);
    CHECK_FALSE(are_noisy(noisy, rugged)); // the same came again: there is no noise, only what the kernel cannot follow
    repeats.add(here, 0, 1.1);
    CHECK(are_noisy(noisy, repeats)); // two that are close by chance
    CHECK_FALSE(are_noisy(quiet, repeats));
    repeats.add(there, 0, -1.0);
    CHECK(repeats.scatter().squares == Approx(0.005 + 2.0));
    CHECK(repeats.scatter().freedom == 2);
    CHECK(are_noisy(quiet, repeats));
}

TEST_CASE("gp names the best result by its mean, not the luckiest", "[searchers][gp]") {
    const space::SearchSpace space = cube(1);
    Table table(space);
    GpModel model(space, 1, {.startup = 20});
    base::RngStream random(3, base::user_purpose(0), 0);
    for (int i = 0; i < 40; ++i) { // highest at 0.75
        const double x = i / 40.0;
        table.add({x}, 1.0 - 4.0 * (x - 0.75) * (x - 0.75) + 0.2 * random.normal());
    }
    table.add({0.1}, 2.0); // the highest value; the mean there is -0.7
    const auto best = model.best(table.seen);
    REQUIRE(best);
    CHECK(best->noisy);
    CHECK(best->results == 41);
    CHECK(std::abs(table.seen.point(table.seen[best->line].point).front() - 0.75) < 0.2);
    CHECK(best->mean == Approx(1.0).margin(0.2));
    CHECK(best->deviation > 0.0);
    CHECK(best->deviation < 0.2);
}

TEST_CASE("gp works with failures, equal values and values of any size", "[searchers][gp]") {
    const auto live = [](auto score_of) {
        Learner learner(study_with("gp", cube(2), 1));
        for (std::uint32_t i = 0; i < 30; ++i) {
            const TrialId trial = learner.create_prepared();
            const double score = score_of(i, -valley(learner.trials[i]));
            if (std::isnan(score))
                learner.fail(trial);
            else
                learner.finish(trial, score);
        }
        double closest = 1.0;
        for (const Configuration& each : learner.trials) closest = std::min(closest, valley(each));
        return closest;
    };
    CHECK(live([](std::uint32_t, double) { return 0.25; }) < 1.0);
    CHECK(live([](std::uint32_t i, double score) {
              return i % 3 == 2 ? std::numeric_limits<double>::quiet_NaN() : score;
          }) < 0.05);
    CHECK(live([](std::uint32_t i, double score) { return i % 3 == 2 ? -infinite : score; }) < 0.05);
    CHECK(live([](std::uint32_t, double score) { return 1e308 * score / 11.0; }) < 1e-2);
    CHECK(live([](std::uint32_t, double score) { return 1e-300 * score; }) < 1e-2);
    CHECK(live([](std::uint32_t i, double score) { return i == 3 ? -1e308 : score; }) < 0.5);
}

TEST_CASE("gp learns at the largest iteration with enough results, in the order of their arrival", "[searchers][gp]") {
    const space::SearchSpace space = cube(1);
    Table table(space);
    std::vector<TrialId> trials;
    for (int i = 0; i < 6; ++i) trials.push_back(table.ask(space.decode(std::vector{0.1 * i})));
    GpData data(3);
    const auto numbers = [&] {
        data.read(table.seen);
        std::vector<std::uint64_t> all;
        for (const GpData::Result& each : data.results()) all.push_back(each.number);
        return all;
    };
    CHECK(numbers().empty());
    CHECK(data.under_way().size() == 6);
    table.seen.reported(trials[4], 1, 0.4);
    table.seen.reported(trials[1], 1, 0.1);
    table.seen.over(trials[5], 0, study::TrialPhase::failed);
    CHECK(numbers().empty()); // two finite ones are not three
    table.seen.reported(trials[0], 1, 0.0);
    CHECK(numbers() == std::vector<std::uint64_t>{4, 1, 5, 0});
    CHECK(data.results()[2].score == -infinite);
    CHECK(data.under_way() == std::vector<std::uint64_t>{2, 3});
    for (const int i : {0, 4, 2}) table.seen.reported(trials[static_cast<std::size_t>(i)], 3, 1.0);
    // The failure came before the first report of this iteration.
    CHECK(numbers() == std::vector<std::uint64_t>{5, 0, 4, 2});
    CHECK(data.under_way() == std::vector<std::uint64_t>{1, 3});
    table.seen.paused(trials[1], 1);
    CHECK(numbers().size() == 4);
    CHECK(data.under_way() == std::vector<std::uint64_t>{3});
}

TEST_CASE("gp with all_iterations learns from every stop, too, in the order of the reports", "[searchers][gp]") {
    const space::SearchSpace space = cube(1);
    Table table(space);
    std::vector<TrialId> trials;
    for (int i = 0; i < 6; ++i) trials.push_back(table.ask(space.decode(std::vector{0.1 * i})));
    GpData data(2, true);
    using Seen = std::vector<std::pair<std::uint64_t, base::Iteration>>;
    const auto results = [&] {
        data.read(table.seen);
        Seen all;
        for (const GpData::Result& each : data.results()) all.push_back({each.number, each.iteration});
        return all;
    };
    table.seen.reported(trials[0], 1, 0.1);
    table.seen.paused(trials[0], 1);
    CHECK(results().empty());
    table.seen.reported(trials[1], 1, 0.2);
    table.seen.paused(trials[1], 1);
    CHECK(results() == Seen{{0, 1}, {1, 1}}); // stops at the iteration in use count once
    table.seen.reported(trials[2], 1, 0.3);
    table.seen.reported(trials[2], 2, 0.4); // goes on: no stop
    table.seen.reported(trials[2], 3, 0.5);
    table.seen.paused(trials[2], 3);
    CHECK(data.iteration() == 1);
    CHECK(results() == Seen{{0, 1}, {1, 1}, {2, 1}, {2, 3}});
    table.seen.reported(trials[3], 1, 0.6);
    table.seen.over(trials[3], 1, study::TrialPhase::failed);
    table.seen.reported(trials[1], 3, 0.7);                           // promoted
    CHECK(results() == Seen{{0, 1}, {1, 1}, {2, 3}, {3, 3}, {1, 3}}); // a failure is worst at the iteration in use
    CHECK(data.iteration() == 3);
    table.seen.reported(trials[1], 4, 0.8);
    table.seen.over(trials[1], 4, study::TrialPhase::stopped);
    CHECK(results() == Seen{{0, 1}, {1, 1}, {2, 3}, {3, 3}, {1, 3}, {1, 4}});
    CHECK(data.results().back().score == 0.8);
}

TEST_CASE("gp with all_iterations needs fewer long trials, by what many short ones say", "[searchers][gp]") {
    // Four trials get to iteration 9, twenty stop at iteration 1, where losses are larger, and lie along the same
    // valley. The best of the next four.
    const auto best_of_next = [](const space::SearchSpace& space, std::uint64_t seed, bool all_iterations) {
        auto spec = study_with("gp", space, seed, {{"startup", 4}, {"all_iterations", all_iterations}});
        spec.max_iterations = 9;
        Learner learner(spec);
        const auto finish = [&](TrialId trial) {
            learner.seen.reported(trial, 9, -valley(learner.trials[trial.value()]));
            learner.seen.over(trial, 9, study::TrialPhase::finished);
        };
        for (std::uint32_t i = 0; i < 24; ++i) {
            const TrialId trial = learner.create(space.sample(seed, TrialId(i)), {study::Origin::Kind::user, 0, 0});
            learner.seen.reported(trial, 1, -valley(learner.trials[i]) - 3.0);
            if (i < 4)
                finish(trial);
            else
                learner.seen.paused(trial, 1);
        }
        double best = infinite;
        for (int i = 0; i < 4; ++i) {
            const TrialId trial = learner.create_prepared();
            best = std::min(best, valley(learner.trials[trial.value()]));
            finish(trial);
        }
        return best;
    };
    const space::SearchSpace space = cube(2);
    double with = 0.0;
    double without = 0.0;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        with += best_of_next(space, seed, true);
        without += best_of_next(space, seed, false);
    }
    UNSCOPED_INFO(with << " " << without);
    CHECK(with < 0.02);
    CHECK(with < 0.5 * without);
}

TEST_CASE("gp with all_iterations suggests the same, whatever was computed before", "[searchers][gp]") {
    auto spec = study_with("gp", mixed(), 5, {{"max_results", 20}, {"startup", 5}, {"all_iterations", true}});
    spec.max_iterations = 9;
    Learner learner(spec);
    for (std::uint32_t i = 0; i < 40; ++i) {
        const TrialId trial = learner.create_prepared();
        const double loss = mixed_loss(learner.trials[trial.value()]);
        learner.seen.reported(trial, 1, -loss - 1.0);
        if (i % 3 != 0) {
            learner.seen.paused(trial, 1);
        } else {
            learner.seen.reported(trial, 3, -loss);
            if (i % 9 == 0)
                learner.seen.over(trial, 3, study::TrialPhase::failed);
            else
                learner.seen.paused(trial, 3);
        }
        if (i % 8 != 7) continue;
        const Observations seen = learner.seen.first(learner.seen.size());
        CHECK(make_searcher(*learner.spec)->prepare(1000, seen)().configuration ==
              learner.searcher->prepare(1000, seen)().configuration);
    }
}

} // namespace gp_test
