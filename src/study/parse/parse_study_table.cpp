// SPDX-License-Identifier: Apache-2.0
// [study]: what is optimised and how much may be spent on it.
#include <algorithm>
#include <limits>

#include "ranktune/base/text.hpp"
#include "study/parse/parse_tables.hpp"

namespace ranktune::study {
namespace {

constexpr Word<Mode> modes[] = {{"min", Mode::min}, {"max", Mode::max}};

constexpr std::int64_t most_trials = std::numeric_limits<std::int32_t>::max();
constexpr std::uint32_t most_slots = 100'000;

constexpr std::size_t longest_name = 100;

void parse_name(TableReader& table, StudySpec& spec) {
    table.require("name", "a short name, which is also the folder of the results");
    if (const auto name = table.string("name")) {
        spec.name = *name;
        if (name->size() > longest_name)
            table.complain("name", "has " + std::to_string(name->size()) +
                                       " characters; a name, which is also that of a "
                                       "folder, has at most " +
                                       std::to_string(longest_name));
        else if (!is_study_name(*name))
            table.complain("name",
                           "letters, digits, '_', '-' and '.' only, beginning with a letter, digit or '_', at "
                           "most 100: " +
                               in_quotes(*name));
    }
}

/// A deterministic study needs a fixed number of slots and no clocks.
void parse_deterministic(TableReader& table, StudySpec& spec, bool slots_are_missing) {
    spec.deterministic = table.boolean("deterministic").value_or(false);
    if (!spec.deterministic) return;
    if (slots_are_missing)
        table.complain("max_concurrent",
                       "is needed by a deterministic study: the number of trials side by side, which may not depend on "
                       "the ranks that a start happens to have");
    if (spec.max_concurrent > most_slots)
        table.complain("max_concurrent", "a deterministic study has at most " + std::to_string(most_slots) + " slots");
    if (spec.time_budget)
        table.refuse("time_budget",
                     "does not go with study.deterministic: what a study does in a given time depends on "
                     "the machine; limit num_trials instead");
}

} // namespace

bool is_study_name(const std::string& name) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    return !name.empty() && name.size() <= longest_name && plain(name[0]) &&
           std::ranges::all_of(name, [&](char c) { return plain(c) || c == '-' || c == '.'; });
}

void check_metric(const ParseContext& context, const Node& node, const std::string& key, const std::string& metric) {
    if (context.info == nullptr || context.info->metrics.empty()) return;
    const auto& metrics = context.info->metrics;
    if (std::ranges::find(metrics, metric) != metrics.end()) return;
    const std::string_view best = base::nearest(metric, metrics);
    context.mistakes.value(node, key,
                           "the trainable '" + context.info->name + "' does not report " + in_quotes(metric) +
                               (best.empty() ? "" : "; did you mean '" + std::string(best) + "'?") +
                               "; it reports: " + base::join(metrics));
}

void parse_constraints(ParseContext& context) {
    const std::string key = "study.constraints";
    const Node* study = context.root.find("study");
    const Node* list = study == nullptr || !study->is(Node::Kind::table) ? nullptr : study->find("constraints");
    if (list == nullptr) return;
    if (!list->is(Node::Kind::array))
        return context.mistakes.value(*list, key, "needs a list of comparisons: [\"METRIC <= NUMBER\", ...]");
    for (const Node& item : list->items) {
        const auto limit = item.is(Node::Kind::string) ? to_metric_stop(item.text) : std::nullopt;
        if (!limit) {
            context.mistakes.value(
                item, key,
                "needs a comparison in quotes, METRIC <= NUMBER or METRIC >= NUMBER, not " +
                    (item.is(Node::Kind::string) ? in_quotes(item.text) : std::string(kind_text(item))));
            continue;
        }
        check_metric(context, item, key, limit->metric);
        context.spec.objective.constraints.push_back({limit->metric, limit->threshold, limit->mode == Mode::min});
    }
}

void parse_study_table(ParseContext& context) {
    TableReader table = context.reader("study");
    StudySpec& spec = context.spec;

    parse_name(table, spec);
    table.require("metric", "the name of the metric to optimise");
    if (const auto metric = table.string("metric")) {
        spec.objective.metric = *metric;
        if (metric->empty()) table.complain("metric", "needs a name");
    }
    table.require("mode", "\"min\" or \"max\"");
    spec.objective.mode = table.word("mode", modes).value_or(Mode::max);

    static_cast<void>(table.take("constraints")); // parse_constraints

    context.has_num_trials = table.has("num_trials") || table.is_wrong();
    spec.num_trials = static_cast<std::uint32_t>(table.integer("num_trials", 1, most_trials).value_or(0));
    table.require("max_iterations", "the ceiling of iterations that a trial may train");
    if (const auto ceiling = table.integer("max_iterations", 1, most_iterations)) {
        spec.max_iterations = static_cast<Iteration>(*ceiling);
        context.has_max_iterations = true;
    }
    spec.seed =
        static_cast<std::uint64_t>(table.integer("seed", 0, std::numeric_limits<std::int64_t>::max()).value_or(0));
    const auto slots = table.integer("max_concurrent", 0, most_trials);
    spec.max_concurrent = static_cast<std::uint32_t>(slots.value_or(0));
    spec.time_budget = table.duration("time_budget");
    parse_deterministic(table, spec, spec.max_concurrent == 0 && (slots || !table.has("max_concurrent")));
    table.finish();
}

} // namespace ranktune::study
