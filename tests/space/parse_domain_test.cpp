// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/space/domain.hpp"
#include "support/catch.hpp"

namespace parse_domain_test {

using namespace ranktune::space;

namespace {

std::string refusal(const std::string& call) {
    try {
        return "accepted as " + text(parse_domain(call));
    } catch (const ranktune::base::UsageError& error) {
        return error.what();
    }
}

} // namespace

TEST_CASE("parse_domain reads every name of Ray Tune in its argument order", "[space]") {
    CHECK(parse_domain("uniform(-1, 2.5)") == Domain(FloatRange{.lower = -1, .upper = 2.5}));
    CHECK(parse_domain("quniform(0, 10, 2)") == Domain(FloatRange{.lower = 0, .upper = 10, .quantum = 2}));
    CHECK(parse_domain("loguniform(1e-4, 1.0)") == Domain(FloatRange{.lower = 1e-4, .upper = 1, .log = true}));
    CHECK(parse_domain("qloguniform(1e-2, 1, 0.01)") ==
          Domain(FloatRange{.lower = 1e-2, .upper = 1, .log = true, .quantum = 0.01}));
    CHECK(parse_domain("randn()") == Domain(Normal{}));
    CHECK(parse_domain("randn(10, 2)") == Domain(Normal{.mean = 10, .sd = 2}));
    CHECK(parse_domain("qrandn(10, 2, 0.5)") == Domain(Normal{.mean = 10, .sd = 2, .quantum = 0.5}));
    CHECK(parse_domain("choice([1, 'two', [3, 4.0]])") == Domain(Choice{{1, "two", Value::List{3, 4.0}}}));
    CHECK(parse_domain("choice(['a', 'b'], ordered=true)") == Domain(Choice{{"a", "b"}, true}));
    CHECK(parse_domain("grid([true, false])") == Domain(Grid{{true, false}}));
}

TEST_CASE("lists of numbers that only rise or only fall are ordered, unless they say otherwise", "[space]") {
    const auto is_ordered = [](const std::string& call) { return std::get<Choice>(parse_domain(call)).ordered; };
    for (const char* list : {"[32, 64, 128]", "[0.1, 1, 10.5]", "[3, 2]", "[1e-8, 1e-3, 1.0]"}) {
        INFO(list);
        CHECK(is_ordered("choice(" + std::string(list) + ")"));
        CHECK(is_ordered("choice(" + std::string(list) + ", ordered=true)"));
        CHECK_FALSE(is_ordered("choice(" + std::string(list) + ", ordered=false)"));
    }
    for (const char* list :
         {"[32, 128, 64]", "[1]", "[1, 1.0, 2]", "[true, false]", "['1', '2']", "[1, 'x']", "[[1], [2]]"}) {
        INFO(list);
        CHECK_FALSE(is_ordered("choice(" + std::string(list) + ")"));
    }
}

TEST_CASE("randint and lograndint exclude the upper bound, the quantised ones include it", "[space]") {
    CHECK(parse_domain("randint(1, 10)") == Domain(IntRange{.lower = 1, .upper = 9}));
    CHECK(parse_domain("lograndint(1, 10)") == Domain(IntRange{.lower = 1, .upper = 9, .log = true}));
    CHECK(parse_domain("qrandint(1, 10)") == Domain(IntRange{.lower = 1, .upper = 10}));
    CHECK(parse_domain("qrandint(1, 10, 3)") == Domain(IntRange{.lower = 1, .upper = 10, .quantum = 3}));
    CHECK(parse_domain("qlograndint(1, 10, 3)") ==
          Domain(IntRange{.lower = 1, .upper = 10, .log = true, .quantum = 3}));
    CHECK(parse_domain("randint(3, 4)") == Domain(IntRange{.lower = 3, .upper = 3}));
    CHECK(refusal("randint(3, 3)") == "randint needs low < high (the upper bound is exclusive), got 3 and 3");
    CHECK(refusal("randint(-9223372036854775808, -9223372036854775808)") ==
          "randint needs low < high (the upper bound is exclusive), got -9223372036854775808 and "
          "-9223372036854775808");
    CHECK(parse_domain("randint(-9223372036854775808, 9223372036854775807)") ==
          Domain(IntRange{.lower = std::numeric_limits<std::int64_t>::min(),
                          .upper = std::numeric_limits<std::int64_t>::max() - 1}));
}

TEST_CASE("steps from the lower bound include the upper one, and name their argument", "[space]") {
    CHECK(parse_domain("steprandint(1, 10, 3)") ==
          Domain(IntRange{.lower = 1, .upper = 10, .quantum = 3, .from_lower = true}));
    CHECK(parse_domain("stepuniform(0.1, 1, step=0.3)") ==
          Domain(FloatRange{.lower = 0.1, .upper = 1, .quantum = 0.3, .from_lower = true}));
    CHECK(text(parse_domain("steprandint(1, 10, 3)")) == "steprandint(1, 10, 3)");
    CHECK(parse_domain("stepuniform(0.1, 1.0, 0.3)") == parse_domain(text(parse_domain("stepuniform(0.1, 1, 0.3)"))));
    CHECK(refusal("stepuniform(0, 1, 0)") == "stepuniform needs a finite step > 0");
    CHECK(refusal("steprandint(0, 1, 0)") == "steprandint needs step >= 1");
    CHECK(refusal("steprandint(0, 1)") == "steprandint takes 3 arguments (lower, upper, step), got 2");
}

TEST_CASE("numbers may be written as in TOML", "[space]") {
    CHECK(parse_domain("randint(0, 1e5)") == Domain(IntRange{.lower = 0, .upper = 99999}));
    CHECK(parse_domain("randint(+1, 1_000)") == Domain(IntRange{.lower = 1, .upper = 999}));
    CHECK(parse_domain(" uniform ( -1.5E-1 ,\t+2e0 ) ") == Domain(FloatRange{.lower = -0.15, .upper = 2}));
}

TEST_CASE("arguments can be named, and base has no effect", "[space]") {
    CHECK(parse_domain("quniform(0, 10, q=2)") == parse_domain("quniform(0, 10, 2)"));
    CHECK(parse_domain("randn(sd=3)") == Domain(Normal{.mean = 0, .sd = 3}));
    CHECK(parse_domain("uniform(upper = 2, lower = 1)") == Domain(FloatRange{.lower = 1, .upper = 2}));
    CHECK(parse_domain("loguniform(1e-4, 1, base=2)") == parse_domain("loguniform(1e-4, 1)"));
    CHECK(parse_domain("qlograndint(1, 64, 2, 2)") == parse_domain("qlograndint(1, 64, 2)"));
    CHECK(refusal("loguniform(1e-4, 1, base=1)") == "loguniform needs a base > 0 other than 1");
    CHECK(refusal("quniform(0, 10, step=2)") == "quniform has no argument 'step'; it takes (lower, upper, q)");
    CHECK(refusal("quniform(0, 10, 2, q=2)") == "quniform: argument 'q' is given twice");
    CHECK(refusal("uniform(0, lower=1)") == "uniform: argument 'lower' is given twice");
    CHECK(refusal("uniform(lower=1, 2)") == "expected a named argument after a named one at column 18, found '2'");
}

TEST_CASE("an unknown name is answered with the nearest one", "[space]") {
    CHECK(refusal("logunifrom(1, 2)") == "unknown domain 'logunifrom'; did you mean 'loguniform'?");
    CHECK(refusal("tune.uniform(1, 2)") == "unknown domain 'tune.uniform'; did you mean 'uniform'?");
    CHECK(refusal("grid_search([1])") == "unknown domain 'grid_search': it is Ray Tune's name; here: grid");
    CHECK(refusal("sample_from(x)") ==
          "unknown domain 'sample_from': a study file holds no functions; a bound may depend on other parameters, and "
          "a parameter can have a condition");
    CHECK(refusal("f(1)") ==
          "unknown domain 'f'; known: uniform, quniform, loguniform, qloguniform, randn, qrandn, randint, qrandint, "
          "lograndint, qlograndint, stepuniform, steprandint, choice, grid");
}

TEST_CASE("number and kind of arguments are checked", "[space]") {
    CHECK(refusal("uniform(1)") == "uniform takes 2 arguments (lower, upper), got 1");
    CHECK(refusal("uniform(1, 2, 3)") == "uniform takes 2 arguments (lower, upper), got 3");
    CHECK(refusal("loguniform()") == "loguniform takes 2 to 3 arguments (lower, upper, base=10), got 0");
    CHECK(refusal("uniform(0, 'one')") == "uniform: upper must be a number, got the string 'one'");
    CHECK(refusal("randint(0, 2.5)") == "randint: upper must be a 64-bit integer, got the float 2.5");
    CHECK(refusal("randint(0, 9223372036854775808)") ==
          "randint: upper must be a 64-bit integer, got the float 9.223372036854776e+18");
    CHECK(refusal("randint(0, true)") == "randint: upper must be a 64-bit integer, got the bool true");
    CHECK(refusal("choice(1)") == "choice: categories must be one list, as in [1, 2, 3], got the integer 1");
    CHECK(refusal("choice(1, 2, 3)") == "choice: categories must be one list, as in [1, 2, 3], got the integer 1");
    CHECK(refusal("grid([1], [2])") == "grid takes 1 argument (list), got 2");
    CHECK(refusal("choice([1], ordered=1)") == "choice: ordered must be true or false, got the integer 1");
}

TEST_CASE("an impossible domain is refused with its problem after the name", "[space]") {
    CHECK(refusal("loguniform(0.0, 1.0)") == "loguniform needs low > 0");
    CHECK(refusal("uniform(3, 2)") == "uniform needs low <= high, got 3.0 > 2.0");
    CHECK(refusal("uniform(0, inf)") == "uniform needs finite bounds");
    CHECK(refusal("quniform(0, 1, 0)") == "quniform needs a finite q > 0");
    CHECK(refusal("qrandint(0, 1, 0)") == "qrandint needs q >= 1");
    CHECK(refusal("choice([])") == "choice needs at least one value");
    CHECK(refusal("randn(0, -1)") == "randn needs a finite sd > 0");
}

TEST_CASE("text that is no call is refused with its column", "[space]") {
    CHECK(refusal("uniform(1, 2") == "expected ',' or ')' at column 13, found the end");
    CHECK(refusal("uniform(1 2)") == "expected ',' or ')' at column 11, found '2'");
    CHECK(refusal("uniform(1, 2) * 3") == "expected nothing more at column 15, found '*'");
    CHECK(refusal("uniform(1, two)") ==
          "expected a number, a string in quotes, true, false, None or a list at column 12, found 'two'");
    CHECK(refusal("uniform(1, 2..5)") == "expected a number at column 12, found '2..5'");
    CHECK(refusal("choice(['a)") == "expected a string that ends with the quote it began with at column 9, found '''");
    CHECK(refusal("choice([\"\\q\"])") ==
          "expected one of the escapes \\\" \\\\ \\n \\t \\r \\b \\f \\uXXXX \\UXXXXXXXX at column 11, found 'q'");
    CHECK(refusal("choice([True])") ==
          "expected a value (write true or false in lower case) at column 9, found 'True'");
    CHECK(refusal("") == "expected the name of a domain at column 1, found the end");
    CHECK(refusal("choice(" + std::string(100, '[')).substr(0, 40) == "expected at most 32 lists inside each ot");
}

TEST_CASE("text reads back as the same domain", "[space]") {
    const std::string names = "it's \"quoted\"\n\xC3\xA9";
    for (const Domain& domain :
         {Domain(FloatRange{.lower = 1e-4, .upper = 1, .log = true}), Domain(FloatRange{.lower = -1e300, .upper = 0.1}),
          Domain(FloatRange{.lower = 0, .upper = 1, .quantum = 0.1}),
          Domain(FloatRange{.lower = 0.5, .upper = 1, .log = true, .quantum = 0.1}),
          Domain(Normal{.mean = -1, .sd = 3}), Domain(Normal{.mean = 1, .sd = 3, .quantum = 2}),
          Domain(IntRange{.lower = -5, .upper = 5}), Domain(IntRange{.lower = 1, .upper = 5, .log = true}),
          Domain(IntRange{.lower = 1, .upper = 50, .quantum = 7}),
          Domain(IntRange{.lower = 1, .upper = std::numeric_limits<std::int64_t>::max()}),
          Domain(IntRange{.lower = 1, .upper = std::numeric_limits<std::int64_t>::max(), .log = true}),
          Domain(IntRange{.lower = 8, .upper = 64, .log = true, .quantum = 8}), Domain(Grid{{1, 2.0, names, true}}),
          Domain(Choice{{names, Value::List{1, Value::List{2, "x"}}}, true})}) {
        INFO(text(domain));
        CHECK(parse_domain(text(domain)) == domain);
    }
    CHECK(text(FloatRange{.lower = 0.0001, .upper = 1, .log = true}) == "loguniform(0.0001, 1.0)");
    CHECK(text(IntRange{.lower = 1, .upper = 9}) == "randint(1, 10)");
    CHECK(text(Choice{{32, 64, 128}, true}) == "[32, 64, 128]");
    CHECK(text(Choice{{32, 64, 128}}) == "choice([32, 64, 128], ordered=false)");
    CHECK(text(Choice{{"a", "b"}}) == "['a', 'b']");
    CHECK(text(Constant{"adam"}) == "'adam'");
}

TEST_CASE("any text is either refused as a usage error or gives a possible domain that reads back", "[space]") {
    using ranktune::base::RngStream;
    const std::vector<std::string> pieces = {"uniform",
                                             "quniform",
                                             "loguniform",
                                             "randint",
                                             "qlograndint",
                                             "qrandn",
                                             "randn",
                                             "choice",
                                             "grid",
                                             "(",
                                             ")",
                                             "[",
                                             "]",
                                             ",",
                                             " ",
                                             "1",
                                             "0",
                                             "-3",
                                             "2.5",
                                             "1e3",
                                             "1e-4",
                                             "inf",
                                             "nan",
                                             "q=",
                                             "base=",
                                             "'a'",
                                             "\"b\\u00e9\"",
                                             "true",
                                             "9223372036854775807",
                                             "-9223372036854775808",
                                             "'",
                                             "\\",
                                             "1e308"};
    int accepted = 0;
    for (std::uint32_t i = 0; i < 30000; ++i) {
        RngStream rng(17, ranktune::base::Purpose::fault, i);
        // Half of the texts have the form of a call, so that some are valid.
        std::string call = i % 2 == 0 ? pieces[rng.below(9)] + "(" : "";
        for (std::uint64_t left = rng.below(8); left > 0; --left) {
            call += pieces[rng.below(pieces.size())];
            if (i % 4 == 0 && left > 1) call += ",";
        }
        if (i % 2 == 0) call += ")";
        try {
            const Domain domain = parse_domain(call);
            INFO(call);
            CHECK(problem(domain).empty());
            if (!std::holds_alternative<Choice>(domain)) CHECK(parse_domain(text(domain)) == domain);
            for (const double unit : {0.0, 0.4999, 1.0 - 0x1p-53}) CHECK(contains(domain, decode(domain, unit)));
            ++accepted;
        } catch (const ranktune::base::UsageError& error) {
            if (std::string(error.what()).empty()) FAIL("an error without words");
        }
        (void)looks_like_call(call);
    }
    CHECK(accepted > 200);
}

TEST_CASE("looks_like_call tells calls from plain strings", "[space]") {
    CHECK(looks_like_call("uniform(0, 1)"));
    CHECK(looks_like_call(" uniform (0, 1) "));
    CHECK(looks_like_call("loguniform(1e-4, 1.0")); // a forgotten bracket is a mistake, not a constant
    CHECK(looks_like_call("logunifrom(1, 2)"));
    CHECK(looks_like_call("tune.choice([1])"));
    CHECK_FALSE(looks_like_call("adam"));
    CHECK_FALSE(looks_like_call("uniform"));
    CHECK_FALSE(looks_like_call("left (of 2)"));
    CHECK_FALSE(looks_like_call("f(x) + 1"));
    CHECK_FALSE(looks_like_call("(1, 2)"));
    CHECK_FALSE(looks_like_call(""));
    CHECK_FALSE(looks_like_call("3(4)"));
}

} // namespace parse_domain_test
