// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "searchers/built_in.hpp"
#include "searchers/grid.hpp"
#include "searchers/random.hpp"
#include "searchers/sobol.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace searchers_test {

using namespace ranktune;
using base::TrialId;
using space::parse_domain;
using space::SearchSpace;

namespace {

SearchSpace space_of(const std::vector<std::pair<std::string, std::string>>& calls) {
    std::vector<space::Parameter> parameters;
    for (const auto& [name, call] : calls) parameters.push_back({name, parse_domain(call), std::nullopt});
    return SearchSpace(std::move(parameters));
}

template <class Make>
std::string refusal(Make make) {
    return ranktune::testing::error_of<base::UsageError>(make);
}

} // namespace

TEST_CASE("the random searcher samples the space with the study's seed", "[searchers]") {
    const SearchSpace space = space_of({{"lr", "loguniform(1e-4, 1)"}, {"n", "randint(1, 9)"}});
    const searchers::RandomSearcher searcher(space, 42);
    for (std::uint32_t trial = 0; trial < 20; ++trial)
        CHECK(searcher.suggest(trial, {}) == space.sample(42, TrialId(trial)));
}

TEST_CASE("the random searcher's first configurations never change", "[searchers]") {
    // Part of the reproducibility contract: a new version must not change what a seed means.
    const SearchSpace space =
        space_of({{"n", "randint(0, 1000)"}, {"c", "choice(['a', 'b', 'c'])"}, {"g", "grid([1, 2])"}});
    const searchers::RandomSearcher searcher(space, 1);
    CHECK(searcher.suggest(0, {})->text() == "n=117 c=b g=1");
    CHECK(searcher.suggest(1, {})->text() == "n=396 c=a g=2");
}

TEST_CASE("the grid searcher takes every point once and is then exhausted", "[searchers]") {
    const SearchSpace space = space_of({{"a", "choice(['x', 'y'])"}, {"n", "qrandint(0, 4, 2)"}});
    const searchers::GridSearcher searcher(space);
    std::vector<std::string> texts;
    for (std::uint32_t trial = 0; searcher.suggest(trial, {}); ++trial)
        texts.push_back(searcher.suggest(trial, {})->text());
    CHECK(texts == std::vector<std::string>{"a=x n=0", "a=x n=2", "a=x n=4", "a=y n=0", "a=y n=2", "a=y n=4"});
    CHECK_FALSE(searcher.suggest(6, {}).has_value());
    CHECK_FALSE(searcher.suggest(0xFFFFFFFFU, {}).has_value());
}

TEST_CASE("the grid searcher leaves out points that others have asked for before their turn", "[searchers]") {
    const SearchSpace space = space_of({{"a", "choice(['x', 'y'])"}, {"n", "qrandint(0, 4, 2)"}});
    searchers::GridSearcher searcher(space);
    std::uint32_t trials = 0;
    const auto create = [&](const space::Configuration& configuration, study::Origin::Kind kind, std::uint64_t index) {
        searcher.apply(study::TrialCreated{TrialId(trials++), {}, 1, 0, 0, {kind, index, 0}, configuration});
    };
    auto next = [&, index = std::uint64_t{0}]() mutable {
        const auto configuration = searcher.suggest(index, {});
        if (!configuration) return std::string("none");
        create(*configuration, study::Origin::Kind::searcher, index++);
        return configuration->text();
    };
    const space::Enumeration points(space);
    create(points.at(0), study::Origin::Kind::start, 0); // a=x n=0
    create(points.at(2), study::Origin::Kind::start, 1); // a=x n=4
    CHECK(next() == "a=x n=2");
    create(points.at(1), study::Origin::Kind::user, 0); // its turn has been
    create(points.at(4), study::Origin::Kind::user, 1); // a=y n=2
    create(points.at(4), study::Origin::Kind::repeat, 1);
    CHECK(next() == "a=y n=0");
    study::Bytes bytes;
    study::Encoder out(bytes);
    searcher.snapshot(out);
    searchers::GridSearcher restored(space);
    study::Decoder in(bytes);
    restored.restore(in);
    CHECK(restored.suggest(2, {})->text() == "a=y n=4");
    CHECK(next() == "a=y n=4");
    CHECK(searcher.exhausted(3));
    CHECK(next() == "none");
}

TEST_CASE("the grid searcher refuses a continuous domain by name", "[searchers]") {
    const SearchSpace space = space_of({{"a", "choice([1])"}, {"lr", "uniform(0, 1)"}});
    CHECK(refusal([&] { searchers::GridSearcher searcher(space); }) ==
          "a grid needs a finite number of values for every parameter; give a list, grid(...), an integer range or a "
          "quantised one for lr = uniform(0.0, 1.0)");
}

TEST_CASE("the unscrambled Sobol searcher takes the points of the sequence from point 0 on", "[searchers]") {
    const SearchSpace space = space_of({{"a", "uniform(0, 1)"}, {"b", "uniform(-1, 1)"}, {"c", "uniform(0, 8)"}});
    const searchers::SobolSearcher searcher(space, 1, false);
    CHECK(searcher.suggest(0, {})->text() == "a=0.0 b=-1.0 c=0.0");
    CHECK(searcher.suggest(1, {})->text() == "a=0.5 b=0.0 c=4.0");
    CHECK(searcher.suggest(2, {})->text() == "a=0.75 b=-0.5 c=2.0");
    CHECK(searcher.suggest(4, {})->text() == "a=0.375 b=-0.25 c=5.0");
}

