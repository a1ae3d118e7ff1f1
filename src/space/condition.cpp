// SPDX-License-Identifier: Apache-2.0
#include "ranktune/space/condition.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "ranktune/base/error.hpp"
#include "space/scanner.hpp"

namespace ranktune::space {
namespace {

enum class Operator : unsigned char { equal, unequal, less, less_equal, greater, greater_equal, in, not_in };

/// Integer against float without rounding the integer.
std::partial_ordering compare_mixed(std::int64_t whole, double real) {
    if (std::isnan(real)) return std::partial_ordering::unordered;
    if (real >= 0x1p63) return std::partial_ordering::less;
    if (real < -0x1p63) return std::partial_ordering::greater;
    const double truncated = std::trunc(real);
    const auto part = static_cast<std::int64_t>(truncated);
    if (whole != part) return whole <=> part;
    return truncated <=> real;
}

std::partial_ordering reversed(std::partial_ordering order) {
    if (std::is_lt(order)) return std::partial_ordering::greater;
    if (std::is_gt(order)) return std::partial_ordering::less;
    return order;
}

/// Unordered: different kinds, lists, or nan.
std::partial_ordering compare(const Value& a, const Value& b) {
    if (a.is_int() && b.is_int()) return a.as_int() <=> b.as_int();
    if (a.is_int() && b.is_double()) return compare_mixed(a.as_int(), b.as_double());
    if (a.is_double() && b.is_int()) return reversed(compare_mixed(b.as_int(), a.as_double()));
    if (a.is_double() && b.is_double()) return a.as_double() <=> b.as_double();
    if (a.is_string() && b.is_string()) return a.as_string() <=> b.as_string();
    if (a.is_none() && b.is_none()) return std::partial_ordering::equivalent;
    if (a.is_bool() && b.is_bool()) return a.as_bool() <=> b.as_bool();
    return std::partial_ordering::unordered;
}

bool equals(const Value& a, const Value& b) { return std::is_eq(compare(a, b)); }

bool satisfied(const Value& value, Operator op, std::span<const Value> literals) {
    const auto is_value = [&](const Value& literal) { return equals(value, literal); };
    const std::partial_ordering order = compare(value, literals.front());
    switch (op) {
        case Operator::equal:
            return std::is_eq(order);
        case Operator::unequal:
            return std::is_neq(order);
        case Operator::less:
            return std::is_lt(order);
        case Operator::less_equal:
            return std::is_lteq(order);
        case Operator::greater:
            return std::is_gt(order);
        case Operator::greater_equal:
            return std::is_gteq(order);
        case Operator::in:
            return std::any_of(literals.begin(), literals.end(), is_value);
        case Operator::not_in:
            return std::none_of(literals.begin(), literals.end(), is_value);
    }
    return false;
}

bool is_keyword(std::string_view word) { return word == "and" || word == "or" || word == "not" || word == "in"; }

bool is_literal_word(std::string_view word) {
    return word == "true" || word == "false" || word == "True" || word == "False" || word == "None";
}

/// What a name followed by a bracket means, and the operators, whose names cannot be written so.
struct Operation {
    std::string_view name;
    std::size_t least; ///< operands
    std::size_t most;
    double (*of)(std::span<const double> operands);
};

constexpr std::size_t most_operands = 8;

double remainder_of(double a, double b) {
    const double rest = std::fmod(a, b);
    return rest != 0.0 && (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}

using Numbers = std::span<const double>;
constexpr std::array<Operation, 16> operations = {{
    {"+", 2, 2, [](Numbers x) { return x[0] + x[1]; }},
    {"-", 2, 2, [](Numbers x) { return x[0] - x[1]; }},
    {"*", 2, 2, [](Numbers x) { return x[0] * x[1]; }},
    {"/", 2, 2, [](Numbers x) { return x[0] / x[1]; }},
    {"%", 2, 2, [](Numbers x) { return remainder_of(x[0], x[1]); }},
    {"**", 2, 2, [](Numbers x) { return std::pow(x[0], x[1]); }},
    {"abs", 1, 1, [](Numbers x) { return std::abs(x[0]); }},
    {"min", 2, most_operands, [](Numbers x) { return *std::ranges::min_element(x); }},
    {"max", 2, most_operands, [](Numbers x) { return *std::ranges::max_element(x); }},
    {"floor", 1, 1, [](Numbers x) { return std::floor(x[0]); }},
    {"ceil", 1, 1, [](Numbers x) { return std::ceil(x[0]); }},
    {"sqrt", 1, 1, [](Numbers x) { return std::sqrt(x[0]); }},
    {"exp", 1, 1, [](Numbers x) { return std::exp(x[0]); }},
    {"log", 1, 1, [](Numbers x) { return std::log(x[0]); }},
    {"log2", 1, 1, [](Numbers x) { return std::log2(x[0]); }},
    {"log10", 1, 1, [](Numbers x) { return std::log10(x[0]); }},
}};

/// Null: there is none of this name.
const Operation* operation_called(std::string_view name) {
    const auto found = std::ranges::find(operations, name, &Operation::name);
    return found == operations.end() ? nullptr : &*found;
}

/// How far two numbers are from the order that is asked for.
double relative_difference(const Value& a, const Value& b) {
    if (!a.is_number() || !b.is_number()) return 1.0;
    const double difference = std::abs(a.as_double() - b.as_double());
    const double relative = difference / (1.0 + std::abs(a.as_double()) + std::abs(b.as_double()));
    return std::isfinite(relative) ? std::max(relative, std::numeric_limits<double>::min()) : 1.0;
}

} // namespace

struct Condition::Node {
    /// Of names(), one for each; null: absent.
    using Values = std::span<const Value* const>;

