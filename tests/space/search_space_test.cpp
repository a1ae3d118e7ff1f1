// SPDX-License-Identifier: Apache-2.0
#include "ranktune/space/search_space.hpp"

#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/space/enumeration.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace search_space_test {

using namespace ranktune::space;
using ranktune::base::Purpose;
using ranktune::base::RngStream;
using ranktune::base::TrialId;
using ranktune::base::UsageError;

namespace {

Parameter parameter(std::string name, Domain domain) { return {std::move(name), std::move(domain), std::nullopt}; }
Parameter parameter(std::string name, Domain domain, const std::string& condition) {
    return {std::move(name), std::move(domain), Condition::parse(condition)};
}

Configuration only(const std::string& name, Value value) {
    Configuration configuration;
    configuration.set(name, std::move(value));
    return configuration;
}

template <class Make>
std::string refusal(Make make) {
    return ranktune::testing::error_of<UsageError>(make);
}

SearchSpace example() {
    return SearchSpace({parameter("lr", parse_domain("loguniform(1e-4, 1)")), parameter("layers", Grid{{1, 2}}),
                        parameter("optimizer", Choice{{"sgd", "adam"}}),
                        parameter("momentum", parse_domain("uniform(0.5, 1)"), "optimizer == 'sgd'"),
                        parameter("data", Constant{"digits.h5"}), parameter("width", Grid{{8, 16, 32}})});
}

} // namespace

TEST_CASE("sample is decode of the documented streams", "[space]") {
    const SearchSpace space = example();
    for (std::uint32_t trial = 0; trial < 50; ++trial) {
        std::vector<double> unit;
        for (const std::uint32_t position : {0U, 2U, 3U}) // the parameters that have a coordinate
            unit.push_back(RngStream(42, Purpose::sample, trial, position).uniform());
        CHECK(space.sample(42, TrialId(trial)) == space.decode(unit, trial));
        CHECK(space.sample(42, TrialId(trial)) == space.sample(42, TrialId(trial)));
    }
    CHECK(space.sample(42, TrialId(0)) != space.sample(43, TrialId(0)));
}

TEST_CASE("every integer can be drawn from a range too long for a position in [0, 1)", "[space]") {
    const auto odd_among = [](const std::string& call) {
        const SearchSpace space({parameter("n", parse_domain(call))});
        std::size_t odd = 0;
        for (std::uint32_t trial = 0; trial < 400; ++trial) {
            const auto configuration = space.sample(7, TrialId(trial));
            const std::int64_t n = configuration.at("n").as_int();
            CHECK(contains(space.parameters().front().domain, n));
            odd += n % 2 != 0 ? 1 : 0;
        }
        return odd;
    };
    for (const char* call : {"randint(0, 9223372036854775807)", "qrandint(-9223372036854775808, 9223372036854775807)",
                             "randint(-9223372036854775808, 9223372036854775807)", "randint(0, 9007199254740993)"}) {
        INFO(call);
        const std::size_t odd = odd_among(call);
        CHECK(odd > 150);
        CHECK(odd < 250);
    }
    // Up to 2^53 integers the position in [0, 1) is used.
    const SearchSpace space({parameter("n", parse_domain("randint(0, 9007199254740992)"))});
    RngStream stream(7, Purpose::sample, 3, 0);
    const auto expected = static_cast<std::int64_t>(stream.uniform() * 0x1p53);
    CHECK(space.sample(7, TrialId(3)).at("n").as_int() == expected);
}

TEST_CASE("samples do not depend on other parameters being active or added behind", "[space]") {
    std::vector<Parameter> parameters = example().parameters();
    const SearchSpace before(parameters);
    parameters[3].condition.reset();
    parameters.push_back(parameter("extra", parse_domain("uniform(0, 1)")));
    const SearchSpace after(parameters);
    for (std::uint32_t trial = 0; trial < 20; ++trial) {
        const Configuration a = before.sample(1, TrialId(trial));
        const Configuration b = after.sample(1, TrialId(trial));
        for (const auto& entry : a.entries()) CHECK(b.at(entry.name) == entry.value);
    }
}

