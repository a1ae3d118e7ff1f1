// SPDX-License-Identifier: Apache-2.0
// [scheduler.explore]: which hyper-parameters change while a trial trains, and how.
#include <algorithm>
#include <iterator>

#include "ranktune/base/text.hpp"
#include "study/explore.hpp"
#include "study/parse/parse_tables.hpp"

namespace ranktune::study {
namespace {

constexpr const char* explore_takes =
    "takes \"perturb\", \"resample\", \"keep\", or a list of factors such as [0.8, 1.2]";

bool is_kept(const Node& node) { return node.is(Node::Kind::string) && node.text == "keep"; }

/// Nothing: wrong, which has been told.
std::optional<std::vector<double>> read_factors(ParseContext& context, const Node& node, const std::string& key) {
    if (node.is(Node::Kind::string) && node.text == "resample") return std::vector<double>{};
    if (node.is(Node::Kind::string) && node.text == "perturb")
        return std::vector<double>(std::begin(perturb_factors), std::end(perturb_factors));
    std::vector<double> factors;
    if (node.is(Node::Kind::array))
        for (const Node& item : node.items)
            if (item.is_number())
                factors.push_back(item.is(Node::Kind::integer) ? static_cast<double>(item.integer) : item.real);
    if (!factors.empty() && factors.size() == node.items.size()) return factors;
    const std::string got = node.is(Node::Kind::array) ? "this list" : text_or_kind(node);
    context.mistakes.value(node, key, std::string(explore_takes) + ", not " + got);
    return std::nullopt;
}

/// "; did you mean 'lr'?", or which there are.
std::string names_text(const ParseContext& context, const std::string& name) {
    std::vector<std::string> names = names_of(context.entries);
    if (context.space_is_valid) names = explorable(context.spec.space, context.spec.resources, context.info);
    if (std::string meant = base::suggestion(name, names); !meant.empty()) return meant;
    return names.empty() ? "; [space] has none that may change" : "; those that may change: " + base::join(names);
}

void read_entry(ParseContext& context, const Node& node, const std::string& name) {
    const std::string key = "scheduler.explore." + name;
    const auto factors = is_kept(node) ? std::vector<double>{} : read_factors(context, node, key);
    if (!context.space_is_valid) return; // its mistakes come first
    const space::Parameter* parameter = context.spec.space.find(name);
    if (parameter == nullptr) {
        context.mistakes.key(node, key, "no hyper-parameter of [space] has this name" + names_text(context, name));
        return;
    }
    if (!factors || is_kept(node)) return;
    Explored explored{name, *factors};
    const std::string problem = explore_problem(explored, *parameter, context.spec.resources, context.info);
    if (!problem.empty()) return context.mistakes.value(node, key, problem);
    context.spec.scheduler.explore.push_back(std::move(explored));
}

} // namespace

void parse_explore(ParseContext& context, TableReader& scheduler) {
    const bool explores = context.spec.scheduler.algorithm->explores;
    if (!explores) {
        if (scheduler.has("explore"))
            scheduler.refuse("explore", "type = " + in_quotes(context.spec.scheduler.algorithm->name) +
                                            " changes nothing while a trial trains");
        return;
    }
    const Node* table = scheduler.take("explore");
    const std::size_t before = context.mistakes.size();
    if (table != nullptr && !table->is(Node::Kind::table)) {
        context.mistakes.value(*table, "scheduler.explore",
                               "is a table: [scheduler.explore] with a line for each hyper-parameter that changes");
    } else if (table != nullptr) {
        for_each_leaf(*table, [&](const std::string& name, const Node& node) { read_entry(context, node, name); });
    }
    if (context.mistakes.size() != before || table != nullptr || !context.space_is_valid) return;
    scheduler.complain("explore",
                       "needs a line for each hyper-parameter that is to change while a trial trains, such "
                       "as lr = \"perturb\"" +
                           names_text(context, "") + "; explore = {} if trials shall only take over states");
}

} // namespace ranktune::study
