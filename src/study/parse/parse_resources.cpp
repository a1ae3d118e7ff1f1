// SPDX-License-Identifier: Apache-2.0
// [resources]: what one trial gets.
#include <algorithm>
#include <limits>
#include <optional>

#include "ranktune/base/text.hpp"
#include "study/parse/key_rows.hpp"
#include "study/parse/parse_tables.hpp"

namespace ranktune::study {
namespace {

constexpr std::int64_t most_ranks = 10'000'000;

/// `{name}` -> "name"; empty: not of this form.
std::string parameter_of(const std::string& text) {
    if (text.size() < 3 || text.front() != '{' || text.back() != '}') return "";
    return text.substr(1, text.size() - 2);
}

std::string without_braces(std::string text) {
    std::erase_if(text, [](char c) { return c == '{' || c == '}'; });
    return text;
}

/// Whether every value of the domain is an integer from `lowest` on, and one of them a number of ranks.
bool gives_ranks(const space::Domain& domain, std::int64_t lowest) {
    const auto fits = [lowest](const space::Value& value) {
        return value.is_int() && value.as_int() >= lowest && value.as_int() <= most_ranks;
    };
    const auto all_fit = [&](const std::vector<space::Value>& values) {
        return std::ranges::all_of(values, fits) &&
               std::ranges::any_of(values, [](const space::Value& value) { return value.as_int() > 0; });
    };
    if (const auto* range = std::get_if<space::IntRange>(&domain))
        return range->lower >= lowest && range->upper <= most_ranks &&
               space::value_at(domain, *space::cardinality(domain) - 1).as_int() >= 1;
    if (const auto* constant = std::get_if<space::Constant>(&domain)) return all_fit({constant->value});
    if (const auto* choice = std::get_if<space::Choice>(&domain)) return all_fit(choice->values);
    if (const auto* grid = std::get_if<space::Grid>(&domain)) return all_fit(grid->values);
    return false;
}

/// `gpus = "{name}"`, which may be 0.
bool gives_gpus_to_some(const ParseContext& context, const std::string& parameter) {
    const auto entry = std::ranges::find(context.entries, parameter, &SpaceEntry::name);
    return entry != context.entries.end() && entry->domain && gives_ranks(*entry->domain, 0) &&
           space::contains(*entry->domain, space::Value(0));
}

bool gives_gpus_to_some(const ParseContext& context) {
    const Node* resources = context.root.find("resources");
    const Node* gpus = resources != nullptr ? resources->find("gpus") : nullptr;
    return gpus != nullptr && gpus->is(Node::Kind::string) && gives_gpus_to_some(context, parameter_of(gpus->text));
}

/// Reports a request for more ranks than there are, if that is known. `parameter`: gives the number; null: `node` does.
/// (Where some trials have GPUs, workers of both kinds are needed, and the job's layout is checked for both.)
void tell_missing_ranks(ParseContext& context, const Node& node, const std::string& key, const SpaceEntry* parameter) {
    if (!context.rank_check || gives_gpus_to_some(context)) return;
    StudySpec asks;
    asks.resources.ranks = static_cast<std::uint32_t>(node.integer);
    if (parameter != nullptr) {
        asks.resources.ranks_parameter = parameter->name;
        asks.space = space::SearchSpace({{parameter->name, *parameter->domain, {}}});
    }
    if (const std::string why = context.rank_check(asks.max_ranks_per_trial()); !why.empty())
        context.mistakes.value(node, key, why);
}

void check_rank_parameter(ParseContext& context, const Node& node, const std::string& key, const std::string& name,
                          std::int64_t lowest) {
    if (!context.names_are_known) return;
    const auto& entries = context.entries;
    const auto entry = std::ranges::find(entries, name, &SpaceEntry::name);
    if (entry == entries.end()) {
        if (!may_name_parameter(entries, name))
            context.mistakes.value(
                node, key, "[space] has no parameter '" + name + "'" + base::suggestion(name, names_of(entries)));
        return;
    }
    if (!entry->is_parameter) return;
    if (entry->domain && gives_ranks(*entry->domain, lowest)) tell_missing_ranks(context, node, key, &*entry);
    if (entry->conditions.any())
        context.mistakes.value(node, key, "the parameter '" + name + "' has a condition; every trial needs ranks");
    if (entry->domain && !gives_ranks(*entry->domain, lowest))
        context.mistakes.value(node, key,
                               "the parameter '" + name + "' must give integers >= " + std::to_string(lowest) +
                                   (lowest == 0 ? ", not only 0" : "") + ", not " + space::text(*entry->domain));
}

/// The number of ranks of a trial, which both `ranks` and `gpus` give, as an integer or by a parameter.
struct RankCount {
    std::uint32_t ranks = 1;
    std::string parameter; ///< "{name}"
    friend bool operator==(const RankCount&, const RankCount&) = default;
};

/// nullopt: absent or wrong.
std::optional<RankCount> take_count(ParseContext& context, TableReader& table, std::string_view name,
                                    std::int64_t lowest) {
    const Node* node = table.take(name);
    if (node == nullptr) return std::nullopt;
    const std::string key = "resources." + std::string(name);
    if (!node->is(Node::Kind::string)) {
        const auto count = table.integer(name, lowest, most_ranks);
        if (!count) return std::nullopt;
        tell_missing_ranks(context, *node, key, nullptr);
        return RankCount{static_cast<std::uint32_t>(*count), ""};
    }
    const std::string parameter = parameter_of(node->text);
    if (parameter.empty()) {
        context.condition_names.push_back(without_braces(node->text)); // probably meant as a parameter
        context.mistakes.value(*node, key,
                               "needs an integer >= " + std::to_string(lowest) +
                                   ", or \"{name}\" for a parameter of [space], not " + in_quotes(node->text));
        return std::nullopt;
    }
    check_rank_parameter(context, *node, key, parameter, lowest);
    return RankCount{1, parameter};
}

void check_may_use_gpus(ParseContext& context, TableReader& table) {
    if (context.info != nullptr && !context.info->may_use_gpus)
        table.complain("gpus", "'" + context.info->name + "' trains on CPUs; write ranks instead of gpus");
}

constexpr double least_share = 0.02;
constexpr double most_share = 0.5;

/// `gpus = 0.25`: one rank with a share of a GPU.
void parse_gpu_share(ParseContext& context, TableReader& table, const std::optional<RankCount>& ranks) {
    ResourceSpec& resources = context.spec.resources;
    constexpr double any = std::numeric_limits<double>::infinity();
    const auto share = table.number("gpus", -any, any);
    if (!share) return;
    if (*share < least_share || *share > most_share)
        return table.complain("gpus",
                              "needs a whole number of GPUs, or a share of one from 0.02 to 0.5 (0.25: four "
                              "trials on each GPU)");
    if (ranks && *ranks != RankCount{1, ""})
        return table.complain("gpus",
                              "a share of a GPU is for trials of one rank: ranks of a trial never share a GPU; "
                              "leave out resources.ranks");
    resources.gpus = GpuUse::one_per_rank;
    resources.gpu_share = *share;
}

/// `gpus = "{name}"`, which may be 0: `ranks` says how many ranks a trial without GPUs has.
void parse_some_gpus(ParseContext& context, TableReader& table, const std::string& parameter,
                     const std::optional<RankCount>& ranks) {
    ResourceSpec& resources = context.spec.resources;
    resources.gpus = GpuUse::some;
    resources.ranks_parameter = parameter;
    if (ranks && !ranks->parameter.empty())
        table.complain("gpus", "may be 0: then resources.ranks, the ranks of trials without GPUs, is a number");
    if (context.spec.deterministic)
        table.complain("gpus",
                       "may be 0, which does not go with study.deterministic: trials with and without GPUs "
                       "wait for different workers");
}

void parse_gpus(ParseContext& context, TableReader& table, const std::optional<RankCount>& ranks) {
    ResourceSpec& resources = context.spec.resources;
    const Node* node = table.has("gpus") ? table.table()->find("gpus") : nullptr;
    if (node != nullptr && node->is(Node::Kind::real)) {
        parse_gpu_share(context, table, ranks);
        return check_may_use_gpus(context, table);
    }
    const auto gpus = take_count(context, table, "gpus", 0);
    if (!gpus) return;
    if (*gpus == RankCount{0, ""}) {
        resources.gpus = GpuUse::none;
        return;
    }
    check_may_use_gpus(context, table);
    if (gives_gpus_to_some(context, gpus->parameter)) return parse_some_gpus(context, table, gpus->parameter, ranks);
    resources.gpus = GpuUse::one_per_rank;
    if (ranks && *ranks != *gpus)
        table.complain("gpus", "means so many ranks with one GPU each; leave out resources.ranks");
    resources.ranks = gpus->ranks;
    resources.ranks_parameter = gpus->parameter;
}

} // namespace

void parse_resources(ParseContext& context) {
    TableReader table = context.reader("resources");
    ResourceSpec& resources = context.spec.resources;
    const auto ranks = take_count(context, table, "ranks", 1);
    if (ranks) {
        resources.ranks = ranks->ranks;
        resources.ranks_parameter = ranks->parameter;
    }
    parse_gpus(context, table, ranks);
    read_members(table, context.spec, context.trust_trainable);
    table.finish();
}

void check_kinds_of_workers(ParseContext& context) {
    if (context.spec.resources.gpus != GpuUse::some || !context.has_scheduler) return;
    if (!context.spec.scheduler.algorithm->explores) return;
    const Node& gpus = *context.root.find("resources")->find("gpus");
    context.mistakes.value(
        gpus, "resources.gpus",
        "may be 0, which does not go with scheduler.type = " + in_quotes(context.spec.scheduler.algorithm->name) +
            ": its trials wait for each other and take over each other's states; give each of them "
            "GPUs, or none");
}

} // namespace ranktune::study
