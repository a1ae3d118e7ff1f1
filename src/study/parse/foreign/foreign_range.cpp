// SPDX-License-Identifier: Apache-2.0
#include "study/parse/foreign/foreign_range.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/joined.hpp"
#include "base/number_in.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/space/condition.hpp"
#include "ranktune/space/domain.hpp"
#include "study/options.hpp"

namespace ranktune::study {
namespace {

using View = std::string_view;

/// What a member of a range says.
enum class Role : std::uint8_t {
    lower,
    upper,
    first,  ///< a lower bound where more speaks for a range
    second, ///< likewise an upper bound
    bounds,
    values,
    list,
    value,
    kind,
    step,
    log,
    base,
    mean,
    sd,
    inside,
    rest
};

/// Names of members in small letters, without '_' and '-', each between blanks.
struct RangeWords {
    Role role;
    View words;
};
constexpr RangeWords range_words[] = {
    {Role::lower, " min low lower lo minimum minval minvalue lowerbound lb "},
    {Role::upper, " max high upper hi maximum maxval maxvalue upperbound ub "},
    {Role::first, " start begin from a "},
    {Role::second, " stop end to b "},
    {Role::bounds, " bounds range interval limits "},
    {Role::values, " values choices categories vals candidates gridsearch feasiblepoints options tune "},
    {Role::list, " list sequence items levels "},
    {Role::value, " value params args arguments "},
    {Role::kind,
     " type distribution dist kind parametertype valuetype dtype prior space sampler samplercls domaincls classname "
     "scale scaling scaletype scalingtype sampling "},
    {Role::step, " step stepsize q quantum quantization quantizationfactor "},
    {Role::log, " log logscale islog "},
    {Role::base, " base "},
    {Role::mean, " mu mean loc "},
    {Role::sd, " sigma sd std stddev "},
    {Role::inside,
     " attributes config domainkwargs samplerkwargs feasiblespace doublevaluespec integervaluespec "
     "categoricalvaluespec discretevaluespec "},
    {Role::rest,
     " name parameterid id default defaultvalue init initial targettype digits ordered isordered weights probabilities "
     "description comment note unit count num conditions condition "},
};

bool names(View text, View piece) { return text.find(piece) != View::npos; }

std::optional<Role> role_of(View member) {
    const std::string word = " " + plain_word(member) + " ";
    const auto found =
        std::ranges::find_if(range_words, [&](const RangeWords& each) { return each.words.find(word) != View::npos; });
    return found == std::end(range_words) ? std::nullopt : std::optional(found->role);
}

bool is_normal(View kind) { return names(kind, "norm") || names(kind, "gauss") || names(kind, "randn"); }

/// Whether a type or distribution is named: "float", "UNIT_LOG_SCALE".
bool is_kind(View kind) {
    constexpr View words[] = {"auto",   "float", "double",   "real",  "int",         "integer",   "numeric",
                              "range",  "fixed", "constant", "const", "discrete",    "ordinal",   "grid",
                              "linear", "bool",  "boolean",  "beta",  "finiterange", "continuous"};
    return is_distribution(kind) || names(kind, "normal") || names(kind, "log") ||
           std::ranges::find(words, kind) != std::end(words);
}

std::optional<double> number_of(const Node& node) {
    if (node.is(Node::Kind::integer)) return static_cast<double>(node.integer);
    if (node.is(Node::Kind::real)) return node.real;
    if (!node.is(Node::Kind::string)) return std::nullopt;
    return base::number_in<double>(node.text); // Katib and SageMaker write numbers as strings
}

bool is_whole_number(const Node& node) {
    return node.is(Node::Kind::integer) ||
           (node.is(Node::Kind::string) && node.text.find_first_not_of("+-0123456789") == std::string::npos);
}

/// What the members of a table say together.
struct RangeParts {
    const Node* lower = nullptr;
    const Node* upper = nullptr;
    const Node* values = nullptr; ///< a list
    const Node* value = nullptr;
    const Node* step = nullptr;
    const Node* base = nullptr;
    const Node* mean = nullptr;
    const Node* sd = nullptr;
    const Node* condition = nullptr;
    std::string name; ///< given by a member
    std::string kind; ///< plain_word(), of all members that name one
    bool of_exponents = false;
    bool log = false;
    bool known_kind = false;
    bool certain = false;    ///< a name or a distribution that leaves no doubt
    int named_bounds = 0;    ///< as `min` and `max`, not as `start` and `end`
    bool all_known = true;   ///< there is no other member
    bool by_letters = false; ///< bounds called `a` and `b`
};

/// Reads a pair as the bounds; a third number is a step.
bool take_bounds(const Node& list, RangeParts& parts) {
    if (!list.is(Node::Kind::array) || list.items.size() < 2 || list.items.size() > 3) return false;
    if (!std::ranges::all_of(list.items, [](const Node& item) { return number_of(item).has_value(); })) return false;
    parts.lower = &list.items[0];
    parts.upper = &list.items[1];
    if (list.items.size() == 3) parts.step = &list.items[2];
    return true;
}

/// Returns whether it is one.
bool take_kind(const Member& member, RangeParts& parts) {
    const Node& node = member.value;
    if (!node.is(Node::Kind::string)) return false;
    const std::string kind = plain_word(node.text);
    parts.known_kind = parts.known_kind || is_kind(kind);
    parts.certain = parts.certain || is_distribution(kind);
    parts.kind += kind;
    // W&B's log_uniform and Determined's log have bounds of the exponent.
    const bool of_exponents = node.text == "log_uniform" || node.text == "q_log_uniform" ||
                              (kind == "log" && plain_word(member.key) == "type");
    parts.of_exponents = parts.of_exponents || of_exponents;
    return is_kind(kind);
}

/// The kind that a member's name gives: { uniform = [0, 1] }, { suggest_float = [0.1, 1] }, { choice = ["a", "b"] }.
std::string kind_called(View member) {
    std::string word = plain_word(member);
    if (word.starts_with("suggest")) word.erase(0, View("suggest").size());
    const bool of_numbers = word == "float" || word == "int" || word == "integer" || word == "double";
    return of_numbers || is_distribution(word) ? word : "";
}

bool take_call(const Member& member, RangeParts& parts) {
    const std::string kind = kind_called(member.key);
    if (kind.empty() || !member.value.is(Node::Kind::array)) return false;
    if (names(kind, "choice") || names(kind, "categorical"))
        parts.values = &member.value;
    else if (is_normal(kind))
        parts.value = &member.value;
    else if (!take_bounds(member.value, parts))
        return false;
    parts.kind += kind;
    parts.known_kind = parts.certain = true;
    return true;
}

void collect_parts(const Node& table, RangeParts& parts);

/// Points `to` at the node if that is a number, written as a text or not.
bool take_number(const Node& node, const Node*& to) {
    if (!number_of(node)) return false;
    to = &node;
    return true;
}

bool take_list(const Node& node, RangeParts& parts) {
    if (!node.is(Node::Kind::array)) return false;
    parts.values = &node;
    return true;
}

bool take_table(const Node& node, RangeParts& parts) {
    if (!node.is(Node::Kind::table)) return false;
    collect_parts(node, parts);
    return true;
}

bool take_rest(const Member& member, RangeParts& parts) {
    const Node& node = member.value;
    const std::string word = plain_word(member.key);
    if (word == "condition") parts.condition = &node;
    if ((word != "name" && word != "parameterid") || !node.is(Node::Kind::string)) return true;
    if (is_kind(plain_word(node.text))) return take_kind(member, parts); // Optuna: name = "FloatDistribution"
    parts.name = node.text;
    return true;
}

/// Notes what the member says of a range; false: nothing.
bool take_member(const Member& member, RangeParts& parts) {
    if (take_call(member, parts)) return true;
    const auto role = role_of(member.key);
    if (!role) return false;
    const Node& node = member.value;
    const auto certain = [&](bool taken) {
        parts.certain = parts.certain || taken;
        return taken;
    };
    switch (*role) {
        case Role::lower:
        case Role::upper:
            ++parts.named_bounds;
            return take_number(node, *role == Role::lower ? parts.lower : parts.upper);
        case Role::first:
        case Role::second:
            parts.by_letters = parts.by_letters || member.key.size() == 1;
            return take_number(node, *role == Role::first ? parts.lower : parts.upper);
        case Role::bounds:
            return certain(take_bounds(node, parts));
        case Role::values:
            return certain(take_list(node, parts));
        case Role::list:
            return take_list(node, parts);
        case Role::value:
            parts.value = &node;
            return !node.is(Node::Kind::table) || take_table(node, parts);
        case Role::kind:
            return take_kind(member, parts) || (plain_word(member.key) == "scale" && take_number(node, parts.sd));
        case Role::step:
            return take_number(node, parts.step);
        case Role::log:
            parts.log = parts.log || (node.is(Node::Kind::boolean) && node.boolean);
            return node.is(Node::Kind::boolean);
        case Role::base:
            return take_number(node, parts.base);
        case Role::mean:
            return take_number(node, parts.mean);
        case Role::sd:
            return take_number(node, parts.sd);
        case Role::inside:
            return take_table(node, parts);
        case Role::rest:
            return take_rest(member, parts);
    }
    return false;
}

void collect_parts(const Node& table, RangeParts& parts) {
    for (const Member& member : table.members) parts.all_known = take_member(member, parts) && parts.all_known;
}

/// NNI: `_value` holds the arguments of `_type`.
void share_value(RangeParts& parts) {
    const Node* value = parts.value;
    if (value == nullptr || !value->is(Node::Kind::array)) return;
    const auto argument = [&](std::size_t i) { return i < value->items.size() ? &value->items[i] : nullptr; };
    const bool drawn = names(parts.kind, "uniform") || names(parts.kind, "randint");
    if (drawn && take_bounds(*value, parts)) return;
    if (!is_normal(parts.kind) || value->items.size() < 2) {
        parts.values = value;
        return;
    }
    parts.mean = argument(0);
    parts.sd = argument(1);
    parts.step = argument(2);
}

bool is_foreign_range(const RangeParts& parts) {
    // A table of constants may have some such names, too, among others.
    const bool has_bounds = parts.lower != nullptr && parts.upper != nullptr;
    if (!parts.certain && !parts.all_known && !(has_bounds && parts.named_bounds >= 2)) return false;
    if (has_bounds && (!parts.by_letters || parts.known_kind)) return true;
    if (parts.values != nullptr && (parts.certain || parts.known_kind)) return true;
    return parts.known_kind && (parts.lower != nullptr || parts.upper != nullptr || parts.value != nullptr ||
                                parts.mean != nullptr || parts.sd != nullptr);
}

std::string literal_of(const Node& node) {
    if (node.is(Node::Kind::boolean)) return node.boolean ? "true" : "false";
    if (node.is(Node::Kind::integer)) return std::to_string(node.integer);
    if (node.is(Node::Kind::real)) return space::float_text(node.real);
    if (node.is(Node::Kind::string)) return space::Value(node.text).literal();
    return "[" + base::joined(node.items, literal_of) + "]";
}

std::string number_in(const Node& node) { return node.is(Node::Kind::string) ? node.text : literal_of(node); }

std::string bound_in(const Node& node, const RangeParts& parts) {
    if (!parts.of_exponents || !names(parts.kind, "log")) return number_in(node);
    const double base = parts.kind != "log"     ? std::exp(1.0)
                        : parts.base != nullptr ? number_of(*parts.base).value_or(10.0)
                                                : 10.0;
    const double value = std::pow(base, *number_of(node));
    std::string shown(32, '\0'); // rounded: this is a proposal
    shown.resize(static_cast<std::size_t>(
        std::to_chars(shown.data(), shown.data() + shown.size(), value, std::chars_format::general, 4).ptr -
        shown.data()));
    return shown;
}

std::string next_integer(const Node& node) {
    const std::string text = number_in(node);
    const auto value = base::number_in<std::int64_t>(text);
    return value ? std::to_string(*value + 1) : text + " + 1";
}

/// The right side of a line that stands for a range.
struct Right {
    std::string text;
    bool is_constant = false;
    std::string when = {}; ///< "for integers", where nobody can know
};

/// `"loguniform(1e-05, 0.1)"`, in quotes, for bounds.
std::vector<Right> drawn(const RangeParts& parts) {
    const bool log = parts.log || names(parts.kind, "log");
    const bool whole = is_whole_number(*parts.lower) && is_whole_number(*parts.upper) && !parts.of_exponents;
    const bool floats = names(parts.kind, "float") || names(parts.kind, "double") || names(parts.kind, "real");
    const bool integers = whole && !floats && names(parts.kind, "int");
    const bool excluded = names(parts.kind, "randint"); // Ray's and NNI's upper bound
    const std::string lower = bound_in(*parts.lower, parts);
    const std::string upper = bound_in(*parts.upper, parts);
    const auto call = [](const std::string& name, const std::string& a, const std::string& b,
                         const std::string& c = "") {
        return "\"" + name + "(" + a + ", " + b + (c.empty() ? "" : ", " + c) + ")\"";
    };
    const std::string kind_of_log = log ? "log" : "";
    if (parts.step != nullptr) {
        const std::string step = number_in(*parts.step);
        const bool multiples = log || parts.kind.starts_with('q');
        const std::string prefix = multiples ? "q" + kind_of_log : "step";
        return {{call(prefix + (integers ? "randint" : "uniform"), lower, upper, step)}};
    }
    const Right of_integers{call(kind_of_log + "randint", lower, excluded ? upper : next_integer(*parts.upper)), false,
                            " for integers"};
    if (integers) return {{of_integers.text}};
    const Right of_floats{call(kind_of_log + "uniform", lower, upper)};
    if (whole && !parts.known_kind) return {of_integers, of_floats};
    return {of_floats};
}

/// What to write instead; empty: there is no such domain.
std::vector<Right> replacement(const RangeParts& parts) {
    const bool no_counterpart = names(parts.kind, "lognorm") || names(parts.kind, "inv") || parts.kind == "beta";
    if (no_counterpart) return {};
    if (parts.values != nullptr) {
        const bool fixed = names(parts.kind, "fixed") || names(parts.kind, "const");
        return {{literal_of(*parts.values), fixed}};
    }
    if (parts.lower != nullptr && parts.upper != nullptr) return drawn(parts);
    if (parts.mean != nullptr && parts.sd != nullptr) {
        const bool stepped = parts.step != nullptr;
        return {{std::string("\"") + (stepped ? "qrandn(" : "randn(") + number_in(*parts.mean) + ", " +
                 number_in(*parts.sd) + (stepped ? ", " + number_in(*parts.step) : "") + ")\""}};
    }
    if (parts.value == nullptr) return {};
    return {{literal_of(*parts.value), true}};
}

/// Why the line would be refused itself; empty: it would not.
std::string problem_of(const Right& right) {
    const bool is_call = !right.is_constant && right.text.starts_with('"');
    try {
        if (is_call) {
            static_cast<void>(space::parse_domain(right.text.substr(1, right.text.size() - 2)));
            return "";
        }
        const Node root = parse_toml("x = " + right.text + "\n");
        Mistakes mistakes;
        const auto value = to_value(root.members.front().value, "x", mistakes);
        if (!value) return "it is not a value";
        return right.is_constant ? "" : space::problem(space::Choice{value->as_list(), false});
    } catch (const base::Error& error) {
        return error.what();
    }
}

/// `lr = "uniform(0, 1)"`; with a condition, or as a constant that needs it, in the long form.
std::string line_of(const std::string& name, const Right& right, const std::string& condition) {
    const bool plain = !right.is_constant ||
                       (!right.text.starts_with('[') && !right.text.starts_with('\'') && !right.text.starts_with('"'));
    if (plain && condition.empty()) return name + " = " + right.text;
    return name + " = { " + (right.is_constant ? "value = " : "domain = ") + right.text +
           (condition.empty() ? "" : ", condition = " + condition) + " }";
}

std::string condition_of(const RangeParts& parts) {
    if (parts.condition == nullptr || !parts.condition->is(Node::Kind::string)) return "";
    try {
        static_cast<void>(space::Condition::parse(parts.condition->text));
        return space::Value(parts.condition->text).literal();
    } catch (const base::UsageError&) {
        return "";
    }
}

/// `write lr = "uniform(0, 1)"`. What is proposed is never refused.
std::string line_to_write(const RangeParts& parts, const std::string& name) {
    std::string lines;
    std::string why;
    for (const Right& right : replacement(parts)) {
        if (why = problem_of(right); !why.empty()) break;
        lines += (lines.empty() ? "write " : ", or ") + line_of(name, right, condition_of(parts)) + right.when;
    }
    if (!lines.empty()) return lines;
    return "a domain is written " + name +
           " = \"uniform(LOW, HIGH)\", \"loguniform(LOW, HIGH)\", \"randint(LOW, HIGH)\" or [A, B, C]; this one has "
           "no " +
           (why.empty() ? "exact counterpart" : "counterpart: " + why);
}

/// Whether a member is certainly written for this program: a call, { domain = ... } or { value = ... }.
bool has_own_form(const Node& table) {
    return std::ranges::any_of(table.members, [&](const Member& member) {
        const Node& node = member.value;
        if (node.is(Node::Kind::string)) return member.key != "condition" && space::looks_like_call(node.text);
        return node.is(Node::Kind::table) && (is_long_form(node) || has_own_form(node));
    });
}

std::optional<RangeParts> parts_of(const Node& table) {
    RangeParts parts;
    if (!table.is(Node::Kind::table) || table.members.empty() || has_own_form(table)) return std::nullopt;
    collect_parts(table, parts);
    share_value(parts);
    return is_foreign_range(parts) ? std::optional(parts) : std::nullopt;
}

} // namespace

std::string foreign_range(const Node& table, const std::string& name) {
    const auto parts = parts_of(table);
    if (!parts) return "";
    std::string message = "is a range as other tools write it, and would be a nested table of constants here; " +
                          line_to_write(*parts, name);
    const auto first = std::ranges::find_if(table.members, [](const Member& member) {
        return member.key != "condition" && !member.value.is(Node::Kind::table) && !member.value.is(Node::Kind::time);
    });
    if (first == table.members.end()) return message;
    const std::string form = first->value.is(Node::Kind::array) ? "domain" : "value";
    return message + "; a hyper-parameter called " + first->key + " is written " + first->key + " = { " + form + " = " +
           literal_of(first->value) + " }";
}

std::string foreign_list(const Node& list, const std::string& name) {
    for (const Node& item : list.items) {
        if (item.is(Node::Kind::string) && is_domain(item.text))
            return "is a choice between texts, of which " + space::Value(item.text).literal() +
                   " is a domain by itself; write " + name + " = " + space::Value(item.text).literal() +
                   ", or, if the texts are meant, " + name + " = { domain = " + literal_of(list) + " }";
        const auto parts = parts_of(item);
        if (!parts) continue;
        const std::string own = parts->name.empty() ? name : parts->name;
        return "is a list of ranges as other tools write them; in [space] each hyper-parameter has a line: " +
               line_to_write(*parts, own);
    }
    return "";
}

bool is_domain(const std::string& text) {
    if (!space::looks_like_call(text)) return false;
    try {
        static_cast<void>(space::parse_domain(text));
        return true;
    } catch (const base::UsageError&) {
        return false;
    }
}

bool is_long_form(const Node& node) {
    if (!node.is(Node::Kind::table)) return false;
    if (node.find("domain") == nullptr && node.find("value") == nullptr) return false;
    return std::ranges::all_of(node.members, [](const auto& member) {
        return member.key == "domain" || member.key == "value" || member.key == "condition" || member.key == "weights";
    });
}

bool is_word_of_ranges(std::string_view member) { return role_of(member) || !kind_called(member).empty(); }

std::string plain_word(View text) {
    std::string out;
    for (const char c : text)
        if (c != '_' && c != '-' && c != ' ') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
}

bool is_distribution(View kind) {
    constexpr View parts[] = {"uniform", "randint", "randn", "choice", "categorical", "distribution"};
    constexpr View words[] = {"normal", "lognormal", "qnormal", "norm", "lognorm", "gaussian", "gauss", "truncnormal"};
    return std::ranges::any_of(parts, [&](View part) { return names(kind, part); }) ||
           std::ranges::find(words, kind) != std::end(words);
}

} // namespace ranktune::study
