// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "ranktune/space/domain.hpp"
#include "space/satisfiable.hpp"
#include "support/catch.hpp"

using namespace ranktune::space;

namespace {

/// `a` has the domain of this call; `b` is one of 'x' and 'y', or absent; others are not known.
bool possible(const std::string& call, const std::string& condition) {
    const Domain a = parse_domain(call);
    const Domain b = parse_domain("choice(['x', 'y'])");
    return can_hold(Condition::parse(condition), [&](std::string_view name) -> Range {
        if (name == "a") return {&a, false};
        if (name == "b") return {&b, true};
        return {};
    });
}

} // namespace

TEST_CASE("a condition on a list can hold when a value of it satisfies it", "[space]") {
    const std::string list = "choice([1, 2, 4.0])";
    for (const char* condition :
         {"a == 2", "a != 2", "a > 3", "a == 4", "a in [3, 1]", "not a == 3", "a == 3 or a < 2"})
        CHECK(possible(list, condition));
    for (const char* condition : {"a == 3", "a == 'x'", "a == true", "a > 4", "a in [3, 5]", "not a < 5",
                                  "a == 1 and a == 2", "a == 3 or a == 5"})
        CHECK_FALSE(possible(list, condition));
}

TEST_CASE("a condition on a range can hold when it leaves a part of the range", "[space]") {
    for (const char* condition :
         {"a > 0.5", "a == 0.25", "a > 0.3 and a < 0.4", "a >= 0", "a < 1", "a != 'x'", "a > 0.999999999"})
        CHECK(possible("uniform(0, 1)", condition));
    for (const char* condition : {"a > 1", "a == 1", "a < 0", "a == 'x'", "a < 0.3 and a > 0.4", "a == -0.5"})
        CHECK_FALSE(possible("uniform(0, 1)", condition));
    CHECK(possible("randn()", "a > 1e300"));
    CHECK_FALSE(possible("randn()", "a == 'x'"));
}

TEST_CASE("integers between two literals are found, also with a quantum", "[space]") {
    CHECK(possible("randint(0, 1000000)", "a > 3 and a < 5"));
    CHECK_FALSE(possible("randint(0, 1000000)", "a > 3 and a < 4"));
    CHECK_FALSE(possible("randint(0, 1000000)", "a == 2.5"));
    CHECK_FALSE(possible("randint(0, 1000000)", "a >= 1000000"));
    CHECK(possible("qrandint(0, 1000000, 5)", "a > 3 and a < 8"));
    CHECK_FALSE(possible("qrandint(0, 1000000, 5)", "a > 5 and a < 10"));
    CHECK(possible("qrandint(-9223372036854775807, 9223372036854775807, 9)", "a > 9223372036854775790"));
    CHECK(possible("randint(0, 4611686018427387904)", "a == 1152921504606846977"));
    CHECK(possible("randint(-4611686018427387904, 0)", "a == -1152921504606846977"));
    CHECK(possible("quniform(0, 1000, 0.5)", "a > 0.4 and a < 0.6"));
}

TEST_CASE("a parameter with a condition of its own may be absent", "[space]") {
    CHECK(possible("randint(0, 3)", "not (b == 'x' or b == 'y')"));
    CHECK_FALSE(possible("randint(0, 3)", "b == 'z'"));
    CHECK_FALSE(possible("randint(0, 3)", "b == 'x' and a > 7"));
}

TEST_CASE("in doubt a condition can hold", "[space]") {
    CHECK(possible("randint(0, 3)", "unknown == 'z'"));
    CHECK(possible("randint(0, 3)", "a == 7 or unknown == 1"));
}
