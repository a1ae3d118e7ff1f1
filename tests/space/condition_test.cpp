// SPDX-License-Identifier: Apache-2.0
#include "ranktune/space/condition.hpp"

#include <cmath>

#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "support/catch.hpp"

namespace condition_test {

using namespace ranktune::space;

namespace {

bool holds(const std::string& condition, const Configuration& configuration) {
    return Condition::parse(condition).holds(configuration);
}

std::string refusal(const std::string& condition) {
    try {
        (void)Condition::parse(condition);
        return "accepted";
    } catch (const ranktune::base::UsageError& error) {
        return error.what();
    }
}

const Configuration example({{"optimizer", "sgd"},
                             {"batch_size", 32},
                             {"lr", 0.5},
                             {"nesterov", true},
                             {"net.kind", "mlp"},
                             {"hidden", Value::List{64, 32}}});

} // namespace

TEST_CASE("comparisons hold for equal values and for their order", "[space]") {
    CHECK(holds("optimizer == 'sgd'", example));
    CHECK(holds("optimizer == \"sgd\"", example));
    CHECK_FALSE(holds("optimizer == 'adam'", example));
    CHECK(holds("optimizer != 'adam'", example));
    CHECK(holds("optimizer < 'zzz'", example));
    CHECK(holds("batch_size >= 32", example));
    CHECK_FALSE(holds("batch_size > 32", example));
    CHECK(holds("batch_size <= 32.0", example));
    CHECK_FALSE(holds("batch_size < 32", example));
    CHECK(holds("lr < 1", example));
    CHECK(holds("nesterov == true", example));
    CHECK_FALSE(holds("nesterov == false", example));
    CHECK(holds("net.kind == 'mlp'", example));
    CHECK(holds("batch_size in [16, 32.0, 64]", example));
    CHECK_FALSE(holds("batch_size not in [16, 32, 64]", example));
    CHECK(holds("optimizer not in ['adam']", example));
}

TEST_CASE("values of different kinds are unequal and in no order", "[space]") {
    CHECK_FALSE(holds("batch_size == '32'", example));
    CHECK(holds("batch_size != '32'", example));
    CHECK_FALSE(holds("batch_size < '4'", example));
    CHECK_FALSE(holds("batch_size >= '4'", example));
    CHECK_FALSE(holds("nesterov == 1", example));
    CHECK_FALSE(holds("hidden == 64", example));
    CHECK(holds("hidden != 64", example));
    const Configuration nan({{"x", std::nan("")}});
    CHECK_FALSE(holds("x == nan", nan));
    CHECK_FALSE(holds("x <= 1", nan));
    CHECK(holds("x != 1", nan));
}

TEST_CASE("integers and floats compare without rounding", "[space]") {
    const Configuration big({{"n", (std::int64_t{1} << 53) + 1}, {"x", 0x1p53}});
    CHECK_FALSE(holds("n == 9007199254740992.0", big));
    CHECK(holds("n > 9007199254740992.0", big));
    CHECK(holds("x < 9007199254740993", big));
    CHECK(holds("n < 1e300", big));
    CHECK(holds("n > -1e300", big));
    CHECK(holds("n < inf", big));
    const Configuration small({{"n", -2}});
    CHECK(holds("n > -2.5", small));
    CHECK(holds("n < -1.5", small));
    CHECK(holds("n == -2.0", small));
}

TEST_CASE("every comparison with an absent parameter is false, and not turns it around", "[space]") {
    for (const auto* op : {"==", "!=", "<", "<=", ">", ">="})
        CHECK_FALSE(holds(std::string("momentum ") + op + " 0.9", example));
    CHECK_FALSE(holds("momentum in [0.9]", example));
    CHECK_FALSE(holds("momentum not in [0.9]", example));
    CHECK(holds("not momentum == 0.9", example));
    CHECK(holds("momentum == 0.9 or lr == 0.5", example));
}

TEST_CASE("not binds tighter than and, and tighter than or", "[space]") {
    const Configuration c({{"a", true}, {"b", false}, {"c", true}});
    CHECK(holds("a == true or b == true and c == false", c));
    CHECK_FALSE(holds("(a == true or b == true) and c == false", c));
    CHECK(holds("not b == true and c == true", c));
    CHECK_FALSE(holds("not (a == true and c == true)", c));
    CHECK(holds("not not a == true", c));
    CHECK(holds("a==true and b==false and c==true", c));
}

TEST_CASE("names lists each parameter once, in order of appearance", "[space]") {
    const Condition condition = Condition::parse("b == 1 and (a in [2] or b > 3) and not c.d-e == 'x'");
    CHECK(condition.names() == std::vector<std::string>{"b", "a", "c.d-e"});
    CHECK(condition.text() == "b == 1 and (a in [2] or b > 3) and not c.d-e == 'x'");
}

TEST_CASE("both joins two conditions without changing what they mean", "[space]") {
    const Condition condition =
        Condition::both(Condition::parse("a == 1 or b == 1"), Condition::parse("c == 1 or d == 1"));
    CHECK(condition.text() == "(a == 1 or b == 1) and (c == 1 or d == 1)");
    CHECK(condition.holds(Configuration({{"a", 1}, {"d", 1}})));
    CHECK_FALSE(condition.holds(Configuration({{"a", 1}, {"b", 1}})));
    CHECK(condition.names() == std::vector<std::string>{"a", "b", "c", "d"});
}

TEST_CASE("a condition that cannot be read is refused with what was expected and where", "[space]") {
    CHECK(refusal("optimizer = 'sgd'") == "expected one of == != < <= > >= in, not in at column 11, found '='");
    CHECK(refusal("optimizer ==") ==
          "expected a number, a string in quotes, true or false at column 13, found the end");
    CHECK(refusal("optimizer == sgd") ==
          "expected a number, a string in quotes, true or false at column 14, found 'sgd'");
    CHECK(refusal("optimizer == 'sgd' && x == 1") == "expected 'and', 'or' or the end at column 20, found '&'");
    CHECK(refusal("'sgd' == optimizer") == "expected the name of a parameter, 'not' or '(' at column 1, found '''");
    CHECK(refusal("") == "expected the name of a parameter, 'not' or '(' at column 1, found the end");
    CHECK(refusal("and x == 1") == "expected the name of a parameter, 'not' or '(' at column 1, found 'and'");
    CHECK(refusal("(x == 1") == "expected 'and', 'or' or ')' at column 8, found the end");
    CHECK(refusal("x in 3") == "expected a list in square brackets at column 6, found '3'");
    CHECK(refusal("x in [1 2]") == "expected ',' or ']' at column 9, found '2'");
    CHECK(refusal("x in []") == "expected a number, a string in quotes, true or false at column 7, found ']'");
    CHECK(refusal("x in [[1]]") == "expected a number, a string in quotes, true or false at column 7, found '['");
    CHECK(refusal("x not 3") == "expected 'in' at column 7, found '3'");
    CHECK(refusal("name == '\xC3\xA9\xC3\xA9' x") == "expected 'and', 'or' or the end at column 14, found 'x'");
    CHECK(refusal(std::string(5000, '(')).starts_with("expected at most 64 levels"));
}

TEST_CASE("any text is either refused as a usage error or a condition that can be asked", "[space]") {
    using ranktune::base::RngStream;
    const std::vector<std::string> pieces = {
        "optimizer", "lr", "x.y", "==", "!=", "<=", ">", "in",  "not",    "and",           "or",     "(",
        ")",         "[",  "]",   ",",  "1",  "-2", "=", "'a'", "lr < 1", "x in [1, 'a']", "not lr", "'"};
    int accepted = 0;
    for (std::uint32_t i = 0; i < 30000; ++i) {
        RngStream rng(19, ranktune::base::Purpose::fault, i);
        std::string condition;
        for (std::uint64_t left = 1 + rng.below(4); left > 0; --left)
            condition += pieces[rng.below(pieces.size())] + " ";
        if (i % 2 == 0) condition = "lr < 3 and " + condition + " or lr == 1";
        try {
            const Condition parsed = Condition::parse(condition);
            INFO(condition);
            CHECK(Condition::parse("not (" + condition + ")").holds(example) != parsed.holds(example));
            ++accepted;
        } catch (const ranktune::base::UsageError& error) {
            if (std::string(error.what()).empty()) FAIL("an error without words");
        }
    }
    CHECK(accepted > 100);
}

} // namespace condition_test
