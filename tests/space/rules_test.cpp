// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <map>

#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/space/enumeration.hpp"
#include "ranktune/space/search_space.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace rules_test {

using namespace ranktune::space;
using ranktune::base::RngStream;
using ranktune::base::TrialId;
using ranktune::base::UsageError;

namespace {

Parameter parameter(std::string name, const std::string& call, const std::string& condition = "") {
    Parameter made{std::move(name), parse_domain(call), std::nullopt};
    if (!condition.empty()) made.condition = Condition::parse(condition);
    return made;
}
Rule require(const std::string& text) { return {Condition::parse(text), false}; }
Rule forbid(const std::string& text) { return {Condition::parse(text), true}; }

std::vector<Parameter> square() { return {parameter("x", "uniform(0, 1)"), parameter("y", "uniform(0, 1)")}; }

std::vector<double> random_unit(const SearchSpace& space, RngStream& random) {
    std::vector<double> unit(space.dimensions());
    for (double& each : unit) each = random.uniform();
    return unit;
}

/// Whatever way configurations come about.
void check_all_allowed(const SearchSpace& space, std::uint32_t count = 300) {
    RngStream random(5, ranktune::base::user_purpose(0));
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto unit = random_unit(space, random);
        for (const Configuration& each :
             {space.sample(7, TrialId(i)), space.decode(unit, i), space.spread(unit, i, 7)}) {
            INFO(each.text());
            CHECK(space.broken_by(each) == nullptr);
        }
    }
}

std::string refusal(const std::vector<Parameter>& parameters, const std::vector<Rule>& rules) {
    return ranktune::testing::error_of<UsageError>([&] { return SearchSpace(parameters, rules); });
}

} // namespace

TEST_CASE("a requirement asks nothing of a configuration that lacks one of its parameters", "[space]") {
    CHECK(require("x < y").is_kept_by(Configuration({{"x", 1}, {"y", 2}})));
    CHECK_FALSE(require("x < y").is_kept_by(Configuration({{"x", 2}, {"y", 2}})));
    CHECK(require("x < y").is_kept_by(Configuration({{"x", 2}})));
    CHECK(forbid("x < y").is_kept_by(Configuration({{"x", 2}, {"y", 2}})));
    CHECK_FALSE(forbid("x < y").is_kept_by(Configuration({{"x", 1}, {"y", 2}})));
    CHECK(forbid("x < y").is_kept_by(Configuration({{"x", 2}})));
    CHECK(require("x < y").text() == "require \"x < y\"");
}

TEST_CASE("samples, points and spread points keep the rules", "[space]") {
    check_all_allowed(SearchSpace(square(), {require("x < y")}));
    check_all_allowed(SearchSpace(square(), {require("x ** 2 + y ** 2 <= 0.01")}));
    check_all_allowed(SearchSpace(
        {parameter("width", "qlograndint(16, 4096, 16)"), parameter("depth", "randint(1, 65)"),
         parameter("kind", "choice(['a', 'b', 'c'])"), parameter("momentum", "uniform(0, 1)", "kind == 'b'")},
        {require("width * depth <= 4096"), require("momentum * depth < 8"), forbid("kind == 'a' and width > 256"),
         forbid("kind in ['b', 'c'] and depth in [3, 5]")}));
    check_all_allowed(SearchSpace(
        {parameter("n", "grid([1, 2, 3, 4])"), parameter("m", "randint(0, 10)"), parameter("x", "randn(0, 1)")},
        {require("n + m == 7"), forbid("n == 3")}));
}

TEST_CASE("samples are spread as in the space without rules, given that the rules are kept", "[space]") {
    const SearchSpace space(square(), {require("x < y")});
    double x = 0.0;
    double y = 0.0;
    constexpr std::uint32_t count = 4000;
    for (std::uint32_t i = 0; i < count; ++i) {
        const Configuration each = space.sample(3, TrialId(i));
        x += each.at("x").as_double() / count;
        y += each.at("y").as_double() / count;
    }
    CHECK(std::abs(x - 1.0 / 3.0) < 0.02); // the triangle's centre; five standard deviations
    CHECK(std::abs(y - 2.0 / 3.0) < 0.02);
    CHECK(std::abs(space.allowed_share() - 0.5) < 0.06);
}