    enum class Kind : unsigned char { any, all, negation, comparison, name, literal, arithmetic };
    Kind kind = Kind::comparison;
    /// any, all: two or more; negation: one; comparison: its left side and, but for in and not in, its right one;
    /// arithmetic: the operands.
    std::vector<std::shared_ptr<const Node>> children;
    std::string name;     ///< name
    std::size_t slot = 0; ///< of the name, in names()
    Operator op = Operator::equal;
    std::vector<Value> literals;          ///< literal: one; comparison: the list of in and not in
    const Operation* operation = nullptr; ///< arithmetic

    /// Whether it is true or false; otherwise it has a value.
    [[nodiscard]] bool is_condition() const {
        return kind == Kind::any || kind == Kind::all || kind == Kind::negation || kind == Kind::comparison;
    }

    /// Null: absent, or no number. `room` is for what is computed.
    [[nodiscard]] const Value* value(Values values, Value& room) const {
        if (kind == Kind::name) return values[slot];
        if (kind == Kind::literal) return &literals.front();
        std::array<double, most_operands> operands{};
        for (std::size_t i = 0; i < children.size(); ++i) {
            Value own;
            const Value* const operand = children[i]->value(values, own);
            if (operand == nullptr || !operand->is_number()) return nullptr;
            operands.at(i) = operand->as_double();
        }
        const double result = operation->of(Numbers(operands).first(children.size()));
        if (std::isnan(result)) return nullptr;
        room = result;
        return &room;
    }

    [[nodiscard]] bool compares(Values values) const {
        Value left_room;
        Value right_room;
        const Value* const left = children[0]->value(values, left_room);
        if (left == nullptr) return false;
        if (children.size() == 1) return satisfied(*left, op, literals);
        const Value* const right = children[1]->value(values, right_room);
        if (right == nullptr) return false;
        if (op != Operator::in && op != Operator::not_in) return satisfied(*left, op, std::span(right, 1));
        return right->is_list() && !right->as_list().empty() ? satisfied(*left, op, right->as_list())
                                                             : op == Operator::not_in;
    }

    [[nodiscard]] bool holds(Values values) const {
        const auto child_holds = [&](const std::shared_ptr<const Node>& child) { return child->holds(values); };
        switch (kind) {
            case Kind::any:
                return std::any_of(children.begin(), children.end(), child_holds);
            case Kind::all:
                return std::all_of(children.begin(), children.end(), child_holds);
            case Kind::negation:
                return !children.front()->holds(values);
            default:
                return compares(values);
        }
    }

