// SPDX-License-Identifier: Apache-2.0
// The searcher cmaes: which results it learns from, in which order, and on which spaces.
#include "searchers/cmaes.hpp"

#include <cmath>
#include <limits>

#include "ranktune/base/error.hpp"
#include "searchers/learner.hpp"
#include "support/catch.hpp"

namespace cmaes_test {

using namespace ranktune;
using namespace ranktune::searchers;
using namespace ranktune::searchers::testing;

namespace {

using Configuration = space::Configuration;

/// Numbers of every kind; the optimum is inside the ranges, and no border of an interval.
space::SearchSpace numbers() {
    return space_of({{"lr", "loguniform(1e-5, 1)"},
                     {"momentum", "quniform(0, 1, 0.1)"},
                     {"layers", "randint(1, 9)"},
                     {"width", "lograndint(16, 1025)"},
                     {"level", "choice(['low', 'middle', 'high', 'highest'], ordered=true)"},
                     {"noise", "randn(0, 1)"},
                     {"fixed", "choice(['this'])"},
                     {"flat", "uniform(0.5, 0.5)"}});
}

double loss_of_numbers(const Configuration& c) {
    const auto part = [&](const char* name, double optimum, double width) {
        const double x = c.at(name).as_double();
        return (x - optimum) * (x - optimum) / (width * width);
    };
    const double lr = std::log10(c.at("lr").as_double()) + 2.3;
    const double width = std::log2(static_cast<double>(c.at("width").as_int())) - 7.0;
    const std::string level = c.at("level").as_string();
    return lr * lr + part("momentum", 0.9, 0.5) +
           std::pow(static_cast<double>(c.at("layers").as_int()) - 6.0, 2) / 9.0 + width * width / 4.0 +
           (level == "high"  ? 0.0
            : level == "low" ? 1.0
                             : 0.5) +
           part("noise", 1.0, 1.0);
}

double sphere(const Configuration& c) {
    double sum = 0.0;
    for (const auto& [name, value] : c.entries()) sum += (value.as_double() - 0.3) * (value.as_double() - 0.3);
    return sum;
}

} // namespace

TEST_CASE("cmaes finds the optimum among numbers of every kind", "[searchers][cmaes]") {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        Learner learner(study_with("cmaes", numbers(), seed));
        CHECK(search(learner, 600, 1, loss_of_numbers) < 0.01);
        CHECK(learner.trials.front().at("fixed").as_string() == "this");
        CHECK(learner.trials.front().at("flat").as_double() == 0.5);
    }
}

TEST_CASE("cmaes learns while trials run, fail, give NaN or never end", "[searchers][cmaes]") {
    const auto difficult = [](const Configuration& c) {
        const double value = c.at("x1").as_double();
        const double fate = std::fmod(1e6 * c.at("x0").as_double(), 1.0);
        if (fate < 0.1) return std::numeric_limits<double>::quiet_NaN(); // never ends
        return value > 0.8 || fate < 0.2 ? -1.0 : sphere(c);             // fails
    };
    Learner learner(study_with("cmaes", cube(4)));
    CHECK(search(learner, 400, 12, difficult) < 1e-3);
    // Scores that are not finite are worst.
    Learner odd(study_with("cmaes", cube(4)));
    for (std::uint32_t i = 0; i < 300; ++i) {
        const TrialId trial = odd.create();
        odd.finish(trial, i % 7 == 0 ? -infinite : -sphere(odd.trials[i]));
    }
    CHECK(sphere(odd.trials.back()) < 1e-3);
}

TEST_CASE("cmaes: trials that run hold nothing up, and their late results count", "[searchers][cmaes]") {
    Learner learner(study_with("cmaes", cube(2), 1, {{"population", 6}}));
    const auto next = [&] { return learner.searcher->suggest(100, learner.seen)->text(); };
    const std::string first = next();
    const TrialId late = learner.create();
    for (int i = 0; i < 5; ++i) {
        const TrialId trial = learner.create();
        CHECK(next() == first);
        learner.finish(trial, -sphere(learner.trials[trial.value()]));
    }
    CHECK(next() == first);
    learner.finish(learner.create(), -1.0);
    const std::string second = next();
    CHECK(second != first); // the sixth result completes a generation
    for (int i = 0; i < 5; ++i) learner.finish(learner.create(), -1.0);
    CHECK(next() == second);
    learner.finish(late, 0.0); // the sixth one of the next generation
    CHECK(next() != second);
}

TEST_CASE("cmaes learns from starting points and from those of users", "[searchers][cmaes]") {
    Learner learner(study_with("cmaes", cube(3)));
    const double corner[] = {0.9, 0.9, 0.9};
    for (int i = 0; i < 7; ++i) {
        const TrialId trial = learner.create(learner.spec->space.decode(corner), {study::Origin::Kind::start, 0, 0});
        learner.finish(trial, 1.0);
    }
    double mean = 0.0;
    for (std::uint32_t i = 0; i < 100; ++i) mean += learner.unit(learner.create())[0] / 100.0;
    CHECK(mean > 0.6); // towards the corner, though not all the way
    CHECK(mean < 0.9);
}

