// SPDX-License-Identifier: Apache-2.0
// [stop]: limits of one trial.
#include <cmath>
#include <optional>

#include "base/number_in.hpp"
#include "ranktune/base/text.hpp"
#include "study/parse/key_rows.hpp"
#include "study/parse/parse_tables.hpp"

namespace ranktune::study {
namespace {

std::optional<double> to_number(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto value = base::number_in<double>(text);
    return value && std::isfinite(*value) ? value : std::nullopt;
}

void parse_metric(ParseContext& context, const Node& node) {
    const std::string key = "stop.metric";
    if (node.is(Node::Kind::string)) {
        if (const auto stop = to_metric_stop(node.text)) {
            context.spec.stop.metrics.push_back(*stop);
            check_metric(context, node, key, stop->metric);
            return;
        }
    }
    context.mistakes.value(
        node, key, "needs a comparison in quotes, METRIC >= NUMBER or METRIC <= NUMBER, not " + text_or_kind(node));
}

void parse_plateau(ParseContext& context, const Node& node) {
    TableReader table(&node, "stop.plateau", context.keys, context.mistakes);
    if (table.table() == nullptr) return;
    PlateauStop& plateau = context.spec.stop.plateau.emplace();
    plateau.metric = context.spec.objective.metric;
    if (const auto metric = table.string("metric")) {
        plateau.metric = *metric;
        check_metric(context, *table.take("metric"), "stop.plateau.metric", *metric);
    }
    read_members(table, context.spec, context.trust_trainable);
    table.finish();
}

void parse_study_stop(ParseContext& context, const Node& node) {
    TableReader table(&node, "stop.study", context.keys, context.mistakes);
    StudySpec& spec = context.spec;
    read_members(table, spec, context.trust_trainable);
    if (const auto time = table.duration("time")) {
        const bool set_later = !table.take("time")->override_by.empty(); // the file may name it study.time_budget
        if (spec.time_budget && !set_later)
            table.refuse("time", "is study.time_budget, which is given, too; give one of them");
        if (spec.deterministic)
            table.refuse("time",
                         "does not go with study.deterministic: what a study does in a given time depends on "
                         "the machine; limit iterations or trials_ok instead");
        spec.time_budget = time;
    }
    if (spec.stop.study.target && spec.objective.several())
        table.complain("target", "is for a study with one metric: several have no best value");
    if (spec.stop.study.target && spec.searcher.repeats > 1)
        table.complain("target", "does not go with searcher.repeats, where the best trial is the best by its mean");
    table.finish();
}

} // namespace

std::optional<MetricStop> to_metric_stop(std::string_view text) {
    const auto at = text.find_first_of("<>=!");
    if (at == std::string_view::npos || at + 2 > text.size()) return std::nullopt;
    const std::string_view op = text.substr(at, 2);
    if (op != ">=" && op != "<=") return std::nullopt;
    const std::string_view metric = base::trimmed(text.substr(0, at));
    const auto threshold = to_number(base::trimmed(text.substr(at + 2)));
    if (metric.empty() || !threshold) return std::nullopt;
    return MetricStop{std::string(metric), *threshold, op == ">=" ? Mode::max : Mode::min};
}

void parse_stop(ParseContext& context) {
    TableReader table = context.reader("stop");
    if (const Node* metric = table.take("metric")) {
        if (metric->is(Node::Kind::array)) {
            for (const Node& item : metric->items) parse_metric(context, item);
        } else {
            parse_metric(context, *metric);
        }
    }
    read_members(table, context.spec, context.trust_trainable);
    if (context.spec.deterministic && context.spec.stop.trial_time)
        table.refuse("time",
                     "does not go with study.deterministic: how long an iteration takes depends on the machine");
    if (const Node* plateau = table.take("plateau")) parse_plateau(context, *plateau);
    if (const Node* study = table.take("study")) parse_study_stop(context, *study);
    table.finish();
}

} // namespace ranktune::study
