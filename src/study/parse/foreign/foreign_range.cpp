// SPDX-License-Identifier: Apache-2.0
#include "study/parse/foreign/foreign_range.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "ranktune/base/text.hpp"
#include "ranktune/space/domain.hpp"

namespace ranktune::study {
namespace {

using View = std::string_view;

/// What a member of a range says.
enum class Role : std::uint8_t {
    lower,
    upper,
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
    {Role::lower, " min low lower lo minimum minval minvalue lowerbound lb start from "},
    {Role::upper, " max high upper hi maximum maxval maxvalue upperbound ub stop end to "},
    {Role::bounds, " bounds range interval limits "},
    {Role::values, " values choices categories vals candidates gridsearch feasiblepoints "},
    {Role::list, " list options sequence items levels "},
    {Role::value, " value "},
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
     "description count conditions condition "},
};

std::string plain_word(View text) {
    std::string out;
    for (const char c : text)
        if (c != '_' && c != '-' && c != ' ') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
}

std::optional<Role> role_of(View member) {
    const std::string word = " " + plain_word(member) + " ";
    const auto found =
        std::ranges::find_if(range_words, [&](const RangeWords& each) { return each.words.find(word) != View::npos; });
    return found == std::end(range_words) ? std::nullopt : std::optional(found->role);
}

bool names(View text, View piece) { return text.find(piece) != View::npos; }

/// Whether a type or distribution is named: "q_log_uniform_values", "float", "UNIT_LOG_SCALE".
bool is_kind(View kind) {
    constexpr View parts[] = {"uniform", "normal", "randint", "randn", "choice", "categorical", "distribution", "log"};
    if (std::ranges::any_of(parts, [&](View part) { return names(kind, part); })) return true;
    constexpr View words[] = {"auto",   "float", "double",   "real",  "int",        "integer", "numeric",
                              "range",  "fixed", "constant", "const", "discrete",   "ordinal", "grid",
                              "linear", "bool",  "boolean",  "beta",  "finiterange"};
    return std::ranges::find(words, kind) != std::end(words);
}

std::optional<double> number_of(const Node& node) {
    if (node.is(Node::Kind::integer)) return static_cast<double>(node.integer);
    if (node.is(Node::Kind::real)) return node.real;
    if (!node.is(Node::Kind::string)) return std::nullopt;
    double value = 0.0; // Katib and SageMaker write numbers as strings
    const auto [end, error] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
    return error == std::errc{} && end == node.text.data() + node.text.size() ? std::optional(value) : std::nullopt;
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
    bool values_alone = false;    ///< whose name leaves no doubt
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
};

/// Reads a pair as the bounds.
bool take_bounds(const Node& list, RangeParts& parts) {
    if (!list.is(Node::Kind::array) || list.items.size() != 2) return false;
    if (!number_of(list.items[0]) || !number_of(list.items[1])) return false;
    parts.lower = &list.items[0];
    parts.upper = &list.items[1];
    return true;
}

void take_kind(const Member& member, RangeParts& parts) {
    const Node& node = member.value;
    if (!node.is(Node::Kind::string)) return;
    const std::string kind = plain_word(node.text);
    parts.known_kind = parts.known_kind || is_kind(kind);
    parts.kind += kind;
    // W&B's log_uniform and Determined's log have bounds of the exponent.
    const bool of_exponents = node.text == "log_uniform" || node.text == "q_log_uniform" ||
                              (kind == "log" && plain_word(member.key) == "type");
    parts.of_exponents = parts.of_exponents || of_exponents;
}

bool collect_parts(const Node& table, RangeParts& parts);

/// Whether the member may stand in a range of another tool; notes what it says.
bool take_member(const Member& member, RangeParts& parts) {
    const auto role = role_of(member.key);
    if (!role) return false;
    const Node& node = member.value;
    const bool plain_number = number_of(node).has_value();
    switch (*role) {
        case Role::lower:
            parts.lower = &node;
            return plain_number;
        case Role::upper:
            parts.upper = &node;
            return plain_number;
        case Role::bounds:
            return take_bounds(node, parts);
        case Role::values:
            parts.values_alone = true;
            [[fallthrough]];
        case Role::list:
            parts.values = &node;
            return node.is(Node::Kind::array);
        case Role::value:
            if (node.is(Node::Kind::table)) return collect_parts(node, parts);
            parts.value = &node;
            return true;
        case Role::kind:
            take_kind(member, parts);
            return node.is(Node::Kind::string) && is_kind(plain_word(node.text));
        case Role::step:
            parts.step = &node;
            return plain_number;
        case Role::log:
            parts.log = parts.log || (node.is(Node::Kind::boolean) && node.boolean);
            return node.is(Node::Kind::boolean);
        case Role::base:
            parts.base = &node;
            return plain_number;
        case Role::mean:
            parts.mean = &node;
            return plain_number;
        case Role::sd:
            parts.sd = &node;
            return plain_number;
        case Role::inside:
            return node.is(Node::Kind::table) && collect_parts(node, parts);
        case Role::rest:
            break;
    }
    const std::string word = plain_word(member.key);
    if (word == "condition") parts.condition = &node;
    if ((word == "name" || word == "parameterid") && node.is(Node::Kind::string)) {
        if (is_kind(plain_word(node.text)))
            take_kind(member, parts); // Optuna: name = "FloatDistribution"
        else
            parts.name = node.text;
    }
    return !(node.is(Node::Kind::string) && space::looks_like_call(node.text));
}

bool collect_parts(const Node& table, RangeParts& parts) {
    return std::ranges::all_of(table.members, [&](const Member& member) { return take_member(member, parts); });
}

/// NNI: `_value` holds the arguments of `_type`.
void share_value(RangeParts& parts) {
    const Node* value = parts.value;
    if (value == nullptr || !value->is(Node::Kind::array)) return;
    const auto argument = [&](std::size_t i) { return i < value->items.size() ? &value->items[i] : nullptr; };
    const bool drawn = names(parts.kind, "uniform") || names(parts.kind, "randint");
    if (drawn && value->items.size() >= 2) {
        parts.lower = argument(0);
        parts.upper = argument(1);
        parts.step = argument(2);
    } else if (names(parts.kind, "normal") && value->items.size() >= 2) {
        parts.mean = argument(0);
        parts.sd = argument(1);
        parts.step = argument(2);
    } else {
        parts.values = value;
    }
}

bool is_foreign_range(const RangeParts& parts) {
    if (parts.lower != nullptr && parts.upper != nullptr) return true;
    if (parts.values != nullptr && (parts.values_alone || parts.known_kind)) return true;
    return parts.known_kind && (parts.lower != nullptr || parts.upper != nullptr || parts.value != nullptr ||
                                parts.mean != nullptr || parts.sd != nullptr);
}

std::string literal_of(const Node& node) {
    if (node.is(Node::Kind::boolean)) return node.boolean ? "true" : "false";
    if (node.is(Node::Kind::integer)) return std::to_string(node.integer);
    if (node.is(Node::Kind::real)) return space::float_text(node.real);
    if (node.is(Node::Kind::string)) return space::Value(node.text).literal();
    std::string items;
    for (const Node& item : node.items) items += (items.empty() ? "" : ", ") + literal_of(item);
    return "[" + items + "]";
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
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return text + " + 1";
    return std::to_string(value + 1);
}

/// `"loguniform(1e-05, 0.1)"`, in quotes, for bounds.
std::string drawn_text(const RangeParts& parts) {
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
    if (parts.step != nullptr && number_of(*parts.step)) {
        const std::string step = number_in(*parts.step);
        const bool multiples = log || parts.kind.starts_with('q');
        const std::string prefix = multiples ? "q" + kind_of_log : "step";
        return call(prefix + (integers ? "randint" : "uniform"), lower, upper, step);
    }
    const std::string of_integers = call(kind_of_log + "randint", lower, excluded ? upper : next_integer(*parts.upper));
    if (integers) return of_integers;
    const std::string of_floats = call(kind_of_log + "uniform", lower, upper);
    const bool either = whole && !parts.known_kind;
    return either ? of_integers + " for integers, or " + of_floats : of_floats;
}

/// What to write instead, as the right side of a line; empty: there is no such domain.
std::string replacement(const RangeParts& parts) {
    const bool no_counterpart = names(parts.kind, "lognormal") || names(parts.kind, "inv") || parts.kind == "beta";
    if (no_counterpart) return "";
    if (parts.values != nullptr) {
        const auto is_value = [](const Node& item) {
            return !item.is(Node::Kind::table) && !item.is(Node::Kind::time);
        };
        return std::ranges::all_of(parts.values->items, is_value) ? literal_of(*parts.values) : "";
    }
    if (parts.lower != nullptr && parts.upper != nullptr && number_of(*parts.lower) && number_of(*parts.upper))
        return drawn_text(parts);
    if (parts.mean != nullptr && parts.sd != nullptr) {
        const bool stepped = parts.step != nullptr;
        return std::string("\"") + (stepped ? "qrandn(" : "randn(") + number_in(*parts.mean) + ", " +
               number_in(*parts.sd) + (stepped ? ", " + number_in(*parts.step) : "") + ")\"";
    }
    return parts.value == nullptr ? "" : literal_of(*parts.value);
}

/// `lr = "uniform(0, 1)"`, the line to write.
std::string line_to_write(const RangeParts& parts, const std::string& name) {
    const std::string right = replacement(parts);
    if (right.empty())
        return "a domain is written " + name +
               " = \"uniform(LOW, HIGH)\", \"loguniform(LOW, HIGH)\", \"randint(LOW, HIGH)\" "
               "or [A, B, C]; this one has no exact counterpart";
    if (parts.condition == nullptr || !parts.condition->is(Node::Kind::string)) return "write " + name + " = " + right;
    return "write " + name + " = { domain = " + right + ", condition = \"" + parts.condition->text + "\" }";
}

std::optional<RangeParts> parts_of(const Node& table) {
    RangeParts parts;
    if (!table.is(Node::Kind::table) || table.members.empty() || !collect_parts(table, parts)) return std::nullopt;
    share_value(parts);
    const auto lower = parts.lower == nullptr ? std::nullopt : number_of(*parts.lower);
    if (names(parts.kind, "log") && lower && *lower <= 0.0) parts.of_exponents = true;
    return is_foreign_range(parts) ? std::optional(parts) : std::nullopt;
}

std::string own_name(const std::string& name) { return name.substr(name.rfind('.') + 1); }

} // namespace

