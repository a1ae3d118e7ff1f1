// SPDX-License-Identifier: Apache-2.0
// PASHA: its soft ranking, its epsilon and its ceiling, worked by hand.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "schedulers/asha/curve_noise.hpp"
#include "schedulers/asha/progressive_asha.hpp"
#include "schedulers/asha/soft_ranking.hpp"
#include "schedulers/driver.hpp"
#include "support/catch.hpp"

namespace pasha_test {

using namespace ranktune;
using namespace ranktune::schedulers;

namespace {

using Settings = std::vector<study::OptionValue>;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

struct Pasha : Driver {
    explicit Pasha(const Settings& settings, base::Iteration ceiling = 27, study::Mode mode = study::Mode::max)
        : Driver(spec_of(chosen("pasha", settings), ceiling, mode)) {}
    [[nodiscard]] const ProgressiveAsha& pasha() const { return dynamic_cast<const ProgressiveAsha&>(scheduler()); }
    [[nodiscard]] base::Iteration top() const { return pasha().top(); }
    /// Makes a trial that pauses at the first rung.
    void enter(double value) { report(add(), 1, value, true); }
    [[nodiscard]] std::string offer(const Pool& pool = {.can_create = true, .active = true}) const {
        const auto promotion = next(pool);
        return promotion ? "#" + std::to_string(promotion->trial.value()) + " " + std::to_string(promotion->from) +
                               "->" + std::to_string(promotion->target)
                         : "-";
    }
    /// Promotes what is offered, which must be this trial.
    void promote_next(std::uint32_t trial) {
        const auto promotion = next({.can_create = true, .active = true});
        REQUIRE(promotion);
        REQUIRE(promotion->trial == TrialId(trial));
        promote(*promotion);
    }
    /// A trial trains one iteration after the other and reports these values.
    void train(std::uint32_t trial, base::Iteration from, const std::vector<double>& values) {
        for (const double value : values) report(TrialId(trial), from++, value, true);
    }
};

SoftRanking ranking_of(const std::vector<std::pair<double, double>>& below_and_own) {
    SoftRanking ranking;
    std::uint32_t trial = 0;
    for (const auto& [below, own] : below_and_own) ranking.insert(TrialId(trial++), below, own);
    return ranking;
}

/// The definition, by sorting.
bool consistent(const std::vector<std::pair<double, double>>& below_and_own, double epsilon) {
    std::vector<study::Ranked> below;
    std::vector<study::Ranked> own;
    for (std::uint32_t i = 0; i < below_and_own.size(); ++i) {
        below.push_back({below_and_own[i].first, TrialId(i)});
        own.push_back({below_and_own[i].second, TrialId(i)});
    }
    std::ranges::sort(below, study::better);
    std::ranges::sort(own, study::better);
    for (std::size_t i = 0; i < own.size(); ++i) {
        if (std::abs(below_and_own[own[i].trial.value()].first - below[i].score) > epsilon) return false;
    }
    return true;
}

void add_curve(CurveNoise& noise, std::uint32_t trial, const std::vector<double>& scores) {
    for (std::size_t i = 0; i < scores.size(); ++i) noise.add(TrialId(trial), i + 1, scores[i]);
}

} // namespace

TEST_CASE("soft ranking: at each position the two scores at the rung below differ by at most epsilon",
          "[schedulers][pasha]") {
    // below: a 10, b 9, c 5; own order b a c
    CHECK(ranking_of({{10, 2}, {9, 3}, {5, 1}}).consistent(1));
    CHECK_FALSE(ranking_of({{10, 2}, {9, 3}, {5, 1}}).consistent(0.5));
    // own order c b a: 10 against 5
    CHECK(ranking_of({{10, 1}, {9, 2}, {5, 3}}).consistent(5));
    CHECK_FALSE(ranking_of({{10, 1}, {9, 2}, {5, 3}}).consistent(4.5));
    // below: 10, 9.5, 9; own order: the third, the first, the second. 9 stands where 10 stood.
    CHECK(ranking_of({{10, 2}, {9.5, 1}, {9, 3}}).consistent(1));
    CHECK_FALSE(ranking_of({{10, 2}, {9.5, 1}, {9, 3}}).consistent(0.75));
    // Equal scores below may come in any order; one trial, or none, is consistent.
    CHECK(ranking_of({{7, 1}, {7, 2}, {3, 0}}).consistent(0));
    CHECK(ranking_of({{7, 1}}).consistent(0));
    CHECK(ranking_of({}).consistent(0));
}

TEST_CASE("soft ranking checked after each trial agrees with sorting", "[schedulers][pasha]") {
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
        base::RngStream random(seed, base::Purpose::fault, 0);
        const double noise = 0.02 * (seed % 5);
        SoftRanking ranking;
        std::vector<std::pair<double, double>> all;
        std::size_t held = 0;
        for (std::uint32_t i = 0; i < 700; ++i) {
            const double below = random.uniform();
            all.emplace_back(below, below + noise * random.uniform());
            ranking.insert(TrialId(i), all.back().first, all.back().second);
            if (i % 7 == 3) continue; // two insertions before the next check
            const double epsilon = (i % 3 == 0 ? 0.8 : 1.0) * 0.04;
            const bool holds = consistent(all, epsilon);
            REQUIRE(ranking.consistent(epsilon) == holds);
            REQUIRE(ranking.valid());
            held += holds ? 1 : 0;
        }
        CHECK(held > 0);
    }
}

