// SPDX-License-Identifier: Apache-2.0
// Values as other tools write them.
#include "space/foreign_value.hpp"

#include <string_view>

#include "support/catch.hpp"

namespace foreign_value_test {

using namespace ranktune::space;

namespace {

std::string meant(const char* domain, const Value& value) { return as_meant(parse_domain(domain), value).literal(); }
std::string read(const char* domain, std::string_view text) { return as_meant(parse_domain(domain), text).literal(); }

} // namespace

TEST_CASE("numbers from elsewhere are those that the domain means", "[space]") {
    CHECK(meant("uniform(0, 1)", 0) == "0.0");
    CHECK(meant("uniform(0, 1)", 1.0) == "0.9999999999999999");
    CHECK(meant("uniform(0, 1)", 1.5) == "1.5");
    CHECK(meant("quniform(0, 1, 0.1)", 0.30000000000000004) == "0.3");
    CHECK(meant("quniform(0, 1, 0.1)", 0.33) == "0.33");
    CHECK(meant("randint(1, 9)", 3.0) == "3");
    CHECK(meant("randint(1, 9)", 3.5) == "3.5");
    CHECK(meant("randint(1, 9)", 9.0) == "9.0");
    CHECK(meant("choice([32, 64])", 64.0) == "64");
    CHECK(meant("choice([0.5, 1.0])", 1) == "1.0");
    CHECK(meant("choice(['a', 'b'])", 1) == "1");
    CHECK(as_meant(Constant{2}, Value(2.0)) == Value(2));
    CHECK(as_meant(Constant{2}, Value(3.0)) == Value(3.0));
}

TEST_CASE("text from a table is read as the domain needs it", "[space]") {
    CHECK(read("uniform(0, 1)", "0.25") == "0.25");
    CHECK(read("uniform(0, 1)", "oops") == "'oops'");
    CHECK(read("randint(1, 9)", "3.0") == "3");
    CHECK(read("choice(['1', '2'])", "1") == "'1'");
    CHECK(read("choice([32, 64])", "64.0") == "64");
    CHECK(read("choice([true, false])", "True") == "true");
    CHECK(read("choice([[64], [128, 64]])", "[128, 64]") == "[128, 64]");
    CHECK(read("choice(['sgd', 'adam'])", "Adam") == "'Adam'"); // names are names
    CHECK(read("grid([1, 2])", "2") == "2");
}

} // namespace foreign_value_test
