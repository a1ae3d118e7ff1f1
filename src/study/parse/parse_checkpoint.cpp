// SPDX-License-Identifier: Apache-2.0
// [checkpoint]: when running trials save their state.
#include "study/parse/key_rows.hpp"
#include "study/parse/parse_tables.hpp"

namespace ranktune::study {
namespace {

using Interval = CheckpointSpec::Interval;

constexpr std::string_view accepted = "a number of iterations, a duration such as \"10m\", \"auto\" or \"none\"";

void parse_interval(ParseContext& context, TableReader& table, const Node& node) {
    CheckpointSpec& checkpoint = context.spec.checkpoint;
    if (node.is(Node::Kind::integer)) {
        checkpoint.interval = Interval::iterations;
        checkpoint.iterations = static_cast<Iteration>(table.integer("interval", 1, most_iterations).value_or(1));
    } else if (!node.is(Node::Kind::string)) {
        context.mistakes.value(node, "checkpoint.interval",
                               "needs " + std::string(accepted) + ", not " + std::string(kind_text(node)));
    } else if (node.text == "auto") {
        checkpoint.interval = Interval::automatic;
    } else if (node.text == "none") {
        checkpoint.interval = Interval::none;
    } else if (node.text.empty() || node.text[0] < '0' || node.text[0] > '9') {
        context.mistakes.value(node, "checkpoint.interval",
                               "needs " + std::string(accepted) + ", not " + in_quotes(node.text));
    } else {
        checkpoint.interval = Interval::time;
        checkpoint.time = table.duration("interval").value_or(std::chrono::minutes(1));
    }
}

std::string with_rungs(const Algorithms& algorithms) {
    std::vector<std::string_view> names;
    for (const auto& scheduler : algorithms.schedulers)
        if (scheduler->has_rungs) names.push_back(scheduler->name);
    return either(names);
}

/// Call after parse_scheduler.
void check_at_rungs(ParseContext& context, TableReader& table, bool can_save) {
    if (!context.spec.checkpoint.at_rungs) return;
    if (context.has_scheduler && !context.spec.scheduler.algorithm->has_rungs)
        table.refuse("at_rungs", "only scheduler.type = " + with_rungs(context.known.algorithms) + " has rungs");
    else if (!can_save)
        table.refuse("at_rungs", "the trainable '" + context.info->name + "' cannot save its state");
}

/// Written by ranktune into resolved files, because the tuner must know it even if this program does not have the
/// trainable.
void parse_supported(ParseContext& context, TableReader& table, bool can_save) {
    CheckpointSpec& checkpoint = context.spec.checkpoint;
    const Node* node = table.take("supported");
    checkpoint.supported = can_save;
    if (node == nullptr) return;
    checkpoint.supported = table.boolean("supported").value_or(can_save);
    if (context.info != nullptr && checkpoint.supported != can_save)
        context.mistakes.value(*node, "checkpoint.supported",
                               "the trainable '" + context.info->name + "' can" + (can_save ? "" : "not") +
                                   " save its state; leave this key out");
}

} // namespace

void parse_checkpoint(ParseContext& context) {
    TableReader table = context.reader("checkpoint");
    CheckpointSpec& checkpoint = context.spec.checkpoint;
    const Node* interval = table.take("interval");
    const bool can_save = context.info == nullptr || context.info->can_checkpoint;
    if (interval != nullptr) {
        parse_interval(context, table, *interval);
    } else if (!can_save) {
        checkpoint.interval = Interval::none;
    }
    if (interval != nullptr && checkpoint.interval != Interval::none && !can_save)
        context.mistakes.value(*interval, "checkpoint.interval",
                               "the trainable '" + context.info->name + "' cannot save its state; write \"none\"");
    if (checkpoint.interval == Interval::automatic)
        checkpoint.mean_time_between_failures =
            table.duration("mean_time_between_failures").value_or(checkpoint.mean_time_between_failures);
    else if (table.has("mean_time_between_failures"))
        table.refuse("mean_time_between_failures", "only goes with interval = \"auto\"");
    read_members(table, context.spec, context.trust_trainable);
    check_at_rungs(context, table, can_save);
    parse_supported(context, table, can_save);
    checkpoint.max_bytes = table.bytes("max_bytes");
    if (checkpoint.every_trial && checkpoint.max_bytes)
        table.complain("every_trial", "keeps a checkpoint of each trial, whatever it takes: leave out max_bytes");
    table.finish();
}

} // namespace ranktune::study
