// SPDX-License-Identifier: Apache-2.0
// Mistakes in [space] beyond a single value: conditions together, misspelt keys, tables that are too deep.
#include <regex>
#include <string>
#include <utility>
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
        {"lr = { domain = [1, 2], when = \"a > 0\" }\n",
         "11:25 space.lr.when: unknown key beside 'domain', which goes with 'condition' and 'weights' alone; a "
         "hyper-parameter "
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

namespace {

/// What is said about one line of [space] of a program's study.
std::string about(const std::string& line) {
    Parts parts;
    parts.trainable = "command = \"./train {args}\"\n";
    parts.space = line + "\n";
    return mistake(parts.text());
}

/// Lines of [space], and what the mistake says of each.
const std::pair<const char*, const char*> foreign_ranges[] = {
    // W&B
    {"x = { min = 1e-5, max = 1e-1 }", "write x = \"uniform(1e-05, 0.1)\""},
    {"x = { distribution = \"log_uniform_values\", min = 1e-5, max = 1e-1 }", "x = \"loguniform(1e-05, 0.1)\""},
    {"x = { distribution = \"log_uniform\", min = -9.21034, max = 0 }", "x = \"loguniform(0.0001, 1)\""},
    {"x = { distribution = \"int_uniform\", min = 1, max = 8 }", "x = \"randint(1, 9)\""},
    {"x = { distribution = \"q_uniform\", min = 0, max = 8, q = 2 }", "x = \"quniform(0, 8, 2)\""},
    {"x = { distribution = \"normal\", mu = 0.0, sigma = 2 }", "x = \"randn(0.0, 2)\""},
    {"x = { distribution = \"constant\", value = 3 }", "write x = 3"},
    {"x = { distribution = \"categorical\", values = [1, 2], probabilities = [0.1, 0.9] }", "write x = [1, 2]"},
    {"x = { values = [\"a\", \"b\"] }", "write x = ['a', 'b']"},
    {"x = { min = 1, max = 8 }", "x = \"randint(1, 9)\" for integers, or x = \"uniform(1, 8)\""},
    {"x = { parameters = { y = { min = 0.5, max = 1.5 } } }", "write y = \"uniform(0.5, 1.5)\""},
    {"x = { distribution = \"inv_log_uniform_values\", min = 1, max = 2 }", "no exact counterpart"},
    // NNI
    {"x = { _type = \"loguniform\", _value = [1e-5, 1e-1] }", "x = \"loguniform(1e-05, 0.1)\""},
    {"x = { _type = \"choice\", _value = [16, 32] }", "write x = [16, 32]"},
    {"x = { _type = \"randint\", _value = [1, 9] }", "x = \"randint(1, 9)\""},
    {"x = { _type = \"quniform\", _value = [0, 8, 2] }", "x = \"quniform(0, 8, 2)\""},
    {"x = { _type = \"normal\", _value = [0, 1] }", "x = \"randn(0, 1)\""},
    // Ax, Optuna and Hydra, ConfigSpace, Syne Tune, Ray
    {"x = { type = \"range\", bounds = [1e-6, 0.4], log_scale = true }", "x = \"loguniform(1e-06, 0.4)\""},
    {"x = { bounds = [0.0, 0.4] }", "x = \"uniform(0.0, 0.4)\""},
    {"x = { type = \"fixed\", value = 2.5 }", "write x = 2.5"},
    {"x = { low = 1e-5, high = 0.1, log = true }", "x = \"loguniform(1e-05, 0.1)\""},
    {"x = { type = \"float\", low = 0.0, high = 1.0, step = 0.25 }", "x = \"stepuniform(0.0, 1.0, 0.25)\""},
    {"x = { type = \"int\", low = 1, high = 10, step = 3 }", "x = \"steprandint(1, 10, 3)\""},
    {"x = { type = \"int\", low = 1, high = 64, log = true }", "x = \"lograndint(1, 65)\""},
    {"x = { name = \"FloatDistribution\", attributes = { low = 0.1, high = 0.9, log = false } }",
     "x = \"uniform(0.1, 0.9)\""},
    {"x = { lower = 0.1, upper = 0.9, default_value = 0.5 }", "x = \"uniform(0.1, 0.9)\""},
    {"x = { type = \"uniform_int\", lower = 1, upper = 8, log = false }", "x = \"randint(1, 9)\""},
    {"x = { domain_cls = \"Float\", domain_kwargs = { lower = 1e-3, upper = 1.0 }, sampler_cls = \"_LogUniform\" }",
     "x = \"loguniform(0.001, 1.0)\""},
    {"x = { grid_search = [1, 2] }", "write x = [1, 2]"},
    {"x = { choices = [1, 2] }", "write x = [1, 2]"},
    // Katib, SageMaker, Vizier, Keras Tuner, Determined
    {"x = { parameterType = \"double\", feasibleSpace = { min = \"0.01\", max = \"0.03\" } }",
     "x = \"uniform(0.01, 0.03)\""},
    {"x = { MinValue = \"1\", MaxValue = \"8\", ScalingType = \"Logarithmic\" }", "x = \"loguniform(1, 8)\""},
    {"x = { class_name = \"Float\", config = { min_value = 0.1, max_value = 0.9, sampling = \"log\" } }",
     "x = \"loguniform(0.1, 0.9)\""},
    {"x = { type = \"log\", base = 10, minval = -4, maxval = -1 }", "x = \"loguniform(0.0001, 0.1)\""},
    // With a condition, nested, and in lists.
    {"x = { min = 0.1, max = 0.5, condition = \"y == 1\" }\ny = [1, 2]",
     "write x = { domain = \"uniform(0.1, 0.5)\", condition = 'y == 1' }"},
    {"[space.opt]\nx = { min = 0.1, max = 0.5 }", "space.opt.x: is a range"},
    {"x = [{ min = 0.1, max = 0.5 }]", "write x = \"uniform(0.1, 0.5)\""},
    {"x = [{ Name = \"lr\", MinValue = \"0.1\", MaxValue = \"0.5\" }]", "write lr = \"uniform(0.1, 0.5)\""},
    // Members of other names hide nothing.
    {"x = { min = 0.0, max = 1.0, unit = \"s\" }", "write x = \"uniform(0.0, 1.0)\""},
    {"x = { min = 0.0, max = 1.0, clamped = true, tags = [\"a\"] }", "write x = \"uniform(0.0, 1.0)\""},
    {"x = { low = 1e-5, high = 0.1, log = true, comment = \"learning rate\" }", "x = \"loguniform(1e-05, 0.1)\""},
    {"x = { type = \"float\", min = 0, max = 1, required = true }", "write x = \"uniform(0, 1)\""},
    {"x = { type = \"real\", range = [0, 1], transform = \"log\" }", "write x = \"uniform(0, 1)\""},
    {"[space.x.config]\nmin = 0.0\nmax = 1.0\nwhy = \"a\"", "write x = \"uniform(0.0, 1.0)\""},
    {"x = { type = \"mine\", min = 0, max = 1 }", "write x = \"randint(0, 2)\" for integers, or x = \"uniform(0, 1)\""},
    // Other names.
    {"x = { start = 0, stop = 1, num = 5 }", "write x = \"randint(0, 2)\" for integers"},
    {"x = { begin = 0.5, end = 1 }", "write x = \"uniform(0.5, 1)\""},
    {"x = { uniform = [0, 1] }", "write x = \"uniform(0, 1)\""},
    {"x = { loguniform = [0.1, 1] }", "write x = \"loguniform(0.1, 1)\""},
    {"x = { quniform = [0, 1, 0.25] }", "write x = \"quniform(0, 1, 0.25)\""},
    {"x = { normal = [0, 1] }", "write x = \"randn(0, 1)\""},
    {"x = { choice = [3, 4] }", "write x = [3, 4]"},
    {"x = { float = [0, 1] }", "write x = \"uniform(0, 1)\""},
    {"x = { int = [1, 8] }", "write x = \"randint(1, 9)\""},
    {"x = { suggest_float = [1e-5, 0.1] }", "write x = \"uniform(1e-05, 0.1)\""},
    {"x = { uniform = { low = 0.5, high = 1 } }", "write uniform = \"uniform(0.5, 1)\""},
    {"x = { dist = \"uniform\", a = 0, b = 1 }", "write x = \"uniform(0, 1)\""},
    {"x = { distribution = \"uniform\", params = [0, 1] }", "write x = \"uniform(0, 1)\""},
    {"x = { distribution = \"uniform\", args = [0, 1] }", "write x = \"uniform(0, 1)\""},
    {"x = { distribution = \"norm\", loc = 0, scale = 1 }", "write x = \"randn(0, 1)\""},
    {"x = { tune = [1, 2] }", "write x = [1, 2]"},
    {"x = { options = [\"a\", \"b\"] }", "write x = ['a', 'b']"},
    // What cannot be proposed is not proposed.
    {"x = { type = \"range\", bounds = [0.0, 1.0], log_scale = true }", "no counterpart: "},
    {"x = { low = 0, high = \"inf\" }", "no counterpart: "},
    {"x = { minval = 0, maxval = 1, scale = \"log\" }", "no counterpart: "},
    {"x = { low = 5, high = 1 }", "no counterpart: "},
    {"x = { values = [] }", "no counterpart: "},
    {"x = { type = \"fixed\", value = [1, 2] }", "write x = { value = [1, 2] }"},
    {"x = { type = \"fixed\", value = \"a,b\" }", "write x = { value = 'a,b' }"},
    {"y = [1, 2]\nx = { condition = \"y == 1\", min = 0, max = 1 }",
     "write x = { domain = \"randint(0, 2)\", condition = 'y == 1' } for integers, or x = { domain = \"uniform(0, "
     "1)\", "
     "condition = 'y == 1' }; a hyper-parameter called min"},
    // Strings.
    {"x = [\"uniform(0, 1)\", \"loguniform(1e-3, 1)\"]", "write x = 'uniform(0, 1)'"},
    {"x = \"0.1, 0.2, 0.3\"", "to choose among values write x = [0.1, 0.2, 0.3]; if the text is meant, x = { value = "},
    {"x = \"sgd,adam\"", "write x = ['sgd', 'adam'];"},
    {"x = \"(0, 1)\"", "write x = [0, 1], to draw between bounds x = \"uniform(0, 1)\";"},
    {"x = \"[0.1, 1]\"", "to draw between bounds x = \"uniform(0.1, 1)\";"},
    {"x = \"['a', 'b']\"", "write x = ['a', 'b'];"},
    {"x = \"0.1:1\"", "to draw between bounds write x = \"uniform(0.1, 1)\";"},
    {"x = \"0.1-1\"", "to draw between bounds write x = \"uniform(0.1, 1)\";"},
    {"x = \"0.1 to 1\"", "to draw between bounds write x = \"uniform(0.1, 1)\";"},
    {"x = \"9-1\"", "a domain is written as a call"},
    {"x = \"a|b|c\"", "write x = ['a', 'b', 'c'];"},
    {"x = \"{1, 2, 3}\"", "write x = [1, 2, 3];"},
    {"x = \"uniform 0 1\"", "a domain is written as a call"},
    {"x = \"uniform[0:1]\"", "a domain is written as a call"},
    {"x = \"~loguniform(1e-5, 1)\"", "a domain is written as a call"},
    {"x = \"log-uniform (1e-5, 1)\"", "a domain is written as a call"},
    {"x = \"0.1..0.9\"", "to draw between bounds write x = \"uniform(0.1, 0.9)\";"},
    {"x = \"tune.uniform(0, 1)\"", "did you mean 'uniform'"},
    {"x = \"log_uniform(1e-5, 1)\"", "did you mean 'loguniform'"},
};

/// The lines that a mistake proposes: `NAME = [...]`, `NAME = "..."`, `NAME = { ... }`, `NAME = 3`.
std::vector<std::string> proposals_in(const std::string& said) {
    static const std::regex line(
        R"RE((?:write|or|bounds|meant,) (\w+ = (?:\[[^\]]*\]|"[^"]*"|'[^']*'|\{(?:'[^']*'|"[^"]*"|[^}'"])*\}|[\d.]+)))RE");
    std::vector<std::string> found;
    for (auto at = std::sregex_iterator(said.begin(), said.end(), line); at != std::sregex_iterator(); ++at)
        if (at->str(1).find("LOW") == std::string::npos) found.push_back(at->str(1));
    return found;
}

} // namespace