TEST_CASE("the first 2^m trials of the Sobol searcher use every value of a choice equally often", "[searchers]") {
    const SearchSpace space =
        space_of({{"a", "choice([1, 2, 3, 4])"}, {"b", "randint(0, 8)"}, {"lr", "loguniform(1e-4, 1)"}});
    for (const bool scramble : {true, false}) {
        const searchers::SobolSearcher searcher(space, 5, scramble);
        std::map<std::string, int> count;
        for (std::uint32_t trial = 0; trial < 64; ++trial) {
            const auto configuration = searcher.suggest(trial, {});
            ++count["a" + configuration->at("a").text()];
            ++count["b" + configuration->at("b").text()];
        }
        CHECK(count.size() == 12);
        for (const auto& [value, times] : count) CHECK(times == (value[0] == 'a' ? 16 : 8));
    }
}

TEST_CASE("random and Sobol take the grid points of the space in turn", "[searchers]") {
    const SearchSpace space = space_of({{"g", "grid([1, 2, 3])"}, {"x", "uniform(0, 1)"}, {"h", "grid(['a', 'b'])"}});
    const searchers::RandomSearcher random(space, 1);
    const searchers::SobolSearcher sobol(space, 1, true);
    for (const searchers::Searcher* searcher :
         {static_cast<const searchers::Searcher*>(&random), static_cast<const searchers::Searcher*>(&sobol)}) {
        std::set<double> values;
        for (std::uint32_t trial = 0; trial < 12; ++trial) {
            const auto configuration = searcher->suggest(trial, {});
            CHECK(configuration->at("g") == space::Value(static_cast<int>(trial / 2 % 3 + 1)));
            CHECK(configuration->at("h") == space::Value(trial % 2 == 0 ? "a" : "b"));
            values.insert(configuration->at("x").as_double());
        }
        CHECK(values.size() == 12);
    }
}

TEST_CASE("the Sobol searcher refuses more parameters than it has direction numbers for", "[searchers]") {
    std::vector<std::pair<std::string, std::string>> calls;
    for (int i = 0; i < 3667; ++i) calls.emplace_back("p" + std::to_string(i), "uniform(0, 1)");
    CHECK(searchers::SobolSearcher(space_of(calls), 1, true).name() == "sobol");
    calls.emplace_back("one_more", "uniform(0, 1)");
    const SearchSpace space = space_of(calls);
    CHECK(refusal([&] { searchers::SobolSearcher searcher(space, 1, true); }) ==
          "the sobol searcher has direction numbers for at most 3667 parameters, the space has 3668; use the random "
          "searcher");
}

TEST_CASE("make_searcher makes what the study asks for", "[searchers]") {
    study::StudySpec spec;
    spec.seed = 3;
    spec.space = space_of({{"n", "randint(0, 4)"}, {"m", "randint(0, 4)"}});
    spec.searcher = searchers::chosen("random");
    CHECK(searchers::make_searcher(spec)->name() == "random");
    spec.searcher = searchers::chosen("grid");
    CHECK(searchers::make_searcher(spec)->name() == "grid");
    spec.searcher = searchers::chosen("sobol", {{"scramble", false}});
    const auto plain = searchers::make_searcher(spec);
    CHECK(plain->name() == "sobol");
    CHECK(plain->suggest(0, {})->text() == "n=0 m=0");
    spec.searcher = searchers::chosen("sobol");
    const auto scrambled = searchers::make_searcher(spec);
    bool differs = false;
    for (std::uint32_t trial = 0; trial < 16; ++trial)
        differs = differs || scrambled->suggest(trial, {}) != plain->suggest(trial, {});
    CHECK(differs);
}

TEST_CASE("a stopgap is not the point that a ticket gets before there are results", "[searchers]") {
    std::size_t seen = 0;
    for (const auto& info : searchers::built_in()) {
        if (info->name != "auto" && info->name != "gp" && info->name != "tpe") continue;
        study::StudySpec spec;
        spec.seed = 5;
        spec.searcher = study::chosen(info);
        spec.space = space_of({{"x", "uniform(0, 1)"}, {"y", "uniform(0, 1)"}});
        const auto searcher = searchers::make_searcher(spec);
        INFO(info->name);
        ++seen;
        const searchers::Observations none(spec.space.dimensions());
        std::set<std::string> texts;
        for (std::uint64_t i = 0; i < 8; ++i) {
            texts.insert(searcher->prepare(i, none)().configuration.text());
            texts.insert(searcher->suggest(i, none)->text());
        }
        CHECK(texts.size() == 16);
    }
    CHECK(seen == 3);
}

TEST_CASE("two seeds give different configurations, except from searchers that draw nothing", "[searchers]") {
    const auto differ = [](const study::SearcherSpec& searcher) {
        const auto texts = [&](std::uint64_t seed) {
            study::StudySpec spec;
            spec.seed = seed;
            spec.searcher = searcher;
            spec.space = space_of({{"n", "randint(0, 1000)"}, {"c", "choice(['a', 'b', 'c'])"}});
            const auto made = searchers::make_searcher(spec);
            std::string all;
            for (std::uint32_t trial = 0; trial < 8; ++trial) all += made->suggest(trial, {})->text() + "\n";
            return all;
        };
        return texts(1) != texts(2);
    };
    CHECK(differ(searchers::chosen("random")));
    CHECK(differ(searchers::chosen("sobol")));
    CHECK_FALSE(differ(searchers::chosen("sobol", {{"scramble", false}})));
    CHECK_FALSE(differ(searchers::chosen("grid")));
}

} // namespace searchers_test
