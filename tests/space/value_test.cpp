// SPDX-License-Identifier: Apache-2.0
#include "ranktune/space/value.hpp"

#include <charconv>
#include <limits>

#include "ranktune/base/error.hpp"
#include "ranktune/space/configuration.hpp"
#include "support/catch.hpp"

namespace value_test {

using namespace ranktune::space;
using ranktune::base::UsageError;

namespace {
double read_back(const std::string& text) {
    double value = 0.0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}
} // namespace

TEST_CASE("float_text is the shortest text that reads back, and never looks like an integer", "[space]") {
    CHECK(float_text(1.0) == "1.0");
    CHECK(float_text(-0.5) == "-0.5");
    CHECK(float_text(0.1) == "0.1");
    CHECK(float_text(0.0001) == "0.0001");
    CHECK(float_text(0.00001) == "1e-05");
    CHECK(float_text(3.2e-5) == "3.2e-05");
    CHECK(float_text(1e15) == "1000000000000000.0");
    CHECK(float_text(1e16) == "1e+16");
    CHECK(float_text(0.0) == "0.0");
    CHECK(float_text(std::numeric_limits<double>::infinity()) == "inf");
    CHECK(float_text(-std::numeric_limits<double>::infinity()) == "-inf");
    CHECK(float_text(std::nan("")) == "nan");
    for (double x : {0.1 + 0.2, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, 123456789.123456789, -2.5e-7})
        CHECK(read_back(float_text(x)) == x);
}

TEST_CASE("Value prints strings bare in text and quoted in literals", "[space]") {
    const Value list(Value::List{128, 0.5, "adam", true, Value::List{1, 2}});
    CHECK(list.text() == "[128,0.5,adam,true,[1,2]]");
    CHECK(list.literal() == "[128, 0.5, 'adam', true, [1, 2]]");
    CHECK(Value("it's").literal() == "\"it's\"");
    CHECK(Value("a\\b").literal() == "'a\\b'");
    const Value unseen("\u202e\u200b\U000e0001\x7f");
    CHECK(unseen.literal() == "\"\\u202e\\u200b\\U000e0001\\u007f\"");
    CHECK(std::get<Choice>(parse_domain("choice([" + unseen.literal() + ", '\u00fc'])")).values.front() == unseen);
    CHECK(Value("it's \"so\"\n\t\\\x01").literal() == "\"it's \\\"so\\\"\\n\\t\\\\\\u0001\"");
    CHECK(Value(std::numeric_limits<std::int64_t>::min()).text() == "-9223372036854775808");
}

TEST_CASE("Value accessors are exact and name both kinds when they refuse", "[space]") {
    CHECK(Value(3).as_int() == 3);
    CHECK(Value(3).as_double() == 3.0);
    CHECK_THROWS_AS(Value(3.0).as_int(), UsageError);
    CHECK_THROWS_AS(Value(true).as_double(), UsageError);
    CHECK_THROWS_AS(Value("x").as_list(), UsageError);
    CHECK_THROWS_AS(Value(1).as_bool(), UsageError);
    try {
        (void)Value(2.5).as_string();
        FAIL("no exception");
    } catch (const UsageError& error) {
        CHECK(std::string(error.what()) == "wanted a string, got the float 2.5");
    }
    CHECK(Value(1) != Value(1.0));
    CHECK(Value(1) != Value(true));
}

TEST_CASE("A value that is assigned leaves its copies as they were", "[space]") {
    Value text("sgd");
    Value list(Value::List{1, "a"});
    const Value copy_of_text = text;
    const Value copy_of_list = list;
    CHECK(copy_of_text == Value("sgd"));
    CHECK(copy_of_list == Value(Value::List{1, "a"}));
    text = "adam";
    list = Value::List{2};
    CHECK(copy_of_text.as_string() == "sgd");
    CHECK(copy_of_list.text() == "[1,a]");
    CHECK(text != copy_of_text);
    CHECK(Value(Value::List{1, "a"}) != Value(Value::List{1, "b"}));
}

TEST_CASE("Copies of a value share its string, and a value that was moved from is false", "[space]") {
    STATIC_REQUIRE(sizeof(Value) == 16);
    for (const Value& value : {Value("a string that needs memory of its own"), Value(Value::List{1, "two"})}) {
        Value copy = value;
        const auto place = [](const Value& of) -> const void* {
            return of.is_string() ? static_cast<const void*>(&of.as_string()) : &of.as_list();
        };
        CHECK(place(copy) == place(value));
        Value moved = std::move(copy);
        CHECK(place(moved) == place(value));
        CHECK(copy == Value(false)); // NOLINT(bugprone-use-after-move): what this case is about
        moved = 0.5;
        CHECK(moved == Value(0.5));
        moved = value;
        Value& itself = moved;
        moved = std::move(itself);
        CHECK(moved == value);
    }
    CHECK_FALSE(Value(1) == Value(1.0));
    CHECK(Value::none() == Value::none());
    CHECK_FALSE(Value::none() == Value(false));
}

TEST_CASE("Configuration keeps its order, replaces in place and names what it has", "[space]") {
    Configuration configuration;
    configuration.set("lr", 0.1);
    configuration.set("batch_size", 32);
    configuration.set("lr", 0.03125);
    CHECK(configuration.text() == "lr=0.03125 batch_size=32");
    CHECK(configuration.at("batch_size").as_int() == 32);
    CHECK(configuration.find("momentum") == nullptr);
    try {
        (void)configuration.at("momentum");
        FAIL("no exception");
    } catch (const UsageError& error) {
        CHECK(std::string(error.what()) == "the configuration has no parameter 'momentum'; it has lr, batch_size");
    }
    CHECK_THROWS_AS(Configuration().at("lr"), UsageError);
}

} // namespace value_test
