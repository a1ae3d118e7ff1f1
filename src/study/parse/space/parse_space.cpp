// SPDX-License-Identifier: Apache-2.0
// [space]: the hyper-parameters.
#include <algorithm>

#include "ranktune/base/text.hpp"
#include "study/options.hpp"
#include "study/parse/foreign/foreign_range.hpp"
#include "study/parse/key_table.hpp"
#include "study/parse/parse_tables.hpp"
#include "study/parse/space/space_reader.hpp"

namespace ranktune::study {
namespace {

using space::Domain;

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
        entries.read_dependent();
        entries.checks().check(context.mistakes, context.condition_names, context.trust_trainable);
        context.entries = entries.checks().entries();
        context.rules = entries.take_rules();
        for (const SpaceEntry& entry : context.entries) {
            const std::string first = entry.name.substr(0, entry.name.find('.'));
            if (!context.rules.empty() && (first == "require" || first == "forbid"))
                context.mistakes.missing(
                    reader.table(), "space." + entry.name,
                    "a hyper-parameter cannot be called " + first + " beside rules; give it another name");
        }
        context.names_are_known = true;
        if (context.mistakes.size() != before) return;
        try {
            context.spec.space = space::SearchSpace(parameters_of(context.entries), context.rules);
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
        context.spec.space = space::SearchSpace(parameters_of(context.entries), context.rules);
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
