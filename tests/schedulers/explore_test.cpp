// SPDX-License-Identifier: Apache-2.0
// What becomes of a hyper-parameter when a trial takes over the state of another one.
#include "schedulers/population/explore.hpp"

#include <cmath>
#include <set>
#include <vector>

#include "support/catch.hpp"

namespace explore_test {

using namespace ranktune;
using namespace ranktune::schedulers;
using space::Value;

namespace {

const std::vector<double> usual{0.8, 1.2};

base::RngStream stream(std::uint32_t draw) { return {7, base::Purpose::explore, 0, draw}; }

/// What many draws give.
std::set<std::string> outcomes(const space::Domain& domain, const Value& value, const std::vector<double>& factors) {
    std::set<std::string> found;
    for (std::uint32_t draw = 0; draw < 64; ++draw) {
        base::RngStream random = stream(draw);
        const Value moved = explored(domain, value, factors, random);
        CHECK(space::contains(domain, moved));
        found.insert(moved.text());
    }
    return found;
}

using Texts = std::set<std::string>;

} // namespace

TEST_CASE("Floats are multiplied by a factor, and stay in their range", "[schedulers][pbt]") {
    const space::FloatRange wide{0.0, 1000.0, false, 0.0};
    CHECK(outcomes(wide, 100.0, usual) == Texts{"80.0", "120.0"});
    CHECK(outcomes(space::FloatRange{1e-4, 1e-1, true, 0.0}, 0.01, {0.5, 2.0}) == Texts{"0.005", "0.02"});
    // Ray leaves the declared range here.
    const space::FloatRange narrow{0.9, 1.1, false, 0.0};
    CHECK(outcomes(narrow, 1.0, usual) == Texts{"0.9", Value(std::nextafter(1.1, 0.9)).text()});
    // What cannot be multiplied is drawn.
    CHECK(outcomes(wide, 0.0, usual).size() == 64);
    CHECK(outcomes(wide, 100.0, {}).size() == 64);
}

TEST_CASE("Integers move by one step at least", "[schedulers][pbt]") {
    const space::IntRange range{1, 100, false, 1};
    CHECK(outcomes(range, 10, usual) == Texts{"8", "12"});
    // In Ray int(v * 1.2) never grows for v <= 4, and int(v * 0.8) shrinks: a drift to the bottom.
    CHECK(outcomes(range, 4, usual) == Texts{"3", "5"});
    CHECK(outcomes(range, 2, usual) == Texts{"1", "3"});
    CHECK(outcomes(range, 1, usual) == Texts{"1", "2"});
    CHECK(outcomes(range, 100, usual) == Texts{"80", "100"});
    CHECK(outcomes(space::IntRange{32, 256, false, 32}, 128, usual) == Texts{"96", "160"});
    CHECK(outcomes(space::IntRange{-10, 10, false, 1}, -5, usual) == Texts{"-4", "-6"});
    CHECK(outcomes(space::IntRange{-10, 10, false, 1}, 0, usual).size() > 10);
}

TEST_CASE("Multiples of a quantum move by one of them at least", "[schedulers][pbt]") {
    const space::FloatRange tenths{0.0, 1.0, false, 0.1};
    CHECK(outcomes(tenths, 0.3, usual) == Texts{"0.2", "0.4"});
    CHECK(outcomes(tenths, 1.0, usual) == Texts{"0.8", "1.0"});
    CHECK(outcomes(space::Normal{0.0, 1.0, 0.5}, 1.0, usual) == Texts{"0.5", "1.5"});
    const space::FloatRange from_lower{.lower = 0.15, .upper = 0.5, .quantum = 0.1, .from_lower = true};
    CHECK(outcomes(from_lower, 0.25, usual) == Texts{"0.15", "0.35"});
    CHECK(outcomes(from_lower, 0.45, usual) == Texts{"0.35", "0.45"});
    const space::IntRange threes{.lower = 1, .upper = 12, .quantum = 3, .from_lower = true};
    CHECK(outcomes(threes, 7, usual) == Texts{"4", "10"});
    CHECK(outcomes(threes, 10, usual) == Texts{"7", "10"});
    CHECK(outcomes(space::Normal{0.0, 1.0, 0.0}, 1.0, usual) == Texts{"0.8", "1.2"});
}

// (Ray moves to a neighbour in every list. Here a list has neighbours only if the study file says that it is ordered:
// next to "sgd" lies nothing.)
TEST_CASE("P5: ordered choices go to a neighbour, others are drawn [PerturbationValues]", "[schedulers][pbt]") {
    const space::Choice ordered{{3, 4, 8, 10}, true};
    CHECK(outcomes(ordered, 4, usual) == Texts{"3", "8"});
    CHECK(outcomes(ordered, 3, usual) == Texts{"3", "4"});
    CHECK(outcomes(ordered, 10, usual) == Texts{"8", "10"});
    CHECK(outcomes(ordered, 7, usual) == Texts{"3", "4", "8", "10"}); // no value of the list
    CHECK(outcomes(ordered, 4, {}) == Texts{"3", "4", "8", "10"});
    CHECK(outcomes(space::Choice{{"adam", "sgd"}, false}, "sgd", {}) == Texts{"adam", "sgd"});
    CHECK(outcomes(space::Grid{{1, 2, 3}}, 2, {}) == Texts{"1", "2", "3"});
}

TEST_CASE("Conditional hyper-parameters come and go with what they depend on", "[schedulers][pbt]") {
    const space::SearchSpace space(
        {{"optimizer", space::Choice{{"adam", "sgd"}, false}, {}},
         {"momentum", space::FloatRange{0.5, 0.99, false, 0.0}, space::Condition::parse("optimizer == 'sgd'")},
         {"lr", space::FloatRange{0.01, 1.0, true, 0.0}, {}}});
    const space::Configuration adam({{"optimizer", "adam"}, {"lr", 0.1}});
    const space::Configuration sgd({{"optimizer", "sgd"}, {"momentum", 0.75}, {"lr", 0.1}});
    bool came = false;
    bool went = false;
    for (std::uint32_t draw = 0; draw < 32; ++draw) {
        base::RngStream random = stream(draw);
        const auto from_adam = explored(space, adam, {{"optimizer", {}}}, 0.0, "", adam, random);
        const auto from_sgd = explored(space, sgd, {{"optimizer", {}}, {"momentum", {1.01}}}, 0.0, "", adam, random);
        CHECK(from_adam.contains("momentum") == (from_adam.at("optimizer").as_string() == "sgd"));
        CHECK(from_sgd.contains("momentum") == (from_sgd.at("optimizer").as_string() == "sgd"));
        CHECK(from_adam.at("lr").as_double() == 0.1);
        came = came || from_adam.contains("momentum");
        went = went || !from_sgd.contains("momentum");
    }
    CHECK(came);
    CHECK(went);
}

TEST_CASE("Rules are kept by what explores alone: the rest goes with the donor's state", "[schedulers][pbt]") {
    const space::SearchSpace space({{"width", space::Choice{{32, 64, 128}, true}, {}},
                                    {"lr", space::FloatRange{1e-4, 1.0, true, 0.0}, {}},
                                    {"ranks", space::IntRange{1, 4, false, 1}, {}}},
                                   {{space::Condition::parse("width * lr <= 1"), false},
                                    {space::Condition::parse("ranks == 4 and width == 128"), true}});
    const space::Configuration donor({{"width", 128}, {"lr", 0.005}, {"ranks", 1}});
    const space::Configuration own({{"width", 32}, {"lr", 0.02}, {"ranks", 3}});
    for (std::uint32_t draw = 0; draw < 64; ++draw) {
        base::RngStream random = stream(draw);
        const auto changed = explored(space, donor, {{"lr", {0.1, 8.0}}}, 0.25, "ranks", own, random);
        CHECK(space.broken_by(changed) == nullptr);
        CHECK(changed.at("width").as_int() == 128);
        CHECK(changed.at("ranks").as_int() == 3);
    }
}

} // namespace explore_test
