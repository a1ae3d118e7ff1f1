// SPDX-License-Identifier: Apache-2.0
// Mistakes in [space] beyond a single value: conditions together, misspelt keys, tables that are too deep.
#include <string>
#include <vector>

#include "study_files.hpp"
#include "support/catch.hpp"

namespace space_mistakes_test {

using namespace ranktune;
using namespace ranktune::study;
using namespace ranktune::study::testing;

TEST_CASE("parameters whose conditions need each other are refused", "[study]") {
    Parts parts = free_parts();
    parts.space = "a = { value = 1, condition = \"b == 1\" }\nb = { value = 1, condition = \"a == 1\" }\n";
    CHECK(mistake(parts.text()) ==
          "10:30 space.a.condition: conditions that wait for each other: a, b; one of them has to do without the "
          "others:  \"b == 1\"");
    parts.space =
        "b = 1\na = { value = 1, condition = \"b == 1 and a == 1\" }\n[space.c]\ncondition = \"c.d > 0\"\n"
        "d = \"uniform(0, 1)\"\n";
    CHECK(
        mistake(parts.text()) ==
        "11:30 space.a.condition: the condition of 'a' mentions 'a' itself; it may mention other parameters only:  "
        "\"b == 1 and a == 1\"\n"
        "13:13 space.c.condition: the condition of 'c.d' mentions 'c.d' itself; it may mention other parameters only:  "
        "\"c.d > 0\"");
    // A parameter that depends on a cycle is not in it.
    parts.space = "z = { value = 1, condition = \"a == 1\" }\na = { value = 1, condition = \"a == 1\" }\n";
    CHECK(mistakes(parts.text()).size() == 1);
}

TEST_CASE("a cycle of conditions is reported together with other mistakes", "[study]") {
    Parts parts = free_parts();
    parts.space =
        "lr = \"uniform(2, 1)\"\na = { value = 1, condition = \"b == 1\" }\nb = { value = 1, condition = \"a == 1\" }\n"
        "c = { value = 1, condition = \"none == 1\" }\n";
    const auto found = mistakes(parts.text());
    REQUIRE(found.size() == 3);
    CHECK(found[1].starts_with("11:30 space.a.condition: conditions that wait for each other: a, b;"));
}

TEST_CASE("a condition that can never hold is refused with the values of what it mentions", "[study]") {
    Parts parts = free_parts();
    const auto one = [&](const std::string& space) {
        parts.space = space;
        return mistake(parts.text());
    };
    CHECK(one("a = [1, 2]\nb = { value = 3, condition = \"a == 'x'\" }\n") ==
          "11:30 space.b.condition: can never hold: 'a' is drawn from [1, 2]; compare with values that can be:  "
          "\"a == 'x'\"");
    CHECK(one("a = [1, 2]\nb = { value = 3, condition = \"a == 3\" }\n")
              .starts_with("11:30 space.b.condition: can never"));
    CHECK(one("a = \"randint(0, 3)\"\nb = [1]\n[space.c]\ncondition = \"a > 2 and b == 1\"\nd = 1\n") ==
          "13:13 space.c.condition: can never hold: 'a' is drawn from randint(0, 3), 'b' is drawn from [1]; compare "
          "with values that can be:  \"a > 2 and b == 1\"");
    CHECK(one("a = [1, 2]\n[space.c]\ncondition = \"a == 1\"\nd = { value = 3, condition = \"a == 2\" }\n") ==
          "13:30 space.c.d.condition: can never hold together with the condition of the table around it: 'a' is drawn "
          "from [1, 2]; compare with values that can be:  \"a == 2\"");
    // A parameter with a condition may be absent, and then no comparison with it holds.
    const std::string absent = "a = [1, 2]\nb = { domain = ['x', 'y'], condition = \"a == 1\" }\n";
    CHECK(one(absent + "c = { value = 3, condition = \"not (b == 'x' or b == 'y')\" }\n") == "");
    CHECK(one(absent + "c = { value = 3, condition = \"b == 'x' and a > 2\" }\n")
              .starts_with("12:30 space.c.condition: can never hold: 'b' is drawn from"));
    // A condition on a continuous domain is never reported as impossible.
    CHECK(one("a = \"uniform(0, 1)\"\nb = { value = 3, condition = \"a > 1\" }\n") == "");
    CHECK(one("a = \"randint(0, 10001)\"\nb = { value = 3, condition = \"a < 0\" }\n") == "");
    // A pinned value may make conditions on other values impossible.
    CHECK(one("a = 1\nb = { value = 3, condition = \"a == 2\" }\n") == "");
    parts.space = "a = [1, 2]\nb = { value = 3, condition = \"a == 2\" }\n";
    CHECK(mistake(parts.text(), {"space.a=[1]"}) == "");
    CHECK(mistake(parts.text(), {"space.a=1"}) == "");
}

TEST_CASE("a misspelt key of the long form is no hyper-parameter", "[study]") {
    const std::string program = "command = \"./train {args}\"\n";
    struct Case {
        std::string lines;
        std::string expected;
    };
    const std::vector<Case> cases = {
        {"lr = { domain = \"uniform(0.1, 1)\", condtion = \"a > 0\" }\n",
         "11:36 space.lr.condtion: unknown key; did you mean 'condition'?; a hyper-parameter of this name is written "
         "condtion = { value = ... } or { domain = ... }"},
        {"lr = { value = 3, Conditions = \"a > 0\" }\n",
         "11:19 space.lr.Conditions: unknown key; did you mean 'condition'?; a hyper-parameter of this name is written "
         "Conditions = { value = ... } or { domain = ... }"},
        {"lr = { domian = \"uniform(0.1, 1)\", condition = \"a > 0\" }\n",
         "11:8 space.lr.domian: unknown key; did you mean 'domain'?; a hyper-parameter of this name is written "
         "domian = { value = ... } or { domain = ... }"},
        {"lr = { values = [0.1, 0.2] }\n",
         "11:8 space.lr.values: unknown key; did you mean 'value'?; a hyper-parameter of this name is written "
         "values = { value = ... } or { domain = ... }"},
        {"lr = { domain = [1, 2], when = \"a > 0\" }\n",
         "11:25 space.lr.when: unknown key beside 'domain', which goes with 'condition' alone; a hyper-parameter "
         "called "
         "domain is written domain = { domain = ... }"},
        {"[space.sgd]\ncondtion = \"a > 0\"\nmomentum = 0.9\n",
         "12:1 space.sgd.condtion: unknown key; did you mean 'condition'?; a hyper-parameter of this name is written "
         "condtion = { value = ... } or { domain = ... }"},
        // Names that are only similar, and correct long forms.
        {"[space.sgd]\nvalue = 1\nother = 2\ncondition = [1, 2]\n", ""},
        {"[space.sgd]\nvalues = 1\nmomentum = 2\ndomains = \"x\"\nconditions = \"none\"\n", ""},
        {"[space.sgd]\ndomain = { domain = [1, 2] }\nwhen = 2\nvalues = { value = 3 }\n", ""},
    };
    for (const Case& c : cases) {
        Parts parts;
        parts.trainable = program;
        parts.space = "a = \"uniform(0, 1)\"\n" + c.lines;
        INFO(parts.text());
        CHECK(mistake(parts.text()) == c.expected);
    }
}

TEST_CASE("tables and keys too deep are refused before they are read", "[study]") {
    const auto nested = [](std::size_t levels) {
        std::string text = "a";
        for (std::size_t i = 1; i < levels; ++i) text += ".a";
        return text;
    };
    const std::string said = "tables and lists are nested more than 64 deep";
    for (const std::string& text : {"[" + nested(20'000) + "]\n", nested(20'000) + " = 1\n",
                                    "[ x ]\n" + nested(66) + "=1\n", "[" + nested(40) + "]\n" + nested(40) + " = 1\n",
                                    "a = " + std::string(200, '[') + "\n", "a = { " + nested(20'000) + " = 1 }\n"})
        CHECK(mistake(text).find(said) != std::string::npos);
    Parts parts = free_parts();
    CHECK(mistake(parts.text(), {nested(20'000) + "=1"}).find("is not a dotted key") != std::string::npos);
    // Dots in strings and comments do not count.
    const std::string dots(200, '.');
    parts.space = "a = \"\\\"" + dots + "\"\nb = '" + dots + "' # " + dots + "\nc = \"\"\"\n\"" + dots +
                  "\n\"\"\"\nd = '''" + dots + "'''\n\"" + std::string("e") + "\" = 1.5\n";
    CHECK(mistake(parts.text()) == "");
}

} // namespace space_mistakes_test