    /// Arithmetic alone: every operation is monotone in each operand, so that its extremes lie at corners.
    [[nodiscard]] Range range(const RangeOf& range_of) const {
        if (kind == Kind::name) return range_of(name);
        if (kind == Kind::literal) return {literals.front().as_double(), literals.front().as_double()};
        std::vector<Range> parts;
        for (const auto& child : children) parts.push_back(child->range(range_of));
        const std::string_view what = operation->name;
        const bool turns = what == "abs" || what == "%" ||
                           (what == "/" && parts[1].low <= 0.0 && parts[1].high >= 0.0) ||
                           (what == "**" && parts[0].low < 0.0);
        if (turns)
            throw base::UsageError("a bound cannot be computed with '" + std::string(what) +
                                   "' here; write the bound as a number, and the rest as a rule: require = \"...\"");
        Range range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
        for (std::size_t corner = 0; corner < std::size_t{1} << parts.size(); ++corner) {
            std::array<double, most_operands> operands{};
            for (std::size_t i = 0; i < parts.size(); ++i)
                operands.at(i) = (corner >> i) % 2 == 0 ? parts[i].low : parts[i].high;
            const double value = operation->of(Numbers(operands).first(parts.size()));
            if (!std::isfinite(value)) throw base::UsageError("a bound that is not always a finite number");
            range = {std::min(range.low, value), std::max(range.high, value)};
        }
        return range;
    }

    [[nodiscard]] double distance(Values values, bool wanted) const {
        if (kind == Kind::negation) return children.front()->distance(values, !wanted);
        if (kind == Kind::comparison) {
            if (compares(values) == wanted) return 0.0;
            Value left_room;
            Value right_room;
            const Value* const left = children[0]->value(values, left_room);
            const Value* const right = children.size() == 1 ? nullptr : children[1]->value(values, right_room);
            return left == nullptr || right == nullptr ? 1.0 : relative_difference(*left, *right);
        }
        const bool sum = (kind == Kind::all) == wanted;
        double all = sum ? 0.0 : std::numeric_limits<double>::infinity();
        for (const auto& child : children) {
            const double own = child->distance(values, wanted);
            all = sum ? all + own : std::min(all, own);
        }
        return all;
    }
};

/// Recursive descent, one function per rule of the grammar.
struct Condition::Parser {
    using Pointer = std::shared_ptr<const Node>;

    Scanner in;
    std::vector<std::string> names = {};
    std::vector<std::string> numbers = {};
    const Filter* filter = nullptr; ///< null: the text is that of a condition
    int depth = 0;

    static constexpr std::string_view comparisons = "one of == != < <= > >= in, not in";

    bool take_word(std::string_view word) {
        if (in.peek_name() != word) return false;
        (void)in.name();
        return true;
    }

    static void add(std::vector<std::string>& to, const std::string& name) {
        if (std::ranges::find(to, name) == to.end()) to.push_back(name);
    }

    Pointer whole() {
        Pointer root = either();
        if (!root->is_condition()) in.fail(comparisons);
        if (!in.at_end()) in.fail("'and', 'or' or the end");
        return root;
    }

    Pointer either() { return joined("or", Node::Kind::any, &Parser::both); }
    Pointer both() { return joined("and", Node::Kind::all, &Parser::unary); }

    Pointer joined(std::string_view word, Node::Kind kind, Pointer (Parser::*part)()) {
        std::vector<Pointer> parts = {(this->*part)()};
        while (in.peek_name() == word) {
            if (!parts.back()->is_condition()) in.fail(comparisons);
            (void)in.name();
            parts.push_back((this->*part)());
        }
        if (parts.size() == 1) return std::move(parts.front());
        if (!parts.back()->is_condition()) in.fail(comparisons);
        Node node;
        node.kind = kind;
        node.children = std::move(parts);
        return std::make_shared<const Node>(std::move(node));
    }

    void descend() {
        constexpr int deepest = 64; // the parser and `holds` are recursive
        if (++depth > deepest) in.fail("at most 64 levels of 'not' and brackets");
    }

    Pointer unary() {
        if (!take_word("not")) return comparison();
        descend();
        Node node;
        node.kind = Node::Kind::negation;
        node.children = {unary()};
        --depth;
        if (!node.children.front()->is_condition()) in.fail(comparisons);
        return std::make_shared<const Node>(std::move(node));
    }