TEST_CASE("parameters whose condition does not hold are absent", "[space]") {
    const SearchSpace space = example();
    int with = 0;
    for (std::uint32_t trial = 0; trial < 200; ++trial) {
        const Configuration configuration = space.sample(7, TrialId(trial));
        CHECK(configuration.contains("momentum") == (configuration.at("optimizer") == Value("sgd")));
        with += configuration.contains("momentum") ? 1 : 0;
    }
    CHECK(with > 60);
    CHECK(with < 140);
}

TEST_CASE("trial i takes grid point i modulo the grid, the last grid fastest", "[space]") {
    const SearchSpace space = example();
    CHECK(space.grid_size() == 6);
    CHECK(space.dimensions() == 3);
    const std::vector<std::pair<int, int>> expected = {{1, 8}, {1, 16}, {1, 32}, {2, 8}, {2, 16}, {2, 32}, {1, 8}};
    for (std::uint32_t trial = 0; trial < expected.size(); ++trial) {
        const Configuration configuration = space.sample(0, TrialId(trial));
        CHECK(configuration.at("layers") == Value(expected[trial].first));
        CHECK(configuration.at("width") == Value(expected[trial].second));
    }
}

TEST_CASE("a condition may look ahead and chain, and the configuration keeps file order", "[space]") {
    const SearchSpace space({parameter("c", parse_domain("uniform(0, 1)"), "b == 'on'"),
                             parameter("b", Choice{{"on", "off"}}, "a == 1"), parameter("a", Choice{{0, 1}})});
    CHECK(space.decode(std::vector{0.25, 0.0, 0.9}).text() == "c=0.25 b=on a=1");
    CHECK(space.decode(std::vector{0.25, 0.9, 0.9}).text() == "b=off a=1");
    // b is absent, so c is absent, whatever b would have been.
    CHECK(space.decode(std::vector{0.25, 0.0, 0.1}).text() == "a=0");
}

TEST_CASE("encode is the inverse of decode for active parameters and 0.5 for the others", "[space]") {
    const SearchSpace space = example();
    const Configuration adam = space.decode(std::vector{0.25, 0.75, 0.1}, 4);
    const std::vector<double> unit = space.encode(adam);
    REQUIRE(unit.size() == 3);
    CHECK(unit[0] == Approx(0.25));
    CHECK(unit[1] == 0.75);
    CHECK(unit[2] == 0.5);
    CHECK(space.decode(unit, 4).at("layers") == Value(2));
    CHECK(refusal([&] { (void)space.encode(only("optimizer", "rmsprop")); }) ==
          "optimizer = 'rmsprop' is not in ['sgd', 'adam']");
    CHECK(refusal([&] { (void)space.encode(only("depth", 1)); }) == "'depth' is not in the search space");
    CHECK(refusal([&] { (void)space.encode(only("width", 9)); }) == "width = 9 is not in grid([8, 16, 32])");
}

TEST_CASE("an impossible space is refused by name", "[space]") {
    const auto build = [](std::vector<Parameter> parameters) {
        return refusal([&] { (void)SearchSpace(std::move(parameters)); });
    };
    CHECK(build({parameter("a", Constant{1}), parameter("a", Constant{2})}) ==
          "the parameter 'a' is in the space twice");
    CHECK(build({parameter("optimizer", Constant{1}), parameter("b", Constant{2}, "optimiser == 1")}) ==
          "the condition of 'b' mentions 'optimiser', which is not in the space; did you mean 'optimizer'?");
    CHECK(build({parameter("a", Choice{{1}}, "b == 1"), parameter("b", Choice{{1}}, "c == 1"),
                 parameter("c", Choice{{1}}, "a == 1"), parameter("d", Choice{{1}})}) ==
          "conditions that wait for each other: a, b, c");
    CHECK(build({parameter("a", Choice{{1}}, "a == 1")}) == "conditions that wait for each other: a");
    CHECK(build({parameter("a", Choice{})}) == "a = []: needs at least one value");
}