std::string foreign_range(const Node& table, const std::string& name) {
    const auto parts = parts_of(table);
    if (!parts) return "";
    const Member& first = table.members.front();
    const bool is_value = !first.value.is(Node::Kind::table) && !first.value.is(Node::Kind::time);
    const std::string form = first.value.is(Node::Kind::array) ? "domain" : "value";
    return "is a range as other tools write it, and would be a nested table of constants here; " +
           line_to_write(*parts, own_name(name)) +
           (is_value ? "; a hyper-parameter called " + first.key + " is written " + first.key + " = { " + form + " = " +
                           literal_of(first.value) + " }"
                     : "");
}

std::string foreign_list(const Node& list, const std::string& name) {
    for (const Node& item : list.items) {
        const auto parts = parts_of(item);
        if (!parts) continue;
        const std::string own = parts->name.empty() ? own_name(name) : parts->name;
        return "is a list of ranges as other tools write them; in [space] each hyper-parameter has a line: " +
               line_to_write(*parts, own);
    }
    return "";
}

bool looks_like_foreign_call(const std::string& text) {
    const std::string word = plain_word(text);
    if (word.empty()) return false;
    if (const auto dots = text.find(".."); dots != std::string::npos) {
        Node lower;
        Node upper;
        lower.kind = upper.kind = Node::Kind::string;
        lower.text = base::trimmed(text.substr(0, dots));
        upper.text = base::trimmed(text.substr(
            text.find_first_not_of('.', dots) == std::string::npos ? text.size() : text.find_first_not_of('.', dots)));
        if (number_of(lower) && number_of(upper)) return true;
    }
    if (word.back() != ')' && word.back() != ']') return false;
    constexpr View kinds[] = {"uniform", "normal", "randint", "lograndint", "choice", "logspace", "linspace"};
    return std::ranges::any_of(kinds, [&](View name) {
        const auto at = word.find(name);
        return at != std::string::npos && at + name.size() < word.size() &&
               names("([", word.substr(at + name.size(), 1));
    });
}

bool is_word_of_ranges(std::string_view member) { return role_of(member).has_value(); }

} // namespace ranktune::study