    /// A comparison, or, in brackets of arithmetic, a sum alone.
    Pointer comparison() {
        Pointer left = sum("the name of a parameter, 'not' or '('");
        if (left->is_condition()) return left;
        const auto op = comparison_operator();
        if (!op) return left;
        Node node;
        node.op = *op;
        node.children = {std::move(left)};
        if (node.op != Operator::in && node.op != Operator::not_in)
            node.children.push_back(number_or_value(*node.children.front()));
        else if (in.sees("[") || !begins_name(in))
            node.literals = list(*node.children.front());
        else
            node.children.push_back(operand("a list in square brackets, or the name of one"));
        return std::make_shared<const Node>(std::move(node));
    }

    Pointer number_or_value(const Node& left) {
        if (begins_word()) return literal(value(left));
        const std::size_t column = in.column();
        Pointer right = sum("a value or the name of a parameter");
        if (right->is_condition()) in.fail("'and' or 'or'");
        if (right->kind == Node::Kind::literal) tell_word(left, right->literals.front(), column);
        return right;
    }

    /// Whether a name comes next that is a string, because a filter has no names on the right.
    bool begins_word() {
        const std::string_view word = in.peek_name();
        return filter != nullptr && begins_name(in) && !is_keyword(word) && !is_literal_word(word);
    }

    /// A literal, or in a filter a word, that `left` is compared with.
    Value value(const Node& left) {
        const std::size_t column = in.column();
        Value found = begins_word() ? Value(std::string(in.name())) : in.literal(false);
        tell_word(left, found, column);
        return found;
    }

    void tell_word(const Node& left, const Value& value, std::size_t column) const {
        if (filter != nullptr && left.kind == Node::Kind::name && value.is_string())
            filter->on_word(left.name, value.as_string(), column);
    }

    std::optional<Operator> comparison_operator() {
        if (take_word("in")) return Operator::in;
        if (take_word("not")) {
            if (!take_word("in")) in.fail("'in'");
            return Operator::not_in;
        }
        if (in.take("==")) return Operator::equal;
        if (in.take("!=")) return Operator::unequal;
        if (in.take("<=")) return Operator::less_equal;
        if (in.take(">=")) return Operator::greater_equal;
        if (in.take("<")) return Operator::less;
        if (in.take(">")) return Operator::greater;
        return std::nullopt;
    }

    /// `expected`: said of what can be no beginning of it.
    Pointer sum(std::string_view expected) {
        Pointer left = product(expected);
        while (!left->is_condition()) {
            const std::string_view sign = in.sees("+") ? "+" : in.sees("-") ? "-" : "";
            if (sign.empty()) break;
            (void)in.take(sign);
            left = arithmetic(sign, {left, product("a number or the name of a parameter")});
        }
        return left;
    }

    Pointer product(std::string_view expected) {
        Pointer left = power(expected);
        while (!left->is_condition()) {
            const std::string_view sign = in.sees("*") ? "*" : in.sees("/") ? "/" : in.sees("%") ? "%" : "";
            if (sign.empty()) break;
            (void)in.take(sign);
            left = arithmetic(sign, {left, power("a number or the name of a parameter")});
        }
        return left;
    }

    Pointer power(std::string_view expected) {
        descend();
        Pointer result;
        if (Scanner ahead = in; ahead.take("-") && (ahead.sees("(") || ahead.sees("-") || begins_name(ahead))) {
            in = ahead;
            result = arithmetic("-", {literal(0), power("a number or the name of a parameter")});
        } else {
            result = operand(expected);
            if (!result->is_condition() && in.take("**"))
                result = arithmetic("**", {result, power("a number or the name of a parameter")});
        }
        --depth;
        return result;
    }

    static bool begins_name(Scanner& in) {
        const std::string_view word = in.peek_name();
        return !word.empty() && word != "inf" && word != "nan";
    }