TEST_CASE("an empty space has one empty configuration", "[space]") {
    const SearchSpace space;
    CHECK(space.sample(1, TrialId(5)).empty());
    CHECK(space.dimensions() == 0);
    CHECK(space.grid_size() == 1);
    CHECK(Enumeration(space).size() == 1);
    CHECK(Enumeration(space).at(0).empty());
    CHECK(Enumeration(space).find({}) == 0);
}

TEST_CASE("the size of a grid saturates", "[space]") {
    std::vector<Parameter> parameters;
    for (int i = 0; i < 70; ++i) parameters.push_back(parameter("p" + std::to_string(i), Grid{{0, 1}}));
    const SearchSpace space(parameters);
    CHECK(space.grid_size() == std::uint64_t{1} << 63);
    const Configuration last = space.sample(0, TrialId(0xFFFFFFFFU));
    CHECK(last.at("p69") == Value(1));
    CHECK(last.at("p37") == Value(0));
    CHECK(last.at("p38") == Value(1));
    CHECK(Enumeration(space).size() == std::uint64_t{1} << 63);
}

TEST_CASE("an enumeration crosses all finite domains in file order, the last fastest", "[space]") {
    const SearchSpace space({parameter("a", Choice{{"x", "y"}}), parameter("n", parse_domain("randint(1, 3)")),
                             parameter("k", Constant{7}), parameter("q", parse_domain("quniform(0, 0.2, 0.1)"))});
    const Enumeration points(space);
    REQUIRE(points.size() == 12);
    CHECK(points.at(0).text() == "a=x n=1 k=7 q=0.0");
    CHECK(points.at(1).text() == "a=x n=1 k=7 q=0.1");
    CHECK(points.at(2).text() == "a=x n=1 k=7 q=0.2");
    CHECK(points.at(3).text() == "a=x n=2 k=7 q=0.0");
    CHECK(points.at(11).text() == "a=y n=2 k=7 q=0.2");
    for (std::uint64_t i = 0; i < points.size(); ++i) CHECK(points.find(points.at(i)) == i);
    Configuration other = points.at(3);
    other.set("q", 0.15);
    CHECK(!points.find(other));
}

TEST_CASE("an enumeration lists configurations that differ in absent parameters only once", "[space]") {
    const SearchSpace space({parameter("momentum", Grid{{0.5, 0.9}}, "optimizer == 'sgd'"),
                             parameter("optimizer", Choice{{"sgd", "adam"}}), parameter("n", Choice{{1, 2}})});
    const Enumeration points(space);
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < points.size(); ++i) texts.push_back(points.at(i).text());
    CHECK(texts == std::vector<std::string>{"momentum=0.5 optimizer=sgd n=1", "momentum=0.5 optimizer=sgd n=2",
                                            "optimizer=adam n=1", "optimizer=adam n=2",
                                            "momentum=0.9 optimizer=sgd n=1", "momentum=0.9 optimizer=sgd n=2"});
    for (std::uint64_t i = 0; i < points.size(); ++i) CHECK(points.find(points.at(i)) == i);
}

TEST_CASE("an enumeration refuses continuous domains by name, and conditions on a huge grid", "[space]") {
    const SearchSpace continuous({parameter("lr", parse_domain("loguniform(1e-4, 1)")), parameter("n", Choice{{1, 2}}),
                                  parameter("x", parse_domain("qrandn(0, 1, 0.5)"))});
    CHECK(refusal([&] { (void)Enumeration(continuous); }) ==
          "a grid needs a finite number of values for every parameter; give a list, grid(...), an integer range or a "
          "quantised one for lr = loguniform(0.0001, 1.0), x = qrandn(0.0, 1.0, 0.5)");
    const SearchSpace huge({parameter("a", parse_domain("randint(0, 2000000)")), parameter("b", Choice{{1}}, "a > 5")});
    CHECK(refusal([&] { (void)Enumeration(huge); }) ==
          "a grid of a space with conditions or rules can have at most 262144 points, this one has 2000000");
}

} // namespace search_space_test