TEST_CASE("cmaes starts again with twice the population when nothing varies any more", "[searchers][cmaes]") {
    const auto spread = [](bool restarts) {
        Learner learner(study_with("cmaes", cube(2), 3, {{"restarts", restarts}}));
        double least = 1.0;
        double last = 1.0;
        for (int i = 0; i < 40; ++i) {
            double low = 1.0;
            double high = 0.0;
            for (int k = 0; k < 50; ++k) {
                const TrialId trial = learner.create();
                low = std::min(low, learner.unit(trial)[0]);
                high = std::max(high, learner.unit(trial)[0]);
                learner.finish(trial, -sphere(learner.trials[trial.value()]));
            }
            last = high - low;
            least = std::min(least, last);
        }
        return std::pair(least, last);
    };
    CHECK(spread(true).first < 1e-4);
    CHECK(spread(true).second > 1e-4);
    CHECK(spread(false).second < 1e-8);
}

TEST_CASE("cmaes: what it suggests follows from records and table, however they were read", "[searchers][cmaes]") {
    Learner learner(study_with("cmaes", numbers(), 4, {{"population", 5}}));
    std::vector<TrialId> running;
    for (std::uint32_t i = 0; i < 150; ++i) {
        running.push_back(
            i % 11 == 5 ? learner.create(learner.spec->space.sample(9, TrialId(i)), {study::Origin::Kind::user, 0, 0})
                        : learner.create());
        if (running.size() > 4) {
            const auto next = running.begin() + i % 4;
            learner.finish(*next, -loss_of_numbers(learner.trials[next->value()]));
            running.erase(next);
        }
        if (i % 10 == 0) {
            const Configuration expected = *learner.searcher->suggest(learner.suggested, learner.seen);
            CHECK(learner.restored()->suggest(learner.suggested, learner.seen) == expected);
        }
    }
}

TEST_CASE("cmaes keeps neighbours of an integer possible", "[searchers][cmaes]") {
    // The continuous coordinate takes 60 generations, and the integer must not settle before.
    Learner learner(
        study_with("cmaes", space_of({{"x", "uniform(0, 1)"}, {"n", "randint(0, 10)"}}), 2, {{"restarts", false}}));
    std::set<std::int64_t> late;
    for (int i = 0; i < 600; ++i) {
        const TrialId trial = learner.create();
        const Configuration& c = learner.trials[trial.value()];
        const double n = static_cast<double>(c.at("n").as_int()) - 7.0;
        learner.finish(trial, -std::abs(c.at("x").as_double() - 0.77) - n * n);
        if (i >= 500) late.insert(c.at("n").as_int());
    }
    CHECK(late.contains(7));
    CHECK(late.size() >= 2);
}

TEST_CASE("cmaes refuses what has no order", "[searchers][cmaes]") {
    const auto refusal = [](const std::vector<space::Parameter>& parameters) {
        const study::StudySpec spec = study_with("cmaes", space::SearchSpace(parameters));
        try {
            (void)make_searcher(spec);
            return std::string();
        } catch (const base::UsageError& error) {
            return std::string(error.what());
        }
    };
    const space::Parameter kind{"kind", space::parse_domain("choice(['sgd', 'adam'])"), {}};
    CHECK(refusal({kind}) ==
          "searcher.type: \"cmaes\" needs a number for 'kind' in every trial, not ['sgd', 'adam']; if the values "
          "have an order, "
          "write choice([...], ordered=true); otherwise use \"tpe\" or \"auto\"");
    std::vector<space::Value> many;
    for (std::int64_t i = 0; i < 300; ++i) many.emplace_back(i);
    CHECK(refusal({{"kind", space::Choice{many}, {}}}).find("not one of 300 values; if") != std::string::npos);
    const space::Parameter a{"a", space::parse_domain("uniform(0, 1)"), {}};
    CHECK(refusal({a, {"b", a.domain, space::Condition::parse("a > 0.5")}}) ==
          "searcher.type: \"cmaes\" needs a number for 'b' in every trial, not a parameter with a condition; remove "
          "the condition, "
          "or use \"tpe\" or \"auto\"");
    CHECK(refusal({a, {"one", space::parse_domain("choice(['only'])"), {}}}).empty());
}

TEST_CASE("cmaes: a suggestion names its generation", "[searchers][cmaes]") {
    Learner learner(study_with("cmaes", cube(2), 1, {{"population", 5}}));
    const auto note = [&](std::uint64_t index) { return learner.searcher->basis(index, learner.seen).note; };
    CHECK(note(0) == "generation 1 of start 1, 0 of 5 results in");
    for (std::uint32_t i = 0; i < 7; ++i) learner.finish(learner.create(), i);
    CHECK(note(7) == "generation 2 of start 1, 2 of 5 results in");
}

} // namespace cmaes_test
