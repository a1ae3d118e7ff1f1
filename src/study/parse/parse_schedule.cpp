// SPDX-License-Identifier: Apache-2.0
// [scheduler.schedule]: which values hyper-parameters have from given iterations on.
#include "ranktune/base/text.hpp"
#include "study/options.hpp"
#include "study/parse/parse_tables.hpp"
#include "study/schedule.hpp"

namespace ranktune::study {
namespace {

/// nullopt: wrong, which has been told.
std::optional<Scheduled::Change> read_change(ParseContext& context, const Node& node, const std::string& key) {
    const bool is_pair = node.is(Node::Kind::array) && node.items.size() == 2;
    if (!is_pair || !node.items[0].is(Node::Kind::integer) || node.items[0].integer < 0) {
        context.mistakes.value(node, key,
                               "takes a list of [iterations, value], such as [[10, 0.05], [20, 0.01]]: after so many "
                               "iterations it has this value");
        return std::nullopt;
    }
    const Node& after = node.items[0];
    if (context.has_max_iterations && static_cast<Iteration>(after.integer) >= context.spec.max_iterations) {
        context.mistakes.value(
            after, key,
            "no trial goes on after " + std::to_string(after.integer) +
                " iterations: study.max_iterations = " + std::to_string(context.spec.max_iterations));
        return std::nullopt;
    }
    auto value = to_value(node.items[1], key, context.mistakes);
    if (!value) return std::nullopt;
    return Scheduled::Change{static_cast<Iteration>(after.integer), std::move(*value)};
}

void read_parameter(ParseContext& context, const Node& node, const std::string& name) {
    const std::string key = "scheduler.schedule." + name;
    const std::size_t before = context.mistakes.size();
    Scheduled scheduled{name, {}};
    const Node& list = node;
    if (!list.is(Node::Kind::array)) static_cast<void>(read_change(context, list, key));
    for (const Node& item : list.items)
        if (auto change = read_change(context, item, key)) scheduled.changes.push_back(std::move(*change));
    if (context.mistakes.size() != before) return;
    if (const std::string problem = changes_problem(scheduled); !problem.empty())
        return context.mistakes.value(node, key, problem);
    if (!context.space_is_valid) return; // its mistakes come first
    const space::Parameter* parameter = context.spec.space.find(name);
    if (parameter == nullptr) {
        const std::vector<std::string> names = names_of(context.entries);
        const std::string meant = base::suggestion(name, names);
        return context.mistakes.key(
            node, key,
            "no hyper-parameter of [space] has this name" + (meant.empty() ? "; it has " + base::join(names) : meant));
    }
    for (Scheduled::Change& change : scheduled.changes) change.value = as_in(parameter->domain, change.value);
    if (const std::string problem = schedule_problem(scheduled, *parameter, context.info); !problem.empty())
        return context.mistakes.value(node, key, problem);
    context.spec.scheduler.schedule.push_back(std::move(scheduled));
}

} // namespace

void parse_schedule(ParseContext& context, TableReader& scheduler) {
    const SchedulerInfo& algorithm = *context.spec.scheduler.algorithm;
    if (!algorithm.schedules) {
        if (scheduler.has("schedule"))
            scheduler.refuse("schedule",
                             "type = " + in_quotes(algorithm.name) + " changes nothing at given iterations");
        return;
    }
    const Node* table = scheduler.take("schedule");
    const std::size_t before = context.mistakes.size();
    if (table != nullptr && !table->is(Node::Kind::table)) {
        context.mistakes.value(*table, "scheduler.schedule",
                               "is a table: [scheduler.schedule] with a line for each hyper-parameter that changes");
    } else if (table != nullptr) {
        for_each_leaf(*table, [&](const std::string& name, const Node& node) { read_parameter(context, node, name); });
    }
    if (context.mistakes.size() != before || !context.spec.scheduler.schedule.empty() || !context.space_is_valid)
        return;
    scheduler.complain("schedule",
                       "needs a line for each hyper-parameter that changes, such as lr = [[10, 0.05], [20, "
                       "0.01]]: after so many iterations it has this value");
}

} // namespace ranktune::study