TEST_CASE("a range as another tool writes it is refused with the domain to write", "[study]") {
    for (const auto& [line, advice] : foreign_ranges) {
        INFO(line);
        const std::string said = about(line);
        CHECK_THAT(said, Catch::Contains(advice));
        for (const std::string& proposed : proposals_in(said)) {
            INFO(proposed);
            CHECK(about((proposed.find("y == 1") != std::string::npos ? "y = [1, 2]\n" : "") + proposed) == "");
        }
    }
    CHECK(
        about("lr = { min = 1e-5, max = 0.1 }") ==
        "10:6 space.lr: is a range as other tools write it, and would be a nested table of constants here; write lr = "
        "\"uniform(1e-05, 0.1)\"; a hyper-parameter called min is written min = { value = 1e-05 }");
    const Parts list;
    const std::string tables = "[study]\n" + list.study + "[trainable]\ncommand = \"./train {args}\"\n" +
                               "[[space]]\nname = \"lr\"\ntype = \"range\"\nbounds = [0.1, 0.5]\n";
    CHECK_THAT(mistake(tables), Catch::Contains("write lr = \"uniform(0.1, 0.5)\""));
}

TEST_CASE("tables of hyper-parameters that are called like bounds stay tables, also when they are resolved",
          "[study]") {
    for (const std::string line : {"[space.clip]\nmin = \"uniform(-2, -1)\"\nmax = \"uniform(1, 2)\"",
                                   "clip = { min = [1, 2], max = [3, 4] }",
                                   "clip = { min = { value = 1 }, max = { value = 4 } }",
                                   "clip = { min = { domain = [1, 2] }, max = 3 }",
                                   "clip = { min = -1.0, max = 1.0, norm = \"uniform(1, 2)\" }",
                                   "clip = { min = 0.1 }",
                                   "schedule = { type = \"cosine\", start = 0.1, end = 0.01 }",
                                   "x = { values = { value = [1, 2] } }",
                                   "x = { values = { domain = [1, 2] }, other = 3 }",
                                   "net = { type = \"cnn\", layers = [1, 2] }",
                                   "x = { value = \"uniform[0:1]\" }",
                                   "x = \"a..b\"",
                                   "x = \"left (of 2)\"",
                                   "x = \"normal\"",
                                   "x = { value = \"0.1, 0.2\" }",
                                   "x = { domain = [\"uniform(0, 1)\", \"b\"] }",
                                   "x = \"2024-01-31\"",
                                   "x = \"first, do no harm\"",
                                   "x = \"10.0.0.1:80\"",
                                   "x = \"uniform noise, 2 kinds\"",
                                   "x = \"-1\"",
                                   "adam = { beta = [0.9, 0.99], linear = [1, 2] }",
                                   "sgd = { type = \"linear\", start = 1, end = 0, warm = 2 }",
                                   "layers = { type = \"layernorm\", value = 3, gain = 2 }",
                                   "head = { type = \"linear\", max = 5, gain = [1, 2] }",
                                   "[space.pyramid]\nlevels = [3, 4]",
                                   "clip = { min = 1, max = 2, inner = { a = \"uniform(0, 1)\" } }",
                                   "x = { a = 0, b = 1 }"}) {
        Parts parts;
        parts.trainable = "command = \"./train {args}\"\n";
        parts.space = line + "\n";
        INFO(line);
        REQUIRE(mistake(parts.text()) == "");
        const StudySpec spec = parse(parts.text());
        const std::string resolved = resolved_toml(spec);
        INFO(resolved);
        REQUIRE(mistake(resolved) == "");
        CHECK(resolved_toml(parse(resolved)) == resolved);
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
