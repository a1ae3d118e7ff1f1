// SPDX-License-Identifier: Apache-2.0
// ASHA's options `delayed` and `allotment`, worked by hand.
#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "schedulers/driver.hpp"
#include "schedulers/rungs/levels.hpp"
#include "support/catch.hpp"

namespace brackets_test {

using namespace ranktune;
using namespace ranktune::schedulers;

namespace {

using Levels = std::vector<std::vector<base::Iteration>>;
using Counts = std::vector<std::uint64_t>;

Levels brackets_of(base::Iteration first, std::uint64_t eta, base::Iteration ceiling, std::uint32_t brackets) {
    Levels levels;
    for (std::uint32_t b = 0; b < brackets; ++b) levels.push_back(integer_levels(first, eta, ceiling, b));
    return levels;
}

std::uint32_t bracket_of_next(const Driver& driver, std::uint32_t trial) {
    const Work work = driver.work({.can_create = true, .active = true, .trial = TrialId(trial)});
    return std::get<Create>(work).bracket;
}

std::string promotion(const Driver& driver) {
    const auto next = driver.next({.can_create = true, .active = true});
    return next ? "#" + std::to_string(next->trial.value()) : "-";
}

study::StudySpec delayed(bool is, base::Iteration ceiling = 27) {
    return spec_of(chosen("asha", {{"delayed", is}, {"finish_top", 0}}), ceiling);
}

} // namespace

TEST_CASE("D-ASHA: each trial better than all before, eta 3: the third, sixth and ninth go on", "[schedulers]") {
    // n entries, p promoted: another one only if n >= 3 (p + 1). ASHA itself lets each trial from #2 on go on.
    for (const bool is : {false, true}) {
        Driver d(delayed(is));
        std::vector<std::uint32_t> went_on;
        for (std::uint32_t i = 0; i < 9; ++i) {
            d.add();
            if (d.report(TrialId(i), 1, i).verb == Verb::go_on) went_on.push_back(i);
            CHECK(promotion(d) == "-");
        }
        if (is) {
            CHECK(went_on == std::vector<std::uint32_t>{2, 5, 8});
        } else {
            CHECK(went_on == std::vector<std::uint32_t>{2, 3, 4, 5, 6, 7, 8});
        }
    }
}

TEST_CASE("D-ASHA: when the rung has enough entries, the best paused one goes first", "[schedulers]") {
    Driver d(delayed(true));
    for (std::uint32_t i = 0; i < 5; ++i) {
        d.add();
        d.report(TrialId(i), 1, 10.0 * i, true);
        if (i == 2) d.promote(*d.next()); // #2: 3 entries, 1 promoted
    }
    CHECK(promotion(d) == "-"); // #4 is the best of five, but 5 < 3 * 2
    const TrialId sixth = d.add();
    CHECK(d.ask(sixth, 1, 35).verb == Verb::pause); // among the best 2 of 6, but #4 waits and is better
    CHECK(d.ask(sixth, 1, 45).verb == Verb::go_on);
    d.report(sixth, 1, 35);
    CHECK(promotion(d) == "#4");
    d.replace_by_restored();
    CHECK(promotion(d) == "#4");
    d.promote(*d.next());
    CHECK(promotion(d) == "-"); // 6 < 3 * 3, and #5 is among the best 2 of 6
    // ASHA promotes it.
    Driver asha(delayed(false));
    for (std::uint32_t i = 0; i < 5; ++i) {
        asha.add();
        asha.report(TrialId(i), 1, 10.0 * i, true);
        if (i == 2) asha.promote(*asha.next());
    }
    CHECK(promotion(asha) == "#4");
}

TEST_CASE("D-ASHA: a reopened failure takes its entry, and the promotion that it allowed, with it", "[schedulers]") {
    Driver d(delayed(true));
    for (std::uint32_t i = 0; i < 3; ++i) d.add();
    d.report(TrialId(0), 1, 1.0);
    d.report(TrialId(1), 1, 2.0);
    d.fail(TrialId(2));
    CHECK(promotion(d) == "#1");
    d.apply(study::TrialReopened{TrialId(2), {}});
    CHECK(promotion(d) == "-");
    d.report(TrialId(2), 1, 0.0);
    CHECK(promotion(d) == "#1");
}

TEST_CASE("a round of brackets has HyperBand's numbers of trials", "[schedulers]") {
    CHECK(budget_round(brackets_of(1, 3, 81, 5), 3) == Counts{81, 34, 15, 8, 5});
    CHECK(budget_round(brackets_of(1, 3, 27, 4), 3) == Counts{27, 12, 6, 4});
    CHECK(budget_round(brackets_of(1, 2, 16, 5), 2) == Counts{16, 10, 7, 5, 5});
    CHECK(budget_round(brackets_of(1, 4, 256, 5), 4) == Counts{256, 80, 27, 10, 5});
    // A ceiling between two powers: one trial costs 1 + 1 + 1 + 20/27, 3 + 3 + 20/9, 9 + 20/3, 20; B = 4 * 20.
    CHECK(budget_round(brackets_of(1, 3, 20, 4), 3) == Counts{22, 10, 6, 4});
    // Fewer brackets than HyperBand has: the same numbers. A larger first rung counts as the unit.
    CHECK(budget_round(brackets_of(1, 3, 81, 2), 3) == Counts{81, 34});
    CHECK(budget_round(brackets_of(5, 3, 135, 4), 3) == Counts{27, 12, 6, 4});
    // One bracket: each trial is in it, however many make a round.
    CHECK(budget_round(brackets_of(1, 3, 27, 1), 3) == Counts{27});
    // The largest numbers that a study file takes.
    CHECK(budget_round(brackets_of(1, 1'000'000, 1'000'000'000'000'000, 3), 1'000'000).size() == 3);
}

TEST_CASE("allotment budget fills brackets in turn, whatever was reported, and after a resume", "[schedulers]") {
    for (const std::string variant : {"promote", "stop"}) {
        // Rungs 1 3 9 27, 3 9 27, 9 27: rounds of 27 + 12 + 6 trials.
        Driver d(
            spec_of(chosen("asha", {{"variant", variant}, {"brackets", 3}, {"allotment", std::string("budget")}}), 27));
        const auto expected = [](std::uint32_t trial) {
            const std::uint32_t at = trial % 45;
            return at < 27 ? 0U : at < 39 ? 1U : 2U;
        };
        for (std::uint32_t i = 0; i < 100; ++i) {
            CHECK(bracket_of_next(d, i) == expected(i));
            d.add_in(expected(i));
            if (i % 10 == 0) d.fail(TrialId(i));
            if (i == 50) d.replace_by_restored();
        }
    }
}

TEST_CASE("the default allotment is Ray's draw", "[schedulers]") {
    Driver d(spec_of(chosen("asha", {{"brackets", 3}}), 27));
    const BracketDraw draw(d.spec().seed, {4, 3, 2});
    for (std::uint32_t i = 0; i < 100; ++i) CHECK(bracket_of_next(d, i) == draw(TrialId(i)));
}

TEST_CASE("allotment budget does not go with rule ray", "[schedulers]") {
    const auto with = [](const std::string& rule) {
        return spec_of(
            chosen("asha", {{"variant", std::string("stop")}, {"rule", rule}, {"allotment", std::string("budget")}}),
            27);
    };
    CHECK_NOTHROW(Driver(with("floor")));
    CHECK_THROWS_AS(Driver(with("ray")), base::UsageError);
}

} // namespace brackets_test
