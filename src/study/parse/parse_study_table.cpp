// SPDX-License-Identifier: Apache-2.0
// [study]: what is optimised and how much may be spent on it.
#include <algorithm>

#include "ranktune/base/text.hpp"
#include "study/parse/key_rows.hpp"
#include "study/parse/parse_tables.hpp"

namespace ranktune::study {
namespace {

constexpr Word<Mode> modes[] = {{name(Mode::min), Mode::min}, {name(Mode::max), Mode::max}};

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

/// study.metric of several objectives; nothing: there is a mistake.
std::vector<std::string> metrics_of(const ParseContext& context, const Node& list) {
    const std::string key = "study.metric";
    const auto metrics = texts_of(context, list, key);
    const bool twice =
        std::ranges::any_of(metrics, [&](const auto& each) { return std::ranges::count(metrics, each) > 1; });
    const std::size_t count = list.items.size();
    if (twice || count < 1 || count > Score::max_objectives) {
        context.mistakes.value(list, key,
                               "needs 1 to " + std::to_string(Score::max_objectives) +
                                   " different metrics; put limits on others into study.constraints");
        return {};
    }
    return metrics;
}

/// study.mode of as many objectives; nothing: there is a mistake.
std::vector<Mode> modes_of(const ParseContext& context, const Node& node, std::size_t count) {
    const std::string key = "study.mode";
    if (!node.is(Node::Kind::array) || node.items.size() != count) {
        context.mistakes.value(node, key,
                               "needs a list with \"min\" or \"max\" for each of the " + std::to_string(count) +
                                   " metrics of study.metric, as in " +
                                   (count == 1 ? "[\"max\"]" : "[\"max\", \"min\"]"));
        return {};
    }
    std::vector<Mode> chosen;
    for (const Node& item : node.items) {
        const auto word = std::ranges::find_if(
            modes, [&](const auto& each) { return item.is(Node::Kind::string) && each.text == item.text; });
        if (word == std::end(modes)) {
            const std::string what = text_or_kind(item);
            context.mistakes.value(item, key, "unknown value " + what + R"(; accepted: "min" or "max")");
            return {};
        }
        chosen.push_back(word->value);
    }
    return chosen;
}

/// `metric` and `mode` as lists.
void parse_objectives(const ParseContext& context, TableReader& table, const Node& list) {
    const auto metrics = metrics_of(context, list);
    const Node* mode = table.take("mode");
    if (mode == nullptr || metrics.empty()) return;
    const auto chosen = modes_of(context, *mode, metrics.size());
    if (chosen.empty()) return;
    Objective& objective = context.spec.objective;
    objective.metric = metrics[0];
    objective.mode = chosen[0];
    for (std::size_t i = 1; i < metrics.size(); ++i) objective.others.push_back({metrics[i], chosen[i]});
}

void parse_objective(const ParseContext& context, TableReader& table) {
    table.require("metric", "the name of the metric to optimise");
    table.require("mode", "\"min\" or \"max\"");
    const Node* metric = table.take("metric");
    if (metric != nullptr && metric->is(Node::Kind::array)) return parse_objectives(context, table, *metric);
    Objective& objective = context.spec.objective;
    if (const auto name = table.string("metric")) {
        objective.metric = *name;
        if (name->empty()) table.complain("metric", "needs a name");
    }
    objective.mode = table.word("mode", modes).value_or(Mode::max);
}

/// A deterministic study needs a fixed number of slots and no clocks.
void check_deterministic(TableReader& table, const StudySpec& spec) {
    if (!spec.deterministic) return;
    const Node* slots = table.take("max_concurrent");
    if (slots == nullptr || (slots->is(Node::Kind::integer) && slots->integer == 0))
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

std::vector<std::string> texts_of(const ParseContext& context, const Node& list, const std::string& key) {
    std::vector<std::string> texts;
    for (const Node& item : list.items) {
        if (item.is(Node::Kind::string) && !item.text.empty()) {
            texts.push_back(item.text);
            continue;
        }
        context.mistakes.value(item, key, "needs a list of strings, not of " + std::string(kind_text(item)));
        return {};
    }
    return texts;
}

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
                "needs a comparison in quotes, METRIC <= NUMBER or METRIC >= NUMBER, not " + text_or_kind(item));
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
    parse_objective(context, table);
    static_cast<void>(table.take("constraints")); // parse_constraints

    context.has_num_trials = table.has("num_trials") || table.is_wrong();
    spec.num_trials = static_cast<std::uint32_t>(table.integer("num_trials", 1, most_trials).value_or(0));
    table.require("max_iterations", "the ceiling of iterations that a trial may train");
    if (const auto ceiling = table.integer("max_iterations", 1, most_iterations)) {
        spec.max_iterations = static_cast<Iteration>(*ceiling);
        context.has_max_iterations = true;
    }
    read_members(table, spec, context.trust_trainable);
    check_deterministic(table, spec);
    table.finish();
}

} // namespace ranktune::study
