// SPDX-License-Identifier: Apache-2.0
#include "ranktune/space/domain.hpp"

#include <cmath>
#include <limits>
#include <map>

#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "support/catch.hpp"

namespace domain_test {

using namespace ranktune::space;
using ranktune::base::Purpose;
using ranktune::base::RngStream;
using ranktune::base::UsageError;

namespace {

constexpr double last_unit = 1.0 - 0x1p-53;
constexpr std::int64_t int_min = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t int_max = std::numeric_limits<std::int64_t>::max();
constexpr double double_max = std::numeric_limits<double>::max();

/// How often each value comes, as a share, when the unit interval is walked through in equal steps.
std::map<std::string, double> shares(const Domain& domain, int steps = 100000) {
    std::map<std::string, double> count;
    for (int i = 0; i < steps; ++i) count[decode(domain, (i + 0.5) / steps).text()] += 1.0 / steps;
    return count;
}

void check_round_trip(const Domain& domain) {
    const std::uint64_t size = cardinality(domain).value();
    for (std::uint64_t i = 0; i < size; ++i) {
        const Value value = value_at(domain, i);
        CHECK(contains(domain, value));
        const double unit = encode(domain, value);
        CHECK((unit >= 0.0 && unit < 1.0));
        CHECK(decode(domain, unit) == value);
    }
}

} // namespace

TEST_CASE("uniform covers [lower, upper) and never gives the upper bound", "[space]") {
    const Domain domain = FloatRange{.lower = -2.0, .upper = 6.0};
    CHECK(decode(domain, 0.0) == Value(-2.0));
    CHECK(decode(domain, 0.5) == Value(2.0));
    CHECK(decode(domain, last_unit).as_double() < 6.0);
    CHECK(encode(domain, Value(2.0)) == 0.5);
    CHECK(encode(domain, Value(2)) == 0.5);
    CHECK(contains(domain, Value(-2.0)));
    CHECK_FALSE(contains(domain, Value(6.0)));
    CHECK_FALSE(contains(domain, Value(-2.0000001)));
    CHECK_FALSE(contains(domain, Value(std::nan(""))));
    CHECK_FALSE(contains(domain, Value("2.0")));
}

TEST_CASE("a float range whose bounds are neighbours gives the lower one only", "[space]") {
    const double upper = std::nextafter(1.0, 2.0);
    for (const bool log : {false, true}) {
        const Domain domain = FloatRange{.lower = 1.0, .upper = upper, .log = log};
        for (const double unit : {0.0, 0.5, 0.75, last_unit}) CHECK(decode(domain, unit) == Value(1.0));
    }
}

TEST_CASE("the span of a float range may overflow", "[space]") {
    const Domain domain = FloatRange{.lower = -double_max, .upper = double_max};
    CHECK(decode(domain, 0.0) == Value(-double_max));
    CHECK(decode(domain, 0.5) == Value(0.0));
    CHECK(decode(domain, last_unit).as_double() < double_max);
    CHECK(decode(domain, 0.75).as_double() == Approx(double_max / 2));
    CHECK(encode(domain, Value(0.0)) == Approx(0.5));
}

TEST_CASE("loguniform is uniform in the logarithm", "[space]") {
    const Domain domain = FloatRange{.lower = 1e-4, .upper = 1.0, .log = true};
    CHECK(decode(domain, 0.0).as_double() == Approx(1e-4).epsilon(1e-15));
    CHECK(decode(domain, 0.0).as_double() >= 1e-4);
    CHECK(decode(domain, 0.25).as_double() == Approx(1e-3).epsilon(1e-13));
    CHECK(decode(domain, 0.5).as_double() == Approx(1e-2).epsilon(1e-13));
    CHECK(decode(domain, last_unit).as_double() < 1.0);
    CHECK(encode(domain, Value(1e-3)) == Approx(0.25).epsilon(1e-13));
    const Domain extreme = FloatRange{.lower = 5e-324, .upper = double_max, .log = true};
    CHECK(decode(extreme, 0.0).as_double() >= 5e-324);
    CHECK(decode(extreme, last_unit).as_double() < double_max);
}

TEST_CASE("a float value decodes to itself within rounding", "[space]") {
    RngStream rng(3, Purpose::sample);
    for (const Domain& domain :
         {Domain(FloatRange{.lower = -3.0, .upper = 11.0}),
          Domain(FloatRange{.lower = 1e-7, .upper = 1e3, .log = true}), Domain(Normal{.mean = 4.0, .sd = 2.0})}) {
        for (int i = 0; i < 200; ++i) {
            const Value value = decode(domain, rng.uniform());
            CHECK(decode(domain, encode(domain, value)).as_double() == Approx(value.as_double()).epsilon(1e-9));
        }
    }
}

TEST_CASE("a quantum rounds to decimal multiples inside both bounds", "[space]") {
    const Domain domain = FloatRange{.lower = 0.0, .upper = 0.5, .quantum = 0.1};
    const auto share = shares(domain);
    REQUIRE(share.size() == 6);
    // Round to nearest: the ends get half an interval, as in Ray Tune.
    for (const auto* text : {"0.0", "0.5"}) CHECK(share.at(text) == Approx(0.1).margin(1e-3));
    for (const auto* text : {"0.1", "0.2", "0.3", "0.4"}) CHECK(share.at(text) == Approx(0.2).margin(1e-3));
    CHECK(contains(domain, Value(0.3)));
    CHECK_FALSE(contains(domain, Value(0.1 + 0.2))); // 0.30000000000000004
    CHECK_FALSE(contains(domain, Value(0.6)));
    CHECK_FALSE(contains(domain, Value(0.25)));
    check_round_trip(domain);
}

TEST_CASE("bounds that are no multiples of the quantum are clamped to the outermost multiples inside", "[space]") {
    const Domain domain = FloatRange{.lower = 0.15, .upper = 1.04, .quantum = 0.1};
    CHECK(cardinality(domain) == 9U);
    CHECK(decode(domain, 0.0) == Value(0.2));
    CHECK(decode(domain, last_unit) == Value(1.0));
    check_round_trip(domain);
    const Domain negative = FloatRange{.lower = -1.04, .upper = -0.15, .quantum = 0.1};
    CHECK(decode(negative, 0.0) == Value(-1.0));
    CHECK(decode(negative, last_unit) == Value(-0.2));
    check_round_trip(negative);
    const Domain one = FloatRange{.lower = 0.7, .upper = 1.4, .quantum = 1.0};
    CHECK(shares(one, 100).size() == 1);
    check_round_trip(one);
}

TEST_CASE("quantised values never leave the bounds", "[space]") {
    RngStream rng(5, Purpose::sample);
    for (int i = 0; i < 300; ++i) {
        FloatRange range{.lower = rng.uniform() * 2 - 1, .upper = 0, .quantum = 0.001 + rng.uniform() * 0.05};
        range.upper = range.lower + 0.06 + rng.uniform();
        if (i % 2 == 0) range.quantum = std::ceil(range.quantum * 1000) / 1000; // as people write them
        REQUIRE(problem(range).empty());
        for (const double unit : {0.0, rng.uniform(), rng.uniform(), last_unit}) {
            const double value = decode(range, unit).as_double();
            CHECK((value >= range.lower && value <= range.upper));
            CHECK(contains(range, Value(value)));
            CHECK(std::abs(value / range.quantum - std::round(value / range.quantum)) < 1e-9);
        }
    }
}

TEST_CASE("steps from the lower bound are equally likely, and decimal numbers", "[space]") {
    const Domain integers = IntRange{.lower = 1, .upper = 11, .quantum = 3, .from_lower = true};
    const auto share = shares(integers);
    REQUIRE(share.size() == 4);
    for (const auto* text : {"1", "4", "7", "10"}) CHECK(share.at(text) == Approx(0.25).margin(1e-3));
    for (const int other : {0, 3, 11, 13}) CHECK_FALSE(contains(integers, Value(other)));
    check_round_trip(integers);

    const Domain floats = FloatRange{.lower = 0.15, .upper = 0.5, .quantum = 0.1, .from_lower = true};
    const auto parts = shares(floats);
    REQUIRE(parts.size() == 4);
    for (const auto* text : {"0.15", "0.25", "0.35", "0.45"}) CHECK(parts.at(text) == Approx(0.25).margin(1e-3));
    CHECK_FALSE(contains(floats, Value(0.2)));
    check_round_trip(floats);
    // Bounds of different scales, below zero, and an upper bound that is a value.
    for (const FloatRange& range : {FloatRange{.lower = -0.7, .upper = 0.7, .quantum = 0.1, .from_lower = true},
                                    FloatRange{.lower = 1e-3, .upper = 10.001, .quantum = 2.5, .from_lower = true},
                                    FloatRange{.lower = 5.0, .upper = 8.0, .quantum = 1.5, .from_lower = true},
                                    FloatRange{.lower = 1e-30, .upper = 1.0, .quantum = 0.25, .from_lower = true},
                                    FloatRange{.lower = 0.3, .upper = 0.3, .quantum = 0.1, .from_lower = true}}) {
        CHECK(value_at(range, 0) == Value(range.lower));
        check_round_trip(range);
    }
    const Domain tenths = FloatRange{.lower = -0.7, .upper = 0.7, .quantum = 0.1, .from_lower = true};
    CHECK(cardinality(tenths) == 15U);
    CHECK(value_at(tenths, 7).text() == "0.0");
    CHECK(value_at(tenths, 14) == Value(0.7));
}

TEST_CASE("zero among quantised values has no sign", "[space]") {
    const Domain domain = FloatRange{.lower = -1.0, .upper = 1.0, .quantum = 0.5};
    CHECK(decode(domain, 0.45).text() == "0.0");
    CHECK(decode(Normal{.mean = -0.1, .sd = 0.01, .quantum = 1.0}, 0.5).text() == "0.0");
}

TEST_CASE("qloguniform rounds a log-uniform sample", "[space]") {
    const Domain domain = FloatRange{.lower = 1.0, .upper = 100.0, .log = true, .quantum = 10.0};
    CHECK(decode(domain, 0.0) == Value(10.0)); // 1 is nearest to 0, which lies outside
    CHECK(decode(domain, 0.5) == Value(10.0));
    CHECK(decode(domain, last_unit) == Value(100.0));
    CHECK(shares(domain).at("20.0") == Approx(std::log(25.0 / 15.0) / std::log(100.0)).margin(1e-3));
    check_round_trip(domain);
}

TEST_CASE("integers of a range are equally likely, both bounds included", "[space]") {
    const Domain domain = IntRange{.lower = -2, .upper = 3};
    const auto share = shares(domain);
    REQUIRE(share.size() == 6);
    for (const auto& [text, part] : share) CHECK(part == Approx(1.0 / 6).margin(1e-3));
    CHECK(decode(domain, 0.0) == Value(-2));
    CHECK(decode(domain, last_unit) == Value(3));
    CHECK_FALSE(contains(domain, Value(4)));
    CHECK_FALSE(contains(domain, Value(-3)));
    CHECK_FALSE(contains(domain, Value(1.0)));
    check_round_trip(domain);
}

TEST_CASE("quantised integers are the multiples inside the bounds, equally likely", "[space]") {
    const Domain domain = IntRange{.lower = -7, .upper = 10, .quantum = 4};
    const auto share = shares(domain);
    REQUIRE(share.size() == 4);
    for (const auto* text : {"-4", "0", "4", "8"}) CHECK(share.at(text) == Approx(0.25).margin(1e-3));
    CHECK_FALSE(contains(domain, Value(-7)));
    CHECK_FALSE(contains(domain, Value(10)));
    check_round_trip(domain);
    check_round_trip(IntRange{.lower = 32, .upper = 128, .quantum = 32});
    check_round_trip(IntRange{.lower = -8, .upper = -4, .quantum = 4});
}

TEST_CASE("log-uniform integers have the weight of their interval, both bounds included", "[space]") {
    const Domain domain = IntRange{.lower = 1, .upper = 9, .log = true};
    const auto share = shares(domain);
    REQUIRE(share.size() == 9);
    for (int k = 1; k <= 9; ++k)
        CHECK(share.at(std::to_string(k)) == Approx(std::log10((k + 1.0) / k)).margin(1e-3)); // Benford
    check_round_trip(domain);
    check_round_trip(IntRange{.lower = 16, .upper = 1000, .log = true, .quantum = 16});
    CHECK(decode(IntRange{.lower = 10, .upper = 100, .log = true, .quantum = 8}, 0.0) == Value(16));
    CHECK(decode(IntRange{.lower = 10, .upper = 100, .log = true, .quantum = 8}, last_unit) == Value(96));
}

TEST_CASE("integer domains reach the ends of 64 bits without overflow", "[space]") {
    const Domain all = IntRange{.lower = int_min, .upper = int_max};
    CHECK(decode(all, 0.0) == Value(int_min));
    CHECK(decode(all, 0.5) == Value(std::int64_t{0}));
    CHECK(decode(all, last_unit).as_int() > int_max - 4096);
    CHECK(encode(all, Value(int_min)) == Approx(0.0).margin(1e-15));
    CHECK(encode(all, Value(int_max)) < 1.0);
    CHECK(cardinality(all) == std::numeric_limits<std::uint64_t>::max());
    CHECK(value_at(all, 1) == Value(int_min + 1));

    const Domain top = IntRange{.lower = int_max - 2, .upper = int_max};
    CHECK(shares(top, 300).size() == 3);
    check_round_trip(top);
    const Domain bottom = IntRange{.lower = int_min, .upper = int_min + 2};
    CHECK(shares(bottom, 300).size() == 3);
    check_round_trip(bottom);

    const Domain stepped = IntRange{.lower = int_min, .upper = int_max, .quantum = int_max};
    CHECK(cardinality(stepped) == 3U);
    check_round_trip(stepped);

    const Domain from_bottom = IntRange{.lower = int_min, .upper = int_max, .quantum = int_max, .from_lower = true};
    CHECK(cardinality(from_bottom) == 3U);
    CHECK(value_at(from_bottom, 2) == Value(int_max - 1));
    check_round_trip(from_bottom);
    const Domain by_one = IntRange{.lower = int_min, .upper = int_max, .from_lower = true};
    CHECK(value_at(by_one, 1) == Value(int_min + 1));

    const Domain log = IntRange{.lower = 1, .upper = int_max, .log = true};
    CHECK(decode(log, 0.0) == Value(1));
    CHECK(decode(log, last_unit).as_int() > int_max / 2);
    CHECK(encode(log, Value(int_max)) < 1.0);
}

TEST_CASE("every integer of a large range decodes to itself", "[space]") {
    RngStream rng(11, Purpose::sample);
    const Domain linear = IntRange{.lower = -(std::int64_t{1} << 49), .upper = (std::int64_t{1} << 49) - 1};
    const Domain log = IntRange{.lower = 1, .upper = std::int64_t{1} << 40, .log = true};
    for (int i = 0; i < 2000; ++i) {
        const Value a = value_at(linear, rng.below(std::uint64_t{1} << 50));
        CHECK(decode(linear, encode(linear, a)) == a);
        const Value b = value_at(log, rng.below(std::uint64_t{1} << 40));
        CHECK(decode(log, encode(log, b)) == b);
    }
}

TEST_CASE("randn has its mean in the middle and finite ends", "[space]") {
    const Domain domain = Normal{.mean = 10.0, .sd = 2.0};
    CHECK(decode(domain, 0.5) == Value(10.0));
    CHECK(decode(domain, 0.975).as_double() == Approx(13.919927969080109));
    CHECK(std::isfinite(decode(domain, 0.0).as_double()));
    CHECK(std::isfinite(decode(domain, last_unit).as_double()));
    CHECK(encode(domain, Value(10.0)) == Approx(0.5));
    CHECK(encode(domain, Value(1e300)) < 1.0);
    CHECK_FALSE(contains(domain, Value(std::numeric_limits<double>::infinity())));
    const Domain enormous = Normal{.mean = 0.0, .sd = 1e308};
    CHECK(contains(enormous, decode(enormous, 0.0)));
    CHECK(contains(enormous, decode(enormous, last_unit)));
    const Domain quantised = Normal{.mean = 0.0, .sd = 1.0, .quantum = 0.25};
    CHECK(decode(quantised, 0.6) == Value(0.25));
    CHECK(contains(quantised, Value(-1.75)));
    CHECK_FALSE(contains(quantised, Value(0.3)));
    for (int k = -12; k <= 12; ++k) CHECK(decode(quantised, encode(quantised, Value(0.25 * k))) == Value(0.25 * k));
}

TEST_CASE("a choice gives each value the same share, in order", "[space]") {
    const Domain domain = Choice{{32, 64.0, "big", true, Value::List{1, 2}}};
    CHECK(decode(domain, 0.0) == Value(32));
    CHECK(decode(domain, 0.3) == Value(64.0));
    CHECK(decode(domain, last_unit) == Value(Value::List{1, 2}));
    CHECK(shares(domain, 1000).size() == 5);
    CHECK_FALSE(contains(domain, Value(64)));
    check_round_trip(domain);
}

TEST_CASE("one-value domains decode to their value everywhere", "[space]") {
    for (const Domain& domain :
         {Domain(FloatRange{.lower = 0.5, .upper = 0.5}), Domain(FloatRange{.lower = 0.5, .upper = 0.5, .log = true}),
          Domain(FloatRange{.lower = 0.5, .upper = 0.5, .quantum = 0.25}), Domain(IntRange{.lower = 7, .upper = 7}),
          Domain(IntRange{.lower = 7, .upper = 7, .log = true}), Domain(Choice{{"only"}}), Domain(Grid{{"only"}}),
          Domain(Constant{3})}) {
        CHECK(cardinality(domain) == 1U);
        const Value value = value_at(domain, 0);
        for (const double unit : {0.0, 0.5, last_unit}) CHECK(decode(domain, unit) == value);
        check_round_trip(domain);
    }
}

TEST_CASE("encode refuses a value outside, naming value and domain", "[space]") {
    try {
        (void)encode(IntRange{.lower = 1, .upper = 4}, Value(5));
        FAIL("no exception");
    } catch (const UsageError& error) {
        CHECK(std::string(error.what()) == "5 is not in randint(1, 5)");
    }
    CHECK_THROWS_AS(encode(Constant{1}, Value(2)), UsageError);
    CHECK_THROWS_AS(encode(Choice{{"a"}}, Value("b")), UsageError);
}

TEST_CASE("problem says why a domain is impossible", "[space]") {
    constexpr double inf = std::numeric_limits<double>::infinity();
    CHECK(problem(FloatRange{.lower = 0.0, .upper = 1.0, .log = true}) == "needs low > 0");
    CHECK(problem(FloatRange{.lower = 2.0, .upper = 1.0}) == "needs low <= high, got 2.0 > 1.0");
    CHECK(problem(FloatRange{.lower = 0.0, .upper = inf}) == "needs finite bounds");
    CHECK(problem(FloatRange{.lower = std::nan(""), .upper = 1.0}) == "needs finite bounds");
    CHECK(problem(FloatRange{.lower = 0.1, .upper = 0.2, .quantum = 0.5}) ==
          "has no value: no multiple of 0.5 lies in [0.1, 0.2]");
    CHECK(problem(FloatRange{.lower = 0.0, .upper = 1.0, .quantum = -0.5}) == "needs a finite q > 0");
    CHECK(problem(FloatRange{.lower = 0.0, .upper = 1.0, .quantum = inf}) == "needs a finite q > 0");
    CHECK_FALSE(problem(FloatRange{.lower = 0.0, .upper = 1.0, .quantum = 1e-300}).empty());
    CHECK(problem(FloatRange{.lower = 0.1, .upper = 0.3, .quantum = 0.1}).empty());
    CHECK(problem(IntRange{.lower = 5, .upper = 4}) == "needs low <= high, got 5 > 4");
    CHECK(problem(IntRange{.lower = 0, .upper = 4, .log = true}) == "needs low >= 1");
    CHECK(problem(IntRange{.lower = 0, .upper = 4, .quantum = 0}) == "needs q >= 1");
    CHECK(problem(IntRange{.lower = 5, .upper = 7, .quantum = 4}) == "has no value: no multiple of 4 lies in [5, 7]");
    CHECK(problem(IntRange{.lower = -7, .upper = -5, .quantum = 4}) ==
          "has no value: no multiple of 4 lies in [-7, -5]");
    CHECK(problem(IntRange{.lower = 5, .upper = 7, .quantum = 4, .from_lower = true}).empty());
    CHECK(problem(IntRange{.lower = 5, .upper = 7, .quantum = 0, .from_lower = true}) == "needs step >= 1");
    CHECK(problem(FloatRange{.lower = 0.1, .upper = 0.2, .quantum = 0.5, .from_lower = true}).empty());
    CHECK(problem(FloatRange{.lower = 0.1, .upper = 0.2, .from_lower = true}) == "needs a finite step > 0");
    CHECK_FALSE(problem(FloatRange{.lower = 0.0, .upper = 1.0, .quantum = 1e-300, .from_lower = true}).empty());
    CHECK(problem(IntRange{.lower = int_min, .upper = int_max}).empty());
    CHECK(problem(Normal{.mean = 0.0, .sd = 0.0}) == "needs a finite sd > 0");
    CHECK(problem(Normal{.mean = inf, .sd = 1.0}) == "needs a finite mean");
    CHECK_FALSE(problem(Normal{.mean = 0.0, .sd = 1.0, .quantum = 1e-300}).empty());
    CHECK_FALSE(problem(Normal{.mean = 0.0, .sd = 1e308, .quantum = 1.0}).empty());
    CHECK(problem(Choice{}) == "needs at least one value");
    CHECK(problem(Grid{}) == "needs at least one value");
    CHECK(problem(Choice{{1.0, Value::List{std::nan("")}}}) == "must not hold nan");
    CHECK(problem(Constant{std::nan("")}) == "must not be nan");
}

} // namespace domain_test