    Pointer operand(std::string_view expected) {
        if (in.take("(")) {
            Pointer inner = either();
            if (!in.take(")")) in.fail("'and', 'or' or ')'");
            return inner;
        }
        if (!begins_name(in)) {
            if (in.sees("'") || in.sees("\"") || starts_number()) return literal(in.literal(false));
            in.fail(expected);
        }
        const std::string_view word = in.peek_name();
        if (is_literal_word(word)) return literal(in.literal(false));
        if (is_keyword(word)) in.fail(expected);
        const std::size_t column = in.column();
        Node node;
        node.kind = Node::Kind::name;
        node.name = std::string(in.name());
        if (const Operation* const function = operation_called(node.name); function != nullptr && in.take("("))
            return called(*function);
        if (filter != nullptr) filter->on_name(node.name, column);
        add(names, node.name);
        node.slot = static_cast<std::size_t>(std::ranges::find(names, node.name) - names.begin());
        return std::make_shared<const Node>(std::move(node));
    }

    bool starts_number() {
        for (const std::string_view first :
             {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "+", "-", ".", "inf", "nan"})
            if (in.sees(first)) return true;
        return false;
    }

    Pointer called(const Operation& function) {
        std::vector<Pointer> operands = {sum("a number or the name of a parameter")};
        while (operands.size() < function.most && in.take(","))
            operands.push_back(sum("a number or the name of a parameter"));
        if (operands.size() < function.least) in.fail("',' and another number");
        if (!in.take(")")) in.fail("')'");
        return arithmetic(function.name, std::move(operands));
    }

    static Pointer literal(Value value) {
        Node node;
        node.kind = Node::Kind::literal;
        node.literals = {std::move(value)};
        return std::make_shared<const Node>(std::move(node));
    }

    Pointer arithmetic(std::string_view name, std::vector<Pointer> operands) {
        Node node;
        node.kind = Node::Kind::arithmetic;
        node.operation = operation_called(name);
        for (const Pointer& each : operands) {
            if (each->is_condition() || (each->kind == Node::Kind::literal && !each->literals.front().is_number()))
                in.fail("numbers on both sides of the arithmetic before");
            if (each->kind == Node::Kind::name) add(numbers, each->name);
        }
        node.children = std::move(operands);
        return std::make_shared<const Node>(std::move(node));
    }

    std::vector<Value> list(const Node& left) {
        if (!in.take("[")) in.fail("a list in square brackets");
        std::vector<Value> values = {value(left)};
        while (!in.take("]")) {
            if (!in.take(",")) in.fail("',' or ']'");
            values.push_back(value(left));
        }
        return values;
    }
};

Condition Condition::parse(const std::string& text) { return parsed({Scanner(text)}, text); }

Condition Condition::parse_filter(const std::string& text, const Filter& filter) {
    return parsed({Scanner(text, "/:@"), {}, {}, &filter}, text);
}

Condition Condition::parsed(Parser parser, const std::string& text) {
    Condition condition;
    condition.root_ = parser.whole();
    condition.names_ = std::make_shared<const std::vector<std::string>>(std::move(parser.names));
    condition.numbers_ = std::make_shared<const std::vector<std::string>>(std::move(parser.numbers));
    condition.text_ = text;
    return condition;
}

Condition::Range Condition::range(const std::string& sum, const RangeOf& range_of) {
    Parser parser{Scanner(sum)};
    const auto root = parser.sum("a number or the name of a parameter");
    if (root->is_condition() || (root->kind == Node::Kind::literal && !root->literals.front().is_number()))
        throw base::UsageError("a bound needs a number");
    if (!parser.in.at_end()) parser.in.fail("',' or ')'");
    return root->range(range_of);
}

bool Condition::holds(std::span<const Value* const> values) const { return root_->holds(values); }

bool Condition::holds(const LookUp& value_of) const {
    std::vector<const Value*> values;
    values.reserve(names_->size());
    for (const std::string& name : *names_) values.push_back(value_of(name));
    return root_->holds(values);
}

bool Condition::holds(const Configuration& configuration) const {
    return holds([&](std::string_view name) { return configuration.find(name); });
}

double Condition::distance(std::span<const Value* const> values, bool wanted) const {
    return root_->distance(values, wanted);
}

const std::vector<std::string>& Condition::names() const { return *names_; }
const std::vector<std::string>& Condition::numbers() const { return *numbers_; }
const std::string& Condition::text() const { return text_; }

Condition Condition::both(const Condition& a, const Condition& b) {
    return parse("(" + a.text_ + ") and (" + b.text_ + ")");
}

} // namespace ranktune::space
