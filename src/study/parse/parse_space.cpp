// SPDX-License-Identifier: Apache-2.0
// [space]: the hyper-parameters.
#include <algorithm>
#include <optional>

#include "ranktune/base/text.hpp"
#include "study/options.hpp"
#include "study/parse/condition_checks.hpp"
#include "study/parse/foreign/foreign_range.hpp"
#include "study/parse/foreign/foreign_text.hpp"
#include "study/parse/key_table.hpp"
#include "study/parse/parse_tables.hpp"

namespace ranktune::study {
namespace {

using space::Condition;
using space::Domain;

/// Reads the table and all nested ones.
class SpaceReader {
  public:
    /// `trusted`: a resolved study, whose keys are not checked for spelling mistakes.
    SpaceReader(Mistakes& mistakes, bool trusted) : mistakes_(mistakes), trusted_(trusted) {}

    void read_table(const Node& table, const std::string& prefix, const Conditions& outer);

    /// The checks for all tables read, because conditions may mention later parameters.
    [[nodiscard]] const ConditionChecks& checks() const { return checks_; }

  private:
    void read_entry(const Node& node, const std::string& name, const Conditions& outer);
    void read_long_form(const Node& node, const std::string& name, const Conditions& outer);
    [[nodiscard]] bool refuse_misspelt(const Node& node, const std::string& name);
    [[nodiscard]] bool refuse_foreign(const Node& node, const std::string& name);
    void read_condition(const Node& node, const std::string& key, Conditions& to);
    [[nodiscard]] std::optional<Domain> read_domain(const Node& node, const std::string& key);
    [[nodiscard]] std::optional<Domain> read_call(const Node& node, const std::string& key);
    [[nodiscard]] std::optional<Domain> read_choice(const Node& node, const std::string& key);
    [[nodiscard]] std::optional<Domain> read_constant(const Node& node, const std::string& key);
    void add(const Node& node, const std::string& name, std::optional<Domain> domain, Conditions conditions);