TEST_CASE("a walk covers a part of the space that hardly any sample hits", "[space]") {
    const SearchSpace space(square(), {require("x > 0.49 and x < 0.51 and y > 0.4 and y < 0.41")});
    double x = 0.0;
    std::array<int, 4> quarters{};
    constexpr std::uint32_t count = 2000;
    for (std::uint32_t i = 0; i < count; ++i) {
        const double at = space.sample(3, TrialId(i)).at("x").as_double();
        x += at / count;
        ++quarters.at(static_cast<std::size_t>((at - 0.49) / 0.005));
    }
    CHECK(std::abs(x - 0.5) < 0.001);
    for (const int quarter : quarters) CHECK(quarter > 400);
}

TEST_CASE("a point that breaks a rule changes in as few parameters as possible, and not far", "[space]") {
    std::vector<Parameter> parameters = square();
    parameters.push_back(parameter("z", "uniform(0, 1)"));
    parameters.push_back(parameter("kind", "choice(['a', 'b'])"));
    const SearchSpace space(parameters, {require("x + y <= 1")});
    const std::vector<double> unit = {0.9, 0.3, 0.77, 0.1};
    const Configuration found = space.decode(unit);
    CHECK(found.at("z").as_double() == 0.77);
    CHECK(found.at("kind").as_string() == "a");
    const double x = found.at("x").as_double();
    const double y = found.at("y").as_double();
    CHECK(x + y <= 1.0);
    CHECK(std::hypot(x - 0.9, y - 0.3) < 0.4); // the nearest point is 0.14 away, the origin 0.95
    const std::vector<double> kept = {0.5, 0.3, 0.77, 0.1};
    CHECK(space.decode(kept).at("x").as_double() == 0.5);
}

TEST_CASE("an equation of integers is kept where few keep it", "[space]") {
    const SearchSpace space(
        {parameter("a", "randint(0, 1000)"), parameter("b", "randint(0, 1000)"), parameter("c", "randint(0, 1000)")},
        {require("a + b == 777"), require("c % 97 == 5")});
    check_all_allowed(space, 50);
}

TEST_CASE("rules that leave nothing are refused with their text", "[space]") {
    CHECK(refusal({parameter("a", "randint(1, 5)"), parameter("b", "choice([1, 2])")}, {require("a * b > 8")}) ==
          "no configuration was found that keeps require \"a * b > 8\"; allow more, or widen the domains");
    CHECK(refusal(square(), {require("x < y"), require("y < x")})
              .starts_with("no configuration was found that keeps require \"x < y\", require \"y < x\""));
    CHECK(refusal(square(), {require("x < w")}) == "a rule mentions 'w', which is not in the space");
}

TEST_CASE("the share of a small finite space is counted", "[space]") {
    const SearchSpace space({parameter("a", "randint(0, 100)"), parameter("b", "randint(0, 100)")},
                            {require("a == b and a > 97")});
    CHECK(space.allowed_share() == Approx(2e-4));
    std::map<std::string, int> seen;
    for (std::uint32_t i = 0; i < 40; ++i) ++seen[space.sample(1, TrialId(i)).text()];
    CHECK(seen.size() == 2);
}

TEST_CASE("an enumeration leaves out what breaks a rule", "[space]") {
    const SearchSpace space({parameter("a", "randint(1, 5)"), parameter("b", "choice([1, 2, 3])")},
                            {require("a * b <= 4"), forbid("a == 1 and b == 1")});
    const Enumeration all(space);
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < all.size(); ++i) {
        texts.push_back(all.at(i).text());
        CHECK(all.find(all.at(i)) == i);
    }
    CHECK(texts == std::vector<std::string>{"a=1 b=2", "a=1 b=3", "a=2 b=1", "a=2 b=2", "a=3 b=1", "a=4 b=1"});
    CHECK_FALSE(all.find(Configuration({{"a", 3}, {"b", 3}})));
}