TEST_CASE("noise: curves that cross and cross back, at the distance of their newest common iteration",
          "[schedulers][pasha]") {
    CurveNoise noise;
    add_curve(noise, 0, {3, 2, 3});
    CHECK_FALSE(noise.estimate());
    add_curve(noise, 1, {2, 3, 2.5}); // worse, better, worse
    CHECK(noise.estimate() == 0.5);

    CurveNoise once; // worse, better, better
    add_curve(once, 0, {1, 2, 3});
    add_curve(once, 1, {2, 1, 2.5});
    CHECK_FALSE(once.estimate());
    // Crosses back at the next iteration: 4 against 4.25.
    once.add(TrialId(0), 4, 4);
    CHECK_FALSE(once.estimate());
    once.add(TrialId(1), 4, 4.25);
    CHECK(once.estimate() == 0.25);
    // Goes on, without another crossing: the distance is that of the newest iteration that both have.
    once.add(TrialId(0), 5, 0);
    once.add(TrialId(0), 6, 0);
    once.add(TrialId(1), 5, 4);
    CHECK(once.estimate() == 4.0);
}

TEST_CASE("noise: epsilon is the 90th percentile of the distances, linear between neighbours", "[schedulers][pasha]") {
    CurveNoise noise;
    add_curve(noise, 0, {0, 0, 0});
    add_curve(noise, 1, {1, -1, 1});
    add_curve(noise, 2, {-20, -20, -20});
    add_curve(noise, 3, {-19, -21, -18});
    CHECK(noise.estimate() == Approx(1.9)); // of 1 and 2
    // Two more, far from the others, with distance 4. Place 0.9 * 2 in 1, 2, 4: 2 + 0.8 * 2.
    add_curve(noise, 4, {50, 50, 50});
    add_curve(noise, 5, {51, 49, 54});
    CHECK(noise.estimate() == Approx(3.6));
}

TEST_CASE("noise: only pairs that went beyond the rung below count; values that are not finite are left out",
          "[schedulers][pasha]") {
    CurveNoise noise;
    noise.restart(3);
    add_curve(noise, 0, {3, 2, 3});
    add_curve(noise, 1, {2, 3, 2.5});
    CHECK_FALSE(noise.estimate()); // iterations 1 to 3 only
    noise.add(TrialId(0), 4, 3);
    CHECK_FALSE(noise.estimate());
    noise.add(TrialId(1), 4, 2);
    CHECK(noise.estimate() == 1.0);
    noise.add(TrialId(1), 3, 100); // trained again after a loss
    CHECK(noise.estimate() == 1.0);
    noise.restart(4);
    CHECK_FALSE(noise.estimate());

    CurveNoise without;
    const double worst = -std::numeric_limits<double>::infinity();
    add_curve(without, 0, {3, worst, 3});
    add_curve(without, 1, {2, 3, 2.5});
    CHECK_FALSE(without.estimate());
    // Of equal scores that of the lower trial is better: better, better, better.
    CurveNoise equal;
    add_curve(equal, 0, {3, 2, 3});
    add_curve(equal, 1, {2, 2, 2});
    CHECK_FALSE(equal.estimate());
}

TEST_CASE("noise: the first 256 trials beyond the rung below count, also after a restore", "[schedulers][pasha]") {
    CurveNoise noise;
    for (std::uint32_t i = 0; i < CurveNoise::most_curves; ++i) add_curve(noise, i, {0, 0, 0});
    add_curve(noise, 256, {1, -1, 1});
    CHECK_FALSE(noise.estimate());
    study::Bytes bytes;
    study::Encoder out(bytes);
    noise.snapshot(out);
    CurveNoise other;
    study::Decoder in(bytes);
    other.restore(in);
    CHECK(in.empty());
    CHECK(other.valid());
    CHECK_FALSE(other.estimate());
    noise.restart(2);
    other.restart(2);
    for (CurveNoise* each : {&noise, &other}) {
        each->add(TrialId(0), 4, 0);
        each->add(TrialId(256), 4, 1.5);
        CHECK(each->estimate() == 1.5);
    }
}

