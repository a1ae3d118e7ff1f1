// SPDX-License-Identifier: Apache-2.0
#include "ranktune/space/condition.hpp"

#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace condition_test {

using namespace ranktune::space;

namespace {

bool holds(const std::string& condition, const Configuration& configuration) {
    return Condition::parse(condition).holds(configuration);
}

std::string refusal(const std::string& condition) {
    return ranktune::testing::error_of<ranktune::base::UsageError>([&] { return Condition::parse(condition); });
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

TEST_CASE("numbers are computed with the usual precedence", "[space]") {
    const Configuration c({{"a", 6}, {"b", 4.0}, {"c", -7}, {"net-size", 10}});
    for (const char* text : {"a + b * 2 == 14",
                             "(a + b) * 2 == 20",
                             "a - b - 1 == 1",
                             "a / b == 1.5",
                             "2 ** 3 ** 2 == 512",
                             "-a ** 2 == -36",
                             "c % 4 == 1",
                             "a %4== 2",
                             "-c == 7",
                             "- (a - b) == -2",
                             "abs(c) == 7",
                             "min(a, b, c) == c",
                             "max(a, b) == a",
                             "floor(a / b) + ceil(a / b) == 3",
                             "sqrt(b) == log2(b)",
                             "log10(100) == 2",
                             "log(exp(a)) < 6.5",
                             "a < net-size",
                             "net-size - a == b",
                             "3 < a and a < 10",
                             "a in [6, 7]",
                             "a + 1 in [7]",
                             "'x' == 'x'"}) {
        INFO(text);
        CHECK(holds(text, c));
    }
    const Condition condition = Condition::parse("a * b <= 4096 or c == 'x'");
    CHECK(condition.numbers() == std::vector<std::string>{"a", "b"});
    CHECK(condition.names() == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("arithmetic on what is absent or no number makes a comparison false", "[space]") {
    const Configuration c({{"kind", "sgd"}, {"x", 1}, {"none", Value::none()}});
    for (const char* text : {"kind + 1 > 0", "missing * 2 < 5", "0 / 0 == 0", "log(-1) < 3", "x + missing != 3"}) {
        INFO(text);
        CHECK_FALSE(holds(text, c));
        CHECK(holds(std::string("not (") + text + ")", c));
    }
    CHECK(holds("1 / 0 > 5", c)); // infinite
}

TEST_CASE("None equals None alone", "[space]") {
    const Configuration c({{"clip", Value::none()}, {"x", 1}});
    CHECK(holds("clip == None", c));
    CHECK(holds("clip in [None, 3]", c));
    CHECK(holds("clip != 0", c));
    CHECK_FALSE(holds("x == None", c));
    CHECK_FALSE(holds("clip < 1", c));
}

TEST_CASE("the distance of a condition is 0 where it is as wanted, and falls on the way there", "[space]") {
    const auto distance = [](const std::string& text, double x, bool wanted = true) {
        const Configuration c({{"x", x}, {"kind", "a"}});
        const Condition condition = Condition::parse(text);
        std::vector<const Value*> values;
        for (const std::string& name : condition.names()) values.push_back(c.find(name));
        return condition.distance(values, wanted);
    };
    CHECK(distance("x < 1", 0.5) == 0.0);
    CHECK(distance("x < 1", 1.0) > 0.0);
    CHECK(distance("x < 1", 3.0) > distance("x < 1", 2.0));
    CHECK(distance("not x < 1", 0.5) > 0.0);
    CHECK(distance("x < 1", 0.5, false) > 0.0);
    CHECK(distance("x < 1 and x < 2", 5.0) > distance("x < 1 and x < 2", 1.5));
    CHECK(distance("x < 1 or x < 2", 5.0) == distance("x < 2", 5.0));
    CHECK(distance("x < 1 or x < 2", 1.5) == 0.0);
    CHECK(distance("kind == 'b'", 1.0) == 1.0);
    CHECK(distance("x / 0 < 1", 5.0) == 1.0);
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
    CHECK(refusal("optimizer ==") == "expected a value or the name of a parameter at column 13, found the end");
    CHECK(refusal("optimizer == 'sgd' && x == 1") == "expected 'and', 'or' or the end at column 20, found '&'");
    CHECK(refusal("") == "expected the name of a parameter, 'not' or '(' at column 1, found the end");
    CHECK(refusal("and x == 1") == "expected the name of a parameter, 'not' or '(' at column 1, found 'and'");
    CHECK(refusal("(x == 1") == "expected 'and', 'or' or ')' at column 8, found the end");
    CHECK(refusal("x in 3") == "expected a list in square brackets at column 6, found '3'");
    CHECK(refusal("x in [1 2]") == "expected ',' or ']' at column 9, found '2'");
    CHECK(refusal("x in []") == "expected a number, a string in quotes, true, false or None at column 7, found ']'");
    CHECK(refusal("x in [[1]]") == "expected a number, a string in quotes, true, false or None at column 7, found '['");
    CHECK(refusal("x not 3") == "expected 'in' at column 7, found '3'");
    CHECK(refusal("name == '\xC3\xA9\xC3\xA9' x") == "expected 'and', 'or' or the end at column 14, found 'x'");
    CHECK(refusal(std::string(5000, '(')).starts_with("expected at most 64 levels"));
    std::string minuses = "x < ";
    for (int i = 0; i < 5000; ++i) minuses += "- ";
    CHECK(refusal(minuses + "1").starts_with("expected at most 64 levels"));
    CHECK(refusal("x + 1") == "expected one of == != < <= > >= in, not in at column 6, found the end");
    CHECK(refusal("x + == 1") == "expected a number or the name of a parameter at column 5, found '='");
    CHECK(refusal("x + 'a' == 1") == "expected numbers on both sides of the arithmetic before at column 9, found '='");
    CHECK(refusal("(x == 1) + 2 == 3") == "expected 'and', 'or' or the end at column 10, found '+'");
    CHECK(refusal("min(x) < 1") == "expected ',' and another number at column 6, found ')'");
    CHECK(refusal("abs(x, 2) < 1") == "expected ')' at column 6, found ','");
    CHECK(refusal("1 < x < 2") == "expected 'and', 'or' or the end at column 7, found '<'");
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
