// SPDX-License-Identifier: Apache-2.0
#include "ranktune/space/condition.hpp"

#include <algorithm>
#include <cmath>
#include <compare>
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
    if (a.is_bool() && b.is_bool()) return a.as_bool() <=> b.as_bool();
    return std::partial_ordering::unordered;
}

bool equals(const Value& a, const Value& b) { return std::is_eq(compare(a, b)); }

bool satisfied(const Value& value, Operator op, const std::vector<Value>& literals) {
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

bool is_keyword(std::string_view word) {
    return word == "and" || word == "or" || word == "not" || word == "in" || word == "true" || word == "false";
}

} // namespace

struct Condition::Node {
    enum class Kind : unsigned char { any, all, negation, comparison };
    Kind kind = Kind::comparison;
    std::vector<std::shared_ptr<const Node>> children; ///< any, all: two or more; negation: one
    std::string name;                                  ///< comparison
    Operator op = Operator::equal;
    std::vector<Value> literals; ///< one, except for in and not in

    [[nodiscard]] bool holds(const LookUp& value_of) const {
        const auto child_holds = [&](const std::shared_ptr<const Node>& child) { return child->holds(value_of); };
        switch (kind) {
            case Kind::any:
                return std::any_of(children.begin(), children.end(), child_holds);
            case Kind::all:
                return std::all_of(children.begin(), children.end(), child_holds);
            case Kind::negation:
                return !children.front()->holds(value_of);
            case Kind::comparison:
                break;
        }
        const Value* const value = value_of(name);
        return value != nullptr && satisfied(*value, op, literals);
    }
};

/// Recursive descent, one function per rule of the grammar.
struct Condition::Parser {
    using Pointer = std::shared_ptr<const Node>;

    Scanner in;
    std::vector<std::string> names;
    int depth = 0;

    bool take_word(std::string_view word) {
        if (in.peek_name() != word) return false;
        (void)in.name();
        return true;
    }

    Pointer either() {
        std::vector<Pointer> parts = {both()};
        while (take_word("or")) parts.push_back(both());
        return join(Node::Kind::any, std::move(parts));
    }

    Pointer both() {
        std::vector<Pointer> parts = {unary()};
        while (take_word("and")) parts.push_back(unary());
        return join(Node::Kind::all, std::move(parts));
    }

    static Pointer join(Node::Kind kind, std::vector<Pointer> parts) {
        if (parts.size() == 1) return std::move(parts.front());
        Node node;
        node.kind = kind;
        node.children = std::move(parts);
        return std::make_shared<const Node>(std::move(node));
    }

    Pointer unary() {
        constexpr int deepest = 64; // the parser and `holds` are recursive
        if (++depth > deepest) in.fail("at most 64 levels of 'not' and brackets");
        Pointer result;
        if (take_word("not")) {
            result = join_negation(unary());
        } else if (in.take("(")) {
            result = either();
            if (!in.take(")")) in.fail("'and', 'or' or ')'");
        } else {
            result = comparison();
        }
        --depth;
        return result;
    }

    static Pointer join_negation(Pointer child) {
        Node node;
        node.kind = Node::Kind::negation;
        node.children = {std::move(child)};
        return std::make_shared<const Node>(std::move(node));
    }

    Pointer comparison() {
        const std::string_view name = in.peek_name();
        if (name.empty() || is_keyword(name)) in.fail("the name of a parameter, 'not' or '('");
        Node node;
        node.name = std::string(in.name());
        if (std::find(names.begin(), names.end(), node.name) == names.end()) names.push_back(node.name);
        node.op = comparison_operator();
        if (node.op == Operator::in || node.op == Operator::not_in) {
            node.literals = list();
        } else {
            node.literals = {in.literal(false)};
        }
        return std::make_shared<const Node>(std::move(node));
    }

    Operator comparison_operator() {
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
        in.fail("one of == != < <= > >= in, not in");
    }

    std::vector<Value> list() {
        if (!in.take("[")) in.fail("a list in square brackets");
        std::vector<Value> values = {in.literal(false)};
        while (!in.take("]")) {
            if (!in.take(",")) in.fail("',' or ']'");
            values.push_back(in.literal(false));
        }
        return values;
    }
};

Condition Condition::parse(const std::string& text) {
    Parser parser{Scanner(text), {}, 0};
    Condition condition;
    condition.root_ = parser.either();
    if (!parser.in.at_end()) parser.in.fail("'and', 'or' or the end");
    condition.names_ = std::make_shared<const std::vector<std::string>>(std::move(parser.names));
    condition.text_ = text;
    return condition;
}

bool Condition::holds(const LookUp& value_of) const { return root_->holds(value_of); }

bool Condition::holds(const Configuration& configuration) const {
    return holds([&](std::string_view name) { return configuration.find(name); });
}
const std::vector<std::string>& Condition::names() const { return *names_; }
const std::string& Condition::text() const { return text_; }

Condition Condition::both(const Condition& a, const Condition& b) {
    return parse("(" + a.text_ + ") and (" + b.text_ + ")");
}

} // namespace ranktune::space
