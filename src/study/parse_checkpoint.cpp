// SPDX-License-Identifier: Apache-2.0
// [checkpoint]: when running trials save their state.
#include "ranktune/base/text.hpp"
#include "study/parse_tables.hpp"

namespace ranktune::study {
namespace {

using Interval = CheckpointSpec::Interval;

constexpr std::int64_t most_iterations = 1'000'000'000'000'000;
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
    table.finish();
}

} // namespace ranktune::study