    Mistakes& mistakes_;
    bool trusted_;
    ConditionChecks checks_;
};

bool is_near(const std::string& key, std::string_view word) {
    return key != word && !base::nearest(key, {word}).empty();
}

bool is_condition(const Node& node) {
    if (!node.is(Node::Kind::string)) return false;
    try {
        static_cast<void>(Condition::parse(node.text));
        return true;
    } catch (const base::UsageError&) {
        return false;
    }
}

bool is_call(const Node& node) { return node.is(Node::Kind::string) && space::looks_like_call(node.text); }

/// The key of the long form that the member was probably meant to be, or nothing.
std::string_view meant_word(const Node& table, const Member& member) {
    if (is_near(member.key, "condition") && is_condition(member.value)) return "condition";
    if (is_near(member.key, "domain") && is_call(member.value)) return "domain";
    // Alone, or beside a condition: a nested table would have no more than this one parameter.
    const bool alone = std::ranges::all_of(table.members, [&](const Member& other) {
        return other.key == member.key || other.key == "condition" || is_near(other.key, "condition");
    });
    if (alone && is_near(member.key, "value") && !member.value.is(Node::Kind::table)) return "value";
    return {};
}

/// Refuses a table of [space] that is nearly a long form: as a nested table it would give parameters such as
/// `lr.domain`.
bool SpaceReader::refuse_misspelt(const Node& node, const std::string& name) {
    if (trusted_) return false;
    const Node* domain = node.find("domain");
    const bool has_domain = domain != nullptr && (is_call(*domain) || domain->is(Node::Kind::array));
    const std::size_t before = mistakes_.size();
    for (const Member& member : node.members) {
        if (member.key == "domain" || member.key == "value" || member.key == "condition") continue;
        const std::string key = "space." + name + "." + member.key;
        const std::string way_out =
            "; a hyper-parameter of this name is written " + member.key + " = { value = ... } or { domain = ... }";
        if (const auto word = meant_word(node, member); !word.empty()) {
            mistakes_.key(member.value, key, "unknown key; did you mean '" + std::string(word) + "'?" + way_out);
        } else if (has_domain) {
            mistakes_.key(member.value, key,
                          "unknown key beside 'domain', which goes with 'condition' alone; a hyper-parameter called "
                          "domain is written domain = { domain = ... }");
        }
    }
    return mistakes_.size() != before;
}

/// Refuses a range as another tool writes it: as a table, a list of tables, or a string.
bool SpaceReader::refuse_foreign(const Node& node, const std::string& name) {
    if (trusted_) return false;
    const std::string own_name = name.substr(name.rfind('.') + 1);
    std::string why;
    if (node.is(Node::Kind::table)) why = foreign_range(node, own_name);
    if (node.is(Node::Kind::array)) why = foreign_list(node, own_name);
    if (node.is(Node::Kind::string)) why = foreign_text(node.text, own_name);
    if (!why.empty()) mistakes_.value(node, "space." + name, why);
    return !why.empty();
}

void SpaceReader::read_table(const Node& table, const std::string& prefix, const Conditions& outer) {
    Conditions inner = outer;
    // As a string, `condition` is the condition of the table; in any other form it is a hyper-parameter of that name.
    if (const Node* node = table.find("condition"); node != nullptr && node->is(Node::Kind::string)) {
        const std::string key = "space." + prefix + "condition";
        if (prefix.empty()) {
            mistakes_.key(*node, key,
                          "a condition belongs to a parameter or to a nested table, not to the whole space; a "
                          "hyper-parameter of this name is written condition = { value = ... }");
        } else {
            read_condition(*node, key, inner);
        }
    }
    bool any = false;
    for (const auto& [key, node] : table.members) {
        if (key == "condition" && node.is(Node::Kind::string)) continue;
        any = true;
        const std::string name = prefix + key;
        if (check_name(node, "space." + name, key, mistakes_))
            read_entry(node, name, inner);
        else
            checks_.add_entry({.name = name, .domain = {}, .conditions = inner, .is_parameter = false});
    }
    if (!any && !prefix.empty()) {
        const std::string name = prefix.substr(0, prefix.size() - 1);
        mistakes_.value(table, "space." + name, "a nested table without parameters");
        checks_.add_entry({.name = name, .domain = {}, .conditions = inner, .is_parameter = false});
    }
}

void SpaceReader::read_entry(const Node& node, const std::string& name, const Conditions& outer) {
    if (is_long_form(node)) {
        read_long_form(node, name, outer);
    } else if (node.is(Node::Kind::table)) {
        if (refuse_foreign(node, name) || refuse_misspelt(node, name)) {
            // Other conditions may mention it.
            checks_.add_entry({.name = name, .domain = {}, .conditions = outer, .is_parameter = false});
        } else {
            read_table(node, name + ".", outer);
        }
    } else if (refuse_foreign(node, name)) {
        checks_.add_entry({.name = name, .domain = {}, .conditions = outer, .is_parameter = false});
    } else {
        const std::string key = "space." + name;
        const bool drawn = is_call(node) || node.is(Node::Kind::array);
        add(node, name, drawn ? read_domain(node, key) : read_constant(node, key), outer);
    }
}

void SpaceReader::read_long_form(const Node& node, const std::string& name, const Conditions& outer) {
    const std::string key = "space." + name;
    Conditions conditions = outer;
    if (const Node* condition = node.find("condition")) read_condition(*condition, key + ".condition", conditions);
    const Node* domain = node.find("domain");
    const Node* value = node.find("value");
    std::optional<Domain> read;
    if (domain != nullptr && value != nullptr) {
        mistakes_.key(*value, key + ".value", "is given beside domain; give one of them");
    } else if (domain != nullptr) {
        read = read_domain(*domain, key + ".domain");
    } else {
        read = read_constant(*value, key + ".value");
    }
    add(node, name, std::move(read), std::move(conditions));
}

void SpaceReader::read_condition(const Node& node, const std::string& key, Conditions& to) {
    if (!node.is(Node::Kind::string)) {
        to.unreadable = true;
        mistakes_.value(node, key, "needs a string, as in \"optimizer == 'sgd'\", not " + std::string(kind_text(node)));
        return;
    }
    try {
        checks_.add_condition(Condition::parse(node.text), node, key, to);
    } catch (const base::UsageError& error) {
        checks_.add_unreadable(node.text, to);
        mistakes_.value(node, key, std::string(error.what()) + ":  " + in_quotes(node.text));
    }
}

std::optional<Domain> SpaceReader::read_domain(const Node& node, const std::string& key) {
    if (node.is(Node::Kind::array)) return read_choice(node, key);
    if (node.is(Node::Kind::string)) return read_call(node, key);
    mistakes_.value(node, key,
                    "needs a call such as \"uniform(0.0, 1.0)\" or a list, not " + std::string(kind_text(node)) +
                        "; a constant is written value = ...");
    return std::nullopt;
}

std::optional<Domain> SpaceReader::read_call(const Node& node, const std::string& key) {
    if (!space::looks_like_call(node.text)) {
        mistakes_.value(node, key,
                        "needs a call such as \"uniform(0.0, 1.0)\" or a list, not " + in_quotes(node.text) +
                            "; a constant is written value = ...");
        return std::nullopt;
    }
    try {
        return space::parse_domain(node.text);
    } catch (const base::UsageError& error) {
        mistakes_.value(node, key, std::string(error.what()) + ":  " + in_quotes(node.text));
        return std::nullopt;
    }
}

std::optional<Domain> SpaceReader::read_choice(const Node& node, const std::string& key) {
    const auto values = to_value(node, key, mistakes_);
    if (!values) return std::nullopt;
    // Studies of before 0.2.0 have lists without an order; resolved files since then say it of each list of numbers.
    Domain domain = space::Choice{values->as_list(), !trusted_ && space::in_order(values->as_list())};
    if (const std::string why = space::problem(domain); !why.empty()) {
        mistakes_.value(node, key, "a choice " + why);
        return std::nullopt;
    }
    return domain;
}

std::optional<Domain> SpaceReader::read_constant(const Node& node, const std::string& key) {
    const auto value = to_value(node, key, mistakes_);
    if (!value) return std::nullopt;
    return space::Constant{*value};
}

void SpaceReader::add(const Node& node, const std::string& name, std::optional<Domain> domain, Conditions conditions) {
    // A parameter pinned on the command line may make conditions of the file impossible; that is no mistake.
    const bool pinned = !node.override_by.empty() || (domain && std::holds_alternative<space::Constant>(*domain));
    checks_.add_entry({name, std::move(domain), std::move(conditions), pinned});
}

const Node* find_dotted(const Node& table, std::string_view name) {
    const Node* at = &table;
    while (at != nullptr && !name.empty()) {
        const auto dot = name.find('.');
        at = at->find(name.substr(0, dot));
        name = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
    }
    return at;
}

/// The first problem of a file that the domain can name.
std::string first_file_problem(const ParseContext& context, const OptionInfo& option, const Domain& domain) {
    std::vector<space::Value> values;
    if (const auto* choice = std::get_if<space::Choice>(&domain)) values = choice->values;
    if (const auto* grid = std::get_if<space::Grid>(&domain)) values = grid->values;
    if (const auto* constant = std::get_if<space::Constant>(&domain)) values = {constant->value};
    for (const space::Value& value : values)
        if (std::string why = file_problem(context, option, value); !why.empty()) return why;
    return "";
}

/// Why the trainable has no use for a parameter of this name.
std::string unread_text(const TrainableInfo& info, const std::string& name) {
    std::vector<std::string> names;
    for (const OptionInfo& known : info.options) names.push_back(known.name);
    std::string why = "the trainable '" + info.name + "' does not read it" + base::suggestion(name, names);
    if (means_max_iterations(name)) {
        why += "; the ceiling is study.max_iterations";
    } else if (base::nearest(name, names).empty()) {
        why += "; it reads: " + base::join(names);
    }
    return why;
}

/// Checks one parameter against the trainable: not given twice, known, and within what the option takes.
void check_parameter(ParseContext& context, const Node& node, const SpaceEntry& parameter) {
    const std::string key = "space." + parameter.name;
    const auto among = [&](const std::vector<std::string>& names) {
        return std::ranges::find(names, parameter.name) != names.end();
    };
    if (among(context.option_keys)) {
        context.mistakes.key(node, key, "is also given in [trainable]; give it in one place");
        return;
    }
    if (context.info == nullptr) return;
    const OptionInfo* option = find_option(*context.info, parameter.name);
    if (option != nullptr) {
        std::string why = parameter.domain ? option_problem(*option, *parameter.domain) : "";
        if (why.empty() && parameter.domain) why = first_file_problem(context, *option, *parameter.domain);
        if (!why.empty()) context.mistakes.value(node, key, why);
        if (option->required && parameter.conditions.any())
            context.mistakes.value(node, key, "the option is required, so the parameter cannot have a condition");
        return;
    }
    if (context.info->any_option || parameter.name == context.spec.resources.ranks_parameter ||
        among(context.condition_names))
        return;
    context.mistakes.key(node, key, unread_text(*context.info, parameter.name));
}

/// The parameters with a valid domain.
std::vector<space::Parameter> parameters_of(const std::vector<SpaceEntry>& entries) {
    std::vector<space::Parameter> parameters;
    for (const SpaceEntry& entry : entries)
        if (entry.domain) parameters.push_back({entry.name, *entry.domain, entry.conditions.all});
    return parameters;
}

} // namespace

void parse_space(ParseContext& context) {
    const TableReader reader = context.reader("space");
    const std::size_t before = context.mistakes.size();
    if (reader.table() != nullptr) {
        SpaceReader entries(context.mistakes, context.trust_trainable);
        entries.read_table(*reader.table(), "", {});
        entries.checks().check(context.mistakes, context.condition_names, context.trust_trainable);
        context.entries = entries.checks().entries();
        context.names_are_known = true;
        if (context.mistakes.size() != before) return;
        try {
            context.spec.space = space::SearchSpace(parameters_of(context.entries));
        } catch (const base::UsageError& error) {
            context.mistakes.missing(reader.table(), "space", error.what());
            return;
        }
    } else if (const Node* other = context.root.find("space"); other != nullptr) { // not a table: reported already
        if (const std::string why = foreign_list(*other, "x"); !why.empty())
            context.mistakes.value(*other, "space", why);
        return;
    }
    context.names_are_known = context.space_is_valid = true;
}

void check_space_against_trainable(ParseContext& context) {
    const Node* table = context.root.find("space");
    const auto is_given = [&](const std::string& name) {
        return std::ranges::find(context.option_keys, name) != context.option_keys.end();
    };
    for (SpaceEntry& entry : context.entries) {
        if (!entry.is_parameter) continue;
        if (const Node* node = find_dotted(*table, entry.name)) check_parameter(context, *node, entry);
        const OptionInfo* option = context.info == nullptr ? nullptr : find_option(*context.info, entry.name);
        if (option != nullptr && entry.domain) entry.domain = resolved(*option, *entry.domain, context.directory);
    }
    if (context.space_is_valid && context.mistakes.empty())
        context.spec.space = space::SearchSpace(parameters_of(context.entries));
    if (context.info == nullptr) return;
    for (const OptionInfo& option : context.info->options) {
        if (!option.required || is_given(option.name)) continue;
        if (table != nullptr && table->is(Node::Kind::table) && find_dotted(*table, option.name) != nullptr) continue;
        context.mistakes.missing(
            context.root.find("trainable"), "trainable." + option.name,
            "missing; " + option_text(option) + (option.description.empty() ? "" : ": " + option.description));
    }
}

} // namespace ranktune::study