TEST_CASE("PASHA: the top rises when the ranking of the top two rungs changes, worked by hand", "[schedulers][pasha]") {
    // eta 2, rungs 1 2 4 8, epsilon 0.5. At the top (2), in the order of scores there; scores at 1 in that order, and
    // in their own:
    //   #0            4
    //   #0 #1         4 3              4 3
    //   #0 #4 #1      4 3.4 3          4 3.4 3
    //   #0 #6 #4 #1   4 3.2 3.4 3      4 3.4 3.2 3      differ by 0.2
    //   #0 #6 #4 #1 #7  4 3.2 3.4 3 3.9   4 3.9 3.4 3.2 3   differ by 0.7: the top rises to 4
    for (const bool restores : {false, true}) {
        for (const double sign : {1.0, -1.0}) {
            Pasha d({{"eta", 2}, {"ranking", std::string("fixed")}, {"epsilon", 0.5}}, 8,
                    sign > 0 ? study::Mode::max : study::Mode::min);
            const auto resume = [&] {
                if (restores) d.replace_by_restored();
            };
            for (const double value : {4.0, 3.0, 2.0, 1.0}) d.enter(sign * value);
            d.promote_next(0);
            d.promote_next(1);
            CHECK(d.report(TrialId(0), 2, sign * 5).verb == Verb::pause);
            resume();
            d.report(TrialId(1), 2, sign * 4);
            CHECK(d.top() == 2);
            CHECK(d.offer() == "-"); // of two at the top one would go on, but there is no rung above
            d.enter(sign * 3.4);     // #4
            d.enter(sign * 0.0);     // #5
            d.promote_next(4);
            d.report(TrialId(4), 2, sign * 4.5);
            resume();
            CHECK(d.top() == 2);
            d.enter(sign * 3.2); // #6: third best of seven, after #0 and #4
            d.promote_next(6);
            d.report(TrialId(6), 2, sign * 4.7);
            CHECK(d.top() == 2);
            resume();
            d.enter(sign * 3.9); // #7
            d.promote_next(7);
            CHECK(d.offer() == "-");
            CHECK(d.report(TrialId(7), 2, sign * 1).verb == Verb::pause);
            resume();
            CHECK(d.top() == 4);
            CHECK(d.offer() == "#0 2->4"); // the best two of five
            d.promote_next(0);
            CHECK(d.offer() == "#6 2->4");
            CHECK(d.pasha().epsilon() == 0.5);
        }
    }
}

TEST_CASE("PASHA: a ranking that never changes keeps all trials below the third rung; the best goes to the end",
          "[schedulers][pasha]") {
    Pasha d({});
    for (std::uint32_t i = 0; i < 81; ++i) {
        d.enter(-1.0 * i);
        while (const auto promotion = d.next({.can_create = true, .active = true})) {
            d.promote(*promotion);
            d.train(promotion->trial.value(), 2, {-1.0 * promotion->trial.value(), -1.0 * promotion->trial.value()});
        }
    }
    CHECK(d.top() == 3);
    CHECK(d.pasha().epsilon() == 0.0);
    const auto rungs = d.scheduler().rungs();
    CHECK(rungs[0].promoted == 27);
    CHECK(rungs[1].entries == 27);
    CHECK(rungs[1].promoted == 0);
    const Pool idle{.can_create = false, .active = false};
    CHECK(d.offer(idle) == "#0 3->27");
    CHECK(d.next(idle)->reason == Reason::finish_top);
    d.promote(*d.next(idle));
    for (base::Iteration t = 4; t < 27; ++t) CHECK(d.report(TrialId(0), t, 0).verb == Verb::go_on);
    CHECK(d.report(TrialId(0), 27, 0).verb == Verb::stop);
    d.close(TrialId(0), study::TrialPhase::finished, Reason::max_iterations);
    CHECK(d.top() == 3); // its reports at 9 and 27 compare nothing
    CHECK(d.offer(idle) == "-");
}

TEST_CASE("PASHA: without noise any change of the ranking raises the top, with noise only a larger one",
          "[schedulers][pasha]") {
    for (const bool noisy : {false, true}) {
        // Three of nine go on from 1 to 3. Values at 1, 2, 3; a and b are #0 and #1:
        //   a 3 2 3   b 2 3 2.5: cross twice, distance 0.5      (without noise: b 2 1 2.5)
        //   c 2.8 1 3.1: crosses a once, b twice, distance 0.6   (without noise: c 2.8 1.5 3.1)
        // Epsilon: 0.5 + 0.9 * 0.1. At 1 the order is a c b, at 3 it is c a b: differs by 0.2.
        Pasha d({});
        d.enter(3);
        d.enter(2);
        d.enter(2.8);
        for (int i = 0; i < 6; ++i) d.enter(0.1 * i);
        d.promote_next(0);
        d.promote_next(2);
        d.promote_next(1);
        d.train(0, 2, {2, 3});
        d.train(1, 2, {noisy ? 3.0 : 1.0, 2.5});
        CHECK(d.pasha().epsilon() == (noisy ? 0.5 : 0.0));
        CHECK(d.top() == 3);
        d.replace_by_restored();
        d.train(2, 2, {noisy ? 1.0 : 1.5, 3.1});
        CHECK(d.pasha().epsilon() == Approx(noisy ? 0.59 : 0.0));
        CHECK(d.top() == (noisy ? 3 : 9));
        d.replace_by_restored();
        CHECK(d.top() == (noisy ? 3 : 9));
        CHECK(d.offer() == (noisy ? "-" : "#2 3->9"));
    }
}

