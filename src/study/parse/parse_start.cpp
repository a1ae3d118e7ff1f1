// SPDX-License-Identifier: Apache-2.0
// [[searcher.start]]: points to try first.
#include <map>

#include "study/options.hpp"
#include "study/parse/parse_tables.hpp"
#include "study/schedule.hpp"
#include "study/start.hpp"

namespace ranktune::study {
namespace {

void read_start(ParseContext& context, const Node& table) {
    if (table.members.empty())
        context.mistakes.value(table, "searcher.start", "gives no value; the searcher suggests such points by itself");
    space::Configuration point;
    std::map<std::string, const Node*> places; // of its values
    for_each_leaf(table, [&](const std::string& name, const Node& node) {
        auto value = to_value(node, "searcher.start." + name, context.mistakes);
        if (!value) return;
        const space::Parameter* parameter = context.spec.space.find(name);
        point.set(name, parameter == nullptr ? *value : as_in(parameter->domain, *value));
        places[name] = &node;
    });
    if (!context.space_is_valid) return; // its mistakes come first
    for (const StartProblem& problem : start_problems(point, context.spec.space)) {
        const Node& node = *places.at(problem.name);
        const std::string key = "searcher.start." + problem.name;
        if (problem.in_value)
            context.mistakes.value(node, key, problem.message);
        else
            context.mistakes.key(node, key, problem.message);
    }
    context.spec.searcher.start.push_back(std::move(point));
}

} // namespace

void parse_start(ParseContext& context, TableReader& searcher) {
    const Node* points = searcher.take("start");
    if (points == nullptr) return;
    bool all_tables = points->is(Node::Kind::array);
    for (const Node& item : points->items) all_tables = all_tables && item.is(Node::Kind::table);
    if (!all_tables) {
        context.mistakes.value(*points, "searcher.start",
                               "is a list of points: [[searcher.start]] for each, with lines such as lr = 0.1");
        return;
    }
    for (const Node& item : points->items) read_start(context, item);
}

void check_start_count(ParseContext& context) {
    const std::size_t points = context.spec.searcher.start.size() * context.spec.searcher.repeats;
    if (!context.has_num_trials || context.spec.num_trials == 0 || points <= context.spec.num_trials) return;
    const Node* start = context.root.find("searcher")->find("start");
    context.mistakes.value(*start, "searcher.start",
                           std::to_string(points) + (context.spec.searcher.repeats > 1 ? " trials" : " points") +
                               ", but study.num_trials = " + std::to_string(context.spec.num_trials) +
                               " trials; raise it, or leave out points");
}

} // namespace ranktune::study
