// SPDX-License-Identifier: Apache-2.0
#include "simulate/curves.hpp"

#include <cmath>
#include <set>

#include "setups.hpp"
#include "support/catch.hpp"

using namespace ranktune;
using namespace ranktune::simulate;

namespace {

Curves curves_of(const study::StudySpec& spec, const CurveModel& model = {}) { return {model, {}, spec}; }

space::Configuration at(const study::StudySpec& spec, double x, double y) {
    const double point[] = {x, y};
    return spec.space.decode(point);
}

} // namespace

TEST_CASE("a curve is a power law with limits inside those of the model", "[simulate]") {
    const auto spec = simulate::testing::spec("num_trials = 4\nmax_iterations = 100");
    const Curves curves = curves_of(spec);
    for (const double x : {0.0, 0.3, 0.7, 0.99}) {
        const Curve curve = curves.curve(at(spec, x, 0.5));
        CHECK(curve.limit <= 0.95);
        CHECK(curve.limit >= 0.45 - 0.02);
        CHECK(curve.speed >= 0.3);
        CHECK(curve.speed <= 1.0);
        CHECK(curve.quality({8.0, 0.0}) == Approx(curve.limit - curve.gap * std::pow(8.0, -curve.speed)));
        CHECK(curve.quality({1.0, 0.0}) >= 0.1);
        CHECK(curve.quality({2.0, 0.0}) > curve.quality({1.0, 0.0}));
    }
}

TEST_CASE("curves are functions of seed, configuration and iteration", "[simulate]") {
    const auto spec = simulate::testing::spec("num_trials = 4\nmax_iterations = 100");
    const Curves curves = curves_of(spec);
    const Curve one = curves.curve(at(spec, 0.2, 0.4));
    const Curve again = curves_of(spec).curve(at(spec, 0.2, 0.4));
    CHECK(one.limit == again.limit);
    CHECK(curves.chance(one, 7).noise == curves.chance(again, 7).noise);
    CHECK(curves.chance(one, 7).noise != curves.chance(one, 8).noise);
    CHECK(curves.curve(at(spec, 0.3, 0.4)).limit != one.limit);
    CurveModel other;
    other.seed = 2;
    CHECK(curves_of(spec, other).curve(at(spec, 0.2, 0.4)).limit != one.limit);
    auto reseeded = spec;
    reseeded.seed = 2;
    other.seed = 1; // the curves of seed 1, whatever the study's seed
    CHECK(curves_of(reseeded, other).curve(at(spec, 0.2, 0.4)).limit == one.limit);
}

TEST_CASE("curves cross", "[simulate]") {
    const auto spec = simulate::testing::spec("num_trials = 4\nmax_iterations = 100");
    const Curves curves = curves_of(spec);
    int crossings = 0;
    for (std::uint32_t i = 0; i < 100; ++i) {
        const Curve a = curves.curve(spec.space.sample(5, base::TrialId{2 * i}));
        const Curve b = curves.curve(spec.space.sample(5, base::TrialId{2 * i + 1}));
        if ((a.quality({1.0, 0.0}) < b.quality({1.0, 0.0})) != (a.quality({100.0, 0.0}) < b.quality({100.0, 0.0})))
            ++crossings;
    }
    CHECK(crossings > 10);
    CHECK(crossings < 90);
}

TEST_CASE("a state keeps its quality under another configuration and moves towards its limit", "[simulate]") {
    const auto spec = simulate::testing::spec("num_trials = 4\nmax_iterations = 100");
    const Curves curves = curves_of(spec);
    Curve good;
    good.limit = 0.9;
    good.gap = 0.8;
    good.speed = 0.5;
    Curve bad = good;
    bad.limit = 0.5;
    bad.gap = 0.4;
    CHECK(good.progress_at(good.quality({37.0, 0.0})).iterations == 37.0); // exactly: its own iteration

    const double low = bad.quality({4.0, 0.0});
    Progress progress = good.progress_at(low);
    CHECK(good.quality(progress) == Approx(low));
    curves.advance(progress);
    CHECK(good.quality(progress) > low);

    const double high = good.quality({100.0, 0.0}); // 0.82, above the limit of `bad`
    progress = bad.progress_at(high);
    CHECK(bad.quality(progress) == Approx(high));
    curves.advance(progress);
    CHECK(bad.quality(progress) == Approx(0.5 + 0.8 * 0.32));
}

TEST_CASE("grids, choices and constants have a place in the landscape", "[simulate]") {
    const std::string text =
        "[study]\nname = \"g\"\nmetric = \"m\"\nmode = \"min\"\nmax_iterations = 9\n"
        "[trainable]\nname = \"any\"\n[space]\na = \"grid([1, 2, 3, 4])\"\nb = 7\n"
        "[searcher]\ntype = \"grid\"\n";
    const auto spec =
        study::parse_study(text, "g.toml", {}, ranktune::testing::known({ranktune::testing::any_trainable("any")}));
    const Curves curves = curves_of(spec);
    std::set<double> limits;
    for (std::uint64_t i = 0; i < 4; ++i) {
        const auto configuration = spec.space.decode({}, i);
        REQUIRE(curves.point(configuration).size() == 1);
        CHECK(curves.point(configuration)[0] == Approx((static_cast<double>(i) + 0.5) / 4.0));
        limits.insert(curves.curve(configuration).limit);
    }
    CHECK(limits.size() == 4);
    CHECK(curves.metric(0.9) == Approx(0.1)); // smaller is better
    CHECK(curves.best_reachable() <= 0.95);
}
