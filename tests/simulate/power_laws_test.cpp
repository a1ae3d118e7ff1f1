// SPDX-License-Identifier: Apache-2.0
#include "simulate/power_laws.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "setups.hpp"
#include "support/catch.hpp"

namespace power_laws_test {

using namespace ranktune;
using namespace ranktune::simulate;

namespace {

PowerLaws curves_of(const study::StudySpec& spec, const CurveModel& model = {}) {
    return PowerLaws(model, TimeModel{}, spec);
}

space::Configuration at(const study::StudySpec& spec, double x, double y) {
    const double point[] = {x, y};
    return spec.space.decode(point);
}

} // namespace

TEST_CASE("a curve is a power law with limits inside those of the model", "[simulate]") {
    const auto spec = simulate::testing::spec("num_trials = 4\nmax_iterations = 100");
    const PowerLaws curves = curves_of(spec);
    for (const double x : {0.0, 0.3, 0.7, 0.99}) {
        const PowerLaw curve = curves.law(at(spec, x, 0.5));
        CHECK(curve.limit <= 0.95);
        CHECK(curve.limit >= 0.45 - 0.005);
        CHECK(curve.speed >= 0.5);
        CHECK(curve.speed <= 1.5);
        CHECK(curve.quality({8.0, 0.0}) == Approx(curve.limit - curve.gap * std::pow(8.0, -curve.speed)));
        CHECK(curve.quality({1.0, 0.0}) >= 0.1);
        CHECK(curve.quality({2.0, 0.0}) > curve.quality({1.0, 0.0}));
    }
}

TEST_CASE("curves are functions of seed, configuration and iteration", "[simulate]") {
    const auto spec = simulate::testing::spec("num_trials = 4\nmax_iterations = 100");
    const PowerLaws curves = curves_of(spec);
    const PowerLaw one = curves.law(at(spec, 0.2, 0.4));
    const PowerLaw again = curves_of(spec).law(at(spec, 0.2, 0.4));
    CHECK(one.limit == again.limit);
    CHECK(curves.step(one, 7).noise == curves.step(again, 7).noise);
    CHECK(curves.step(one, 7).noise != curves.step(one, 8).noise);
    CHECK(curves.law(at(spec, 0.3, 0.4)).limit != one.limit);
    CurveModel other;
    other.seed = 2;
    CHECK(curves_of(spec, other).law(at(spec, 0.2, 0.4)).limit != one.limit);
    auto reseeded = spec;
    reseeded.seed = 2;
    other.seed = 1; // the curves of seed 1, whatever the study's seed
    CHECK(curves_of(reseeded, other).law(at(spec, 0.2, 0.4)).limit == one.limit);
}

TEST_CASE("curves cross", "[simulate]") {
    const auto spec = simulate::testing::spec("num_trials = 4\nmax_iterations = 100");
    const PowerLaws curves = curves_of(spec);
    int crossings = 0;
    for (std::uint32_t i = 0; i < 100; ++i) {
        const PowerLaw a = curves.law(spec.space.sample(5, base::TrialId{2 * i}));
        const PowerLaw b = curves.law(spec.space.sample(5, base::TrialId{2 * i + 1}));
        if ((a.quality({1.0, 0.0}) < b.quality({1.0, 0.0})) != (a.quality({100.0, 0.0}) < b.quality({100.0, 0.0})))
            ++crossings;
    }
    CHECK(crossings > 10);
    CHECK(crossings < 90);
}

TEST_CASE("a state keeps its quality under another configuration and moves towards its limit", "[simulate]") {
    PowerLaw good;
    good.limit = 0.9;
    good.gap = 0.8;
    good.speed = 0.5;
    PowerLaw bad = good;
    bad.limit = 0.5;
    bad.gap = 0.4;
    CHECK(good.progress_at(good.quality({37.0, 0.0})).iterations == 37.0); // exactly: its own iteration

    const double low = bad.quality({4.0, 0.0});
    Progress progress = good.progress_at(low);
    CHECK(good.quality(progress) == Approx(low));
    progress.iterations += 1.0;
    CHECK(good.quality(progress) > low);

    const double high = good.quality({100.0, 0.0}); // 0.82, above the limit of `bad`
    progress = bad.progress_at(high);
    CHECK(bad.quality(progress) == Approx(high));
    progress.lead *= 0.8;
    CHECK(bad.quality(progress) == Approx(0.5 + 0.8 * 0.32));
}

TEST_CASE("limits are spread alike in every space", "[simulate]") {
    const auto medians = [](const std::string& more) {
        const std::string text =
            "[study]\nname = \"g\"\nmetric = \"m\"\nmode = \"max\"\nnum_trials = 1\nmax_iterations = 81\n"
            "[trainable]\nname = \"any\"\n[space]\na = \"uniform(0, 1)\"\n" +
            more;
        const auto spec =
            study::parse_study(text, "g.toml", {}, ranktune::testing::known({ranktune::testing::any_trainable("any")}));
        CurveModel model;
        model.roughness = 0.0;
        const PowerLaws curves = curves_of(spec, model);
        std::vector<double> limits;
        for (std::uint32_t i = 0; i < 1001; ++i)
            limits.push_back(curves.law(spec.space.sample(7, base::TrialId{i})).limit);
        std::ranges::sort(limits);
        return limits[500];
    };
    const double expected = 0.95 - 0.5 * 0.25; // skew 2
    CHECK(medians("") == Approx(expected).margin(0.02));
    CHECK(medians("b = \"uniform(0, 1)\"\nc = \"uniform(0, 1)\"\nd = \"uniform(0, 1)\"\ne = \"uniform(0, 1)\"\n") ==
          Approx(expected).margin(0.02));
}

TEST_CASE("one of a hundred configurations comes within one percent of the best", "[simulate]") {
    const auto spec = simulate::testing::spec("num_trials = 4\nmax_iterations = 81");
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        CurveModel model;
        model.seed = seed;
        const PowerLaws curves = curves_of(spec, model);
        int near = 0;
        for (std::uint32_t i = 0; i < 4000; ++i)
            if (curves.law(spec.space.sample(7, base::TrialId{i})).quality({81.0, 0.0}) >=
                0.99 * curves.best_reachable())
                ++near;
        CHECK(near > 8);
        CHECK(near < 120);
    }
}

TEST_CASE("grids, choices and constants have a place in the landscape", "[simulate]") {
    const std::string text =
        "[study]\nname = \"g\"\nmetric = \"m\"\nmode = \"min\"\nmax_iterations = 9\n"
        "[trainable]\nname = \"any\"\n[space]\na = \"grid([1, 2, 3, 4])\"\nb = 7\n"
        "[searcher]\ntype = \"grid\"\n";
    const auto spec =
        study::parse_study(text, "g.toml", {}, ranktune::testing::known({ranktune::testing::any_trainable("any")}));
    const PowerLaws curves = curves_of(spec);
    std::set<double> limits;
    for (std::uint64_t i = 0; i < 4; ++i) {
        const auto configuration = spec.space.decode({}, i);
        REQUIRE(curves.point(configuration).size() == 1);
        CHECK(curves.point(configuration)[0] == Approx((static_cast<double>(i) + 0.5) / 4.0));
        limits.insert(curves.law(configuration).limit);
    }
    CHECK(limits.size() == 4);
    CHECK(curves.metric(0.9) == Approx(0.1)); // smaller is better
    CHECK(curves.best_reachable() <= 0.95);
}

} // namespace power_laws_test
