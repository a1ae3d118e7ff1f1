// SPDX-License-Identifier: Apache-2.0
// [space]: require and forbid, bounds that depend on parameters, lists of tables, weights and None.
#include "study_files.hpp"
#include "support/catch.hpp"

namespace study_rules_test {

using namespace ranktune;
using namespace ranktune::study;
using namespace ranktune::study::testing;

namespace {

StudySpec with_space(const std::string& space) {
    Parts parts = free_parts();
    parts.space = space;
    INFO(space);
    REQUIRE(mistake(parts.text()) == "");
    return parse(parts.text());
}

std::string mistake_in(const std::string& space) {
    Parts parts = free_parts();
    parts.space = space;
    return mistake(parts.text());
}

std::vector<std::string> texts(const space::SearchSpace& space) {
    std::vector<std::string> all;
    for (const space::Parameter& each : space.parameters())
        all.push_back(each.name + " = " + space::text(each.domain) +
                      (each.condition ? " if " + each.condition->text() : ""));
    for (const space::Rule& rule : space.rules()) all.push_back(rule.text());
    return all;
}

/// What the resolved file says is the same space.
void check_resolved(const StudySpec& spec) {
    const std::string resolved = resolved_toml(spec);
    INFO(resolved);
    const StudySpec again = parse_resolved(resolved);
    CHECK(texts(again.space) == texts(spec.space));
    CHECK(resolved_toml(again) == resolved);
}

using Lines = std::vector<std::string>;

} // namespace

TEST_CASE("rules are one text, a list of texts, or tables of values", "[study]") {
    const StudySpec spec = with_space(
        "require = [\"x < y\", \"x * y <= 0.5\"]\nx = \"uniform(0, 1)\"\ny = \"uniform(0, 1)\"\nkind = ['a', "
        "\"it's\"]\n"
        "n = [1, 2, 3]\n[[space.forbid]]\nkind = \"it's\"\nn = [1, 3]\n[[space.forbid]]\nn = 2\nkind = 'a'\n");
    CHECK(texts(spec.space) == Lines{"x = uniform(0.0, 1.0)", "y = uniform(0.0, 1.0)", "kind = ['a', \"it's\"]",
                                     "n = [1, 2, 3]", "require \"x < y\"", "require \"x * y <= 0.5\"",
                                     "forbid \"kind == \"it's\" and n in [1, 3]\"",
                                     "forbid \"n == 2 and kind == 'a'\""});
    check_resolved(spec);
    CHECK(texts(with_space("forbid = \"x > 0.5\"\nx = \"uniform(0, 1)\"\n").space) ==
          Lines{"x = uniform(0.0, 1.0)", "forbid \"x > 0.5\""});
    CHECK(texts(with_space("x = [1, 2]\n[space.o]\nname = ['a', 'b']\n[[space.forbid]]\no.name = 'a'\nx = 2\n").space)
              .back() == "forbid \"o.name == 'a' and x == 2\"");
    CHECK(texts(with_space("forbid = \"x == 1\"\nrequire = \"y == 1\"\nx = [1, 2]\ny = [1, 2]\n").space).back() ==
          "forbid \"x == 1\""); // as in a resolved file
    CHECK(texts(with_space("forbid = { x = 1, y = 1 }\nx = [1, 2]\ny = [1, 2]\n").space).back() ==
          "forbid \"x == 1 and y == 1\"");
}

TEST_CASE("require and forbid can be hyper-parameters", "[study]") {
    const StudySpec spec = with_space("require = { value = 'x' }\nforbid = \"uniform(0, 1)\"\n");
    CHECK(texts(spec.space) == Lines{"require = 'x'", "forbid = uniform(0.0, 1.0)"});
    check_resolved(spec);
    check_resolved(with_space("[space.deep]\nrequire = \"a\"\n"));
}

TEST_CASE("mistakes in rules", "[study]") {
    CHECK(mistake_in("x = [1, 2]\nrequire = \"x < z\"\n") ==
          "11:11 space.require: unknown parameter 'z' (known: x); a text is written in quotes:  \"x < z\"");
    CHECK(mistake_in("x = [1, 2]\nrequire = [\"x <\"]\n") ==
          "11:12 space.require: expected a value or the name of a parameter at column 4, found the end:  \"x <\"");
    CHECK(mistake_in("x = [1, 2]\nrequire = [3]\n") ==
          "11:12 space.require: needs a condition such as \"width * depth <= 4096\", not an integer; a hyper-parameter "
          "of this name is written { value = ... } or { domain = ... }");
    CHECK(mistake_in("kind = ['a', 'b']\nforbid = \"kind * 2 > 1\"\n") ==
          "11:10 space.forbid: 'kind' is no number: it is drawn from ['a', 'b']:  \"kind * 2 > 1\"");
    CHECK(mistake_in("x = [1, 2]\nforbid = \"x == 3\"\n") ==
          "11:10 space.forbid: can never hold: 'x' is drawn from [1, 2]; compare with values that can be:  \"x == 3\"");
    CHECK(mistake_in("require = { value = 3 }\nx = [1, 2]\nforbid = \"x == 1\"\n") ==
          "9:1 space.require: a hyper-parameter cannot be called require beside rules; give it another name");
    CHECK(mistake_in("x = \"uniform(0, 1)\"\nrequire = \"x > 2\"\n") ==
          "9:1 space: no configuration was found that keeps require \"x > 2\"; allow more, or widen the domains");
}

TEST_CASE("starting points that break a rule, or leave nothing, are refused", "[study]") {
    Parts parts = free_parts();
    parts.space = "x = [1, 2, 3]\ny = [1, 2, 3]\nrequire = \"x < y\"\n";
    parts.rest = "[searcher]\nstart = [{ x = 2 }]\n";
    CHECK(mistake(parts.text()) == "");
    parts.rest = "[searcher]\nstart = [{ x = 2, y = 2 }]\n";
    CHECK(mistake(parts.text()) == "14:16 searcher.start.x: this point breaks require \"x < y\"");
    parts.rest = "[searcher]\nstart = [{ x = 3 }]\n";
    CHECK(mistake(parts.text()) ==
          "14:16 searcher.start.x: no values of the other hyper-parameters keep the rules of [space]");
}

TEST_CASE("a grid counts what the rules allow", "[study]") {
    Parts parts = free_parts();
    parts.study = "name = \"s\"\nmetric = \"val_loss\"\nmode = \"min\"\nmax_iterations = 27\n";
    parts.space = "x = [1, 2, 3]\ny = [1, 2, 3]\nrequire = \"x < y\"\n";
    parts.rest = "[searcher]\ntype = \"grid\"\n";
    CHECK(parse(parts.text()).num_trials == 3);
}

TEST_CASE("bounds may depend on other parameters, in any order of the file", "[study]") {
    const StudySpec spec = with_space(
        "units = \"qrandint(8, 64 * layers, 8)\"\nlayers = \"randint(1, 5)\"\nlow = \"uniform(0, 1)\"\n"
        "high = { domain = \"uniform(low, low + 1)\", condition = \"layers > 1\" }\nlast = \"randint(1, min(layers, 3) "
        "+ 1)\"\n");
    CHECK(texts(spec.space) == Lines{"units = qrandint(8, 256, 8)", "layers = randint(1, 5)", "low = uniform(0.0, 1.0)",
                                     "high = uniform(0.0, 2.0) if layers > 1", "last = randint(1, 4)",
                                     "require \"units <= (64 * layers)\"", "require \"high >= (low)\"",
                                     "require \"high < (low + 1)\"", "require \"last < (min(layers, 3) + 1)\""});
    check_resolved(spec);
    CHECK(mistake_in("x = \"uniform(0, y)\"\ny = \"uniform(0, x)\"\n") ==
          "10:5 space.x: its bounds depend on parameters whose bounds depend on it; write one of them with numbers:  "
          "\"uniform(0, y)\"");
    CHECK(mistake_in("x = \"uniform(0, widht)\"\nwidth = [1, 2]\n") ==
          "10:5 space.x: unknown parameter 'widht'; did you mean 'width'?:  \"uniform(0, widht)\"");
    CHECK(mistake_in("x = \"uniform(0, kind)\"\nkind = ['a', 'b']\n") ==
          "10:5 space.x: 'kind' has no smallest and largest number: ['a', 'b']:  \"uniform(0, kind)\"");
    CHECK(mistake_in("x = \"uniform(0, y % 3)\"\ny = \"randint(1, 9)\"\n")
              .starts_with("10:5 space.x: a bound cannot be computed with '%' here; write the bound as a number"));
    CHECK(mistake_in("x = \"loguniform(y, 3)\"\ny = \"uniform(0, 1)\"\n")
              .starts_with("10:5 space.x: loguniform needs low > 0"));
}

TEST_CASE("a list of tables is a choice, with parameters of their own", "[study]") {
    const StudySpec spec = with_space(
        "optimizer = [{ name = \"sgd\", momentum = \"uniform(0, 1)\", lr = [0.1, 0.2] }, { lr = [0.1, 0.2], name = "
        "\"adam\", "
        "beta = { low = \"uniform(0.8, 0.9)\" } }, { name = \"none\" }]\n");
    CHECK(texts(spec.space) == Lines{"optimizer.name = ['sgd', 'adam', 'none']",
                                     "optimizer.momentum = uniform(0.0, 1.0) if optimizer.name in ['sgd']",
                                     "optimizer.lr = [0.1, 0.2] if optimizer.name in ['sgd', 'adam']",
                                     "optimizer.beta.low = uniform(0.8, 0.9) if optimizer.name in ['adam']"});
    check_resolved(spec);
    CHECK(mistake_in("a = [{ x = 1 }, { y = 1 }]\n")
              .starts_with("10:5 space.a: is a list of tables that no key tells apart"));
    CHECK(mistake_in("a = [{ \"k k\" = 1 }, { \"k k\" = 2 }]\n").starts_with("10:8 space.a.k k: a name has letters"));
    CHECK(mistake_in("a = [{ k = 1, x = [1, 2] }, { k = 2, x = [1, 3] }]\n") ==
          "10:42 space.a.x: has another domain in a table before; give them different names, or one domain and rules");
}

TEST_CASE("weights and None in study files", "[study]") {
    const StudySpec spec = with_space(
        "kind = { domain = ['a', 'b'], weights = [3, 1], condition = \"clip != None\" }\nclip = \"choice([None, 1, "
        "5])\"\n"
        "size = \"grid([None, 2])\"\n");
    CHECK(texts(spec.space) == Lines{"kind = choice(['a', 'b'], ordered=false, weights=[3.0, 1.0]) if clip != None",
                                     "clip = [None, 1, 5]", "size = grid([None, 2])"});
    check_resolved(spec);
    CHECK(mistake_in("x = { domain = [1, 2], weights = [1] }\n") ==
          "10:34 space.x.weights: needs one weight for each value: 1 weights, 2 values");
    CHECK(mistake_in("x = { domain = \"uniform(0, 1)\", weights = [1] }\n") ==
          "10:33 space.x.weights: goes with a list of values, not with uniform(0.0, 1.0)");
    CHECK(mistake_in("x = { value = 3, weights = [1] }\n") ==
          "10:18 space.x.weights: goes with a list of values, not with 3");
    CHECK(mistake_in("x = { domain = [1, 2], weights = 3 }\n") ==
          "10:34 space.x.weights: needs a list of numbers, one for each value, as in [3, 1, 1]");
    Parts start = free_parts();
    start.space = "clip = \"choice([None, 1])\"\n";
    start.rest = "[searcher]\nstart = [{ clip = \"None\" }]\n";
    const StudySpec starts = parse(start.text());
    CHECK(starts.searcher.start.front().at("clip").is_none());
    CHECK(parse_resolved(resolved_toml(starts)).searcher.start == starts.searcher.start);
    Parts parts;
    parts.space = "lr = 0.1\nmomentum = \"choice([None, 0.9])\"\n";
    CHECK(mistake(parts.text()) == "");
}

} // namespace study_rules_test
