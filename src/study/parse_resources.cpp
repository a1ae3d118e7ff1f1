// SPDX-License-Identifier: Apache-2.0
// [resources]: what one trial gets.
#include <algorithm>

#include "ranktune/base/text.hpp"
#include "study/parse_tables.hpp"

namespace ranktune::study {
namespace {

constexpr std::int64_t most_ranks = 10'000'000;
constexpr std::int64_t most_cpus = 100'000;

/// `{name}` -> "name"; empty: another form.
std::string parameter_of(const std::string& text) {
    if (text.size() < 3 || text.front() != '{' || text.back() != '}') return "";
    return text.substr(1, text.size() - 2);
}

bool is_rank_count(const space::Value& value) {
    return value.is_int() && value.as_int() >= 1 && value.as_int() <= most_ranks;
}

/// Whether every value of the domain is a number of ranks.
bool gives_ranks(const space::Domain& domain) {
    if (const auto* range = std::get_if<space::IntRange>(&domain))
        return range->lower >= 1 && range->upper <= most_ranks;
    if (const auto* constant = std::get_if<space::Constant>(&domain)) return is_rank_count(constant->value);
    if (const auto* choice = std::get_if<space::Choice>(&domain))
        return std::ranges::all_of(choice->values, is_rank_count);
    if (const auto* grid = std::get_if<space::Grid>(&domain)) return std::ranges::all_of(grid->values, is_rank_count);
    return false;
}

void check_rank_parameter(ParseContext& context, const Node& node, const std::string& name) {
    const std::string key = "resources.ranks";
    if (!context.space_is_valid) return; // its own mistakes come first
    const space::Parameter* parameter = context.spec.space.find(name);
    if (parameter == nullptr) {
        std::vector<std::string> names;
        for (const auto& known : context.spec.space.parameters()) names.push_back(known.name);
        context.mistakes.value(node, key, "[space] has no parameter '" + name + "'" + base::suggestion(name, names));
    } else if (parameter->condition) {
        context.mistakes.value(node, key, "the parameter '" + name + "' has a condition; every trial needs ranks");
    } else if (!gives_ranks(parameter->domain)) {
        context.mistakes.value(
            node, key, "the parameter '" + name + "' must give integers >= 1, not " + space::text(parameter->domain));
    }
}

} // namespace

void parse_resources(ParseContext& context) {
    TableReader table = context.reader("resources");
    ResourceSpec& resources = context.spec.resources;
    const Node* ranks = table.take("ranks");
    if (ranks != nullptr && ranks->is(Node::Kind::string)) {
        resources.ranks_parameter = parameter_of(ranks->text);
        if (resources.ranks_parameter.empty()) {
            context.mistakes.value(
                *ranks, "resources.ranks",
                "needs an integer >= 1, or \"{name}\" for a parameter of [space], not " + in_quotes(ranks->text));
        } else {
            check_rank_parameter(context, *ranks, resources.ranks_parameter);
        }
    } else if (ranks != nullptr) {
        resources.ranks = static_cast<std::uint32_t>(table.integer("ranks", 1, most_ranks).value_or(1));
    }
    resources.cpus_per_rank = static_cast<std::uint32_t>(table.integer("cpus_per_rank", 1, most_cpus).value_or(1));
    table.finish();
}

} // namespace ranktune::study