TEST_CASE("PASHA: the estimate stays until there is another one at the next top", "[schedulers][pasha]") {
    // eta 2, rungs 1 2 4 8 16. Noise needs three iterations: none at the first top (2), so 0, and any change raises it.
    Pasha d({{"eta", 2}}, 16);
    for (const double value : {4.0, 3.9, 1.0, 0.0}) d.enter(value);
    d.promote_next(0);
    d.promote_next(1);
    d.train(0, 2, {5});
    d.train(1, 2, {5.5});
    CHECK(d.top() == 4);
    d.promote_next(1);
    d.train(1, 3, {5.5, 6});
    // Two more entries at 2 let #0 go on.
    for (const double value : {3.8, 3.7, 0.5, 0.5}) d.enter(value);
    d.promote_next(4);
    d.promote_next(5);
    d.train(4, 2, {4});
    d.train(5, 2, {4});
    d.promote_next(0);
    // #0: 4 5 6 6.25, #1: 3.9 5.5 5.5 6: better, worse, better, better; 0.25 apart.
    d.train(0, 3, {6, 6.25});
    CHECK(d.pasha().epsilon() == 0.25);
    CHECK(d.top() == 8); // #1 before #0 at 2, by 0.5
    d.replace_by_restored();
    CHECK(d.pasha().epsilon() == 0.25);
    d.promote_next(0);
    d.train(0, 5, {7, 7, 7, 7});
    CHECK(d.pasha().epsilon() == 0.25);
}

TEST_CASE("PASHA: failed trials and values that are not finite have no part in the ranking", "[schedulers][pasha]") {
    Pasha d({{"eta", 2}, {"ranking", std::string("fixed")}}, 8);
    for (const double value : {4.0, 3.0, 2.0, 1.0, 0.5, 0.25}) d.enter(value);
    d.promote_next(0);
    d.promote_next(1);
    d.promote_next(2);
    d.report(TrialId(1), 2, 3);
    d.report(TrialId(0), 2, not_a_number); // the best at 1; NaN is worst at 2
    CHECK(d.top() == 2);
    d.fail(TrialId(2));
    CHECK(d.top() == 2);
    d.apply(study::TrialReopened{TrialId(2), {}});
    d.report(TrialId(2), 2, 9); // a score after all, and before #1
    CHECK(d.top() == 4);
}

TEST_CASE("PASHA: a study with one or two rungs has its top at the ceiling", "[schedulers][pasha]") {
    for (const base::Iteration ceiling : {1U, 3U}) {
        Pasha d({}, ceiling);
        CHECK(d.top() == ceiling);
        for (std::uint32_t i = 0; i < 3; ++i) {
            const Verdict verdict = d.report(d.add(), 1, i, true);
            CHECK(verdict.verb == (ceiling == 1 ? Verb::stop : Verb::pause));
        }
        CHECK(d.offer() == (ceiling == 1 ? "-" : "#2 1->3"));
    }
}

TEST_CASE("PASHA: a finishing trial that fails and is reopened above the top is not ranked", "[schedulers][pasha]") {
    Pasha d({});
    d.enter(1);
    d.enter(2);
    const Pool idle{.can_create = false, .active = false};
    REQUIRE(d.offer(idle) == "#1 1->27");
    d.promote(*d.next(idle));
    d.train(1, 2, {2, 2});
    d.fail(TrialId(1));
    d.apply(study::TrialReopened{TrialId(1), {}});
    CHECK(d.report(TrialId(1), 9, 2).verb == Verb::pause);
    CHECK(d.top() == 3);
    CHECK(d.offer(idle) == "#1 9->27");
}

TEST_CASE("PASHA: snapshots of other settings or with damage are refused", "[schedulers][pasha]") {
    Pasha d({});
    for (int i = 0; i < 3; ++i) d.enter(i);
    const study::Bytes bytes = d.snapshot();
    Pasha other({{"eta", 2}});
    CHECK_THROWS_AS(other.restored(bytes), base::FormatError);
    study::Bytes version = bytes;
    version[0] = std::byte{9};
    CHECK_THROWS_AS(d.restored(version), base::FormatError);
}

} // namespace pasha_test