TEST_CASE("nearest keeps the given values, or says that nothing keeps the rules with them", "[space]") {
    const SearchSpace space({parameter("ranks", "randint(1, 9)"), parameter("batch", "randint(1, 65)")},
                            {require("ranks * batch <= 64"), forbid("ranks == 7")});
    const Configuration wish({{"ranks", 6}, {"batch", 40}});
    const auto any = space.nearest(wish, {});
    REQUIRE(any);
    CHECK(space.broken_by(*any) == nullptr);
    const auto pinned = space.nearest(wish, Configuration({{"ranks", 6}}));
    REQUIRE(pinned);
    CHECK(pinned->at("ranks").as_int() == 6);
    CHECK(pinned->at("batch").as_int() <= 10);
    CHECK_FALSE(space.nearest(Configuration({{"ranks", 7}, {"batch", 1}}), Configuration({{"ranks", 7}})));
    CHECK_FALSE(space.pinned(Configuration({{"ranks", 7}})));
    const Configuration fine({{"ranks", 2}, {"batch", 3}});
    CHECK(space.nearest(fine, {}) == fine);
}

TEST_CASE("weights of a choice count in samples and spread points, not in coordinates", "[space]") {
    const SearchSpace space(
        {parameter("kind", "choice(['a', 'b', 'c'], weights=[6, 0, 2])"), parameter("x", "uniform(0, 1)")});
    std::map<std::string, int> sampled;
    std::map<std::string, int> spread;
    constexpr std::uint32_t count = 4000;
    RngStream random(2, ranktune::base::user_purpose(0));
    for (std::uint32_t i = 0; i < count; ++i) {
        ++sampled[space.sample(1, TrialId(i)).at("kind").as_string()];
        ++spread[space.spread(random_unit(space, random), i, 1).at("kind").as_string()];
    }
    for (auto* seen : {&sampled, &spread}) {
        CHECK((*seen)["b"] == 0);
        CHECK(std::abs((*seen)["a"] - 3000) < 140); // five standard deviations
    }
    CHECK(space.decode(std::vector<double>{0.5, 0.0}).at("kind").as_string() == "b");
    const Domain domain = parse_domain("choice([1, 2], weights=[0, 3])");
    CHECK(text(domain) == "choice([1, 2], ordered=true, weights=[0.0, 3.0])");
    CHECK(parse_domain(text(domain)) == domain);
    CHECK(drawn(domain, 0.0).as_int() == 2);
    CHECK(drawn(domain, 0x1.fffffffffffffp-1).as_int() == 2);
}

TEST_CASE("weights that are none are refused", "[space]") {
    const auto why = [](const std::string& call) -> std::string {
        return ranktune::testing::error_of<UsageError>([&] { return parse_domain(call); });
    };
    CHECK(why("choice([1, 2], weights=[1])") == "choice needs one weight for each value: 1 weights, 2 values");
    CHECK(why("choice([1, 2], weights=[0, 0])") == "choice needs finite weights >= 0 that are not all 0");
    CHECK(why("choice([1, 2], weights=[-1, 2])") == "choice needs finite weights >= 0 that are not all 0");
    CHECK(why("choice([1, 2], weights=['a', 2])") ==
          "choice: weights must be a list of numbers, got the list ['a', 2]");
    CHECK(why("choice([1, 2], weights=[])") == "choice: weights must be one number for each value, got the list []");
}

TEST_CASE("None is a value of lists, and reads back", "[space]") {
    const Domain domain = parse_domain("choice([None, 8, 16])");
    const auto& choice = std::get<Choice>(domain);
    CHECK(choice.values.front().is_none());
    CHECK_FALSE(choice.ordered);
    CHECK(text(domain) == "[None, 8, 16]");
    CHECK(parse_domain(full_text(choice)) == domain);
    CHECK(Value::none().text() == "None");
    CHECK(Value::none().kind() == "none");
    CHECK(Value::none() != Value(false));
    CHECK(encode(domain, Value::none()) == Approx(1.0 / 6.0));
}

} // namespace rules_test
