// SPDX-License-Identifier: Apache-2.0
// [[searcher.start]]: points to try first.
#include <map>

#include "study/options.hpp"
#include "study/parse/parse_tables.hpp"
#include "study/schedule.hpp"
#include "study/start.hpp"

namespace ranktune::study {
namespace {

/// The values of one point, by name, with their places.
class StartReader {
  public:
    explicit StartReader(ParseContext& context) : context_(context) {}

    void read(const Node& table, const std::string& prefix) {
        for (const auto& [key, node] : table.members) {
            const std::string name = prefix + key;
            if (node.is(Node::Kind::table)) {
                read(node, name + ".");
                continue;
            }
            auto value = to_value(node, "searcher.start." + name, context_.mistakes);
            if (!value) continue;
            const space::Parameter* parameter = context_.spec.space.find(name);
            point_.set(name, parameter == nullptr ? *value : as_in(parameter->domain, *value));
            places_[name] = &node;
        }
    }

    void finish(const Node& table) {
        if (table.members.empty())
            context_.mistakes.value(table, "searcher.start",
                                    "gives no value; the searcher suggests such points by itself");
        if (!context_.space_is_valid) return; // its mistakes come first
        for (const StartProblem& problem : start_problems(point_, context_.spec.space)) {
            const Node& node = *places_.at(problem.name);
            const std::string key = "searcher.start." + problem.name;
            if (problem.in_value)
                context_.mistakes.value(node, key, problem.message);
            else
                context_.mistakes.key(node, key, problem.message);
        }
        context_.spec.searcher.start.push_back(std::move(point_));
    }

  private:
    ParseContext& context_;
    space::Configuration point_;
    std::map<std::string, const Node*> places_;
};

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
    for (const Node& item : points->items) {
        StartReader reader(context);
        reader.read(item, "");
        reader.finish(item);
    }
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
