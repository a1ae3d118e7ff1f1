// SPDX-License-Identifier: Apache-2.0
// [scheduler]: which trials go on.
#include "study/parse/parse_algorithm.hpp"

namespace ranktune::study {
namespace {

/// "the trainable 'x' cannot save checkpoints"
std::string without_checkpoints(const ParseContext& context) {
    if (context.spec.trainable.program) return "the program cannot save checkpoints (trainable.checkpoints = false)";
    return "the trainable '" + context.info->name + "' cannot save checkpoints";
}

/// Trials that pause must save their state, unless the options say otherwise. Not reported while one of these options
/// is wrong.
void check_checkpoints(const ParseContext& context, TableReader& table, const OptionReader& options) {
    if (context.info == nullptr || context.info->can_checkpoint || !needs_checkpoints(context.spec.scheduler)) return;
    const CheckpointNeed& need = *context.spec.scheduler.algorithm->needs_checkpoints;
    for (const OptionValue& condition : need.when)
        if (!options.is_right(condition.option)) return;
    const OptionValue type{"type", context.spec.scheduler.algorithm->name};
    const OptionValue& because = need.when.empty() ? type : need.when.front();
    const std::string value = because.value.is_string() ? in_quotes(because.value.as_string()) : because.value.text();
    table.complain(because.option, value + " pauses trials, and " + without_checkpoints(context) +
                                       (need.instead.empty() ? "" : "; " + need.instead));
}

} // namespace

void parse_scheduler(ParseContext& context) {
    TableReader table = context.reader("scheduler");
    const auto& known = context.known.algorithms.schedulers;
    const auto chosen = choose_algorithm(context, table, infos_of(known), true);
    if (!chosen) return;
    context.has_scheduler = !table.is_wrong();
    SchedulerSpec& scheduler = context.spec.scheduler;
    scheduler.algorithm = known[*chosen];
    check_objectives(context, table, *scheduler.algorithm, infos_of(known));
    const OptionReader options(context, table, *scheduler.algorithm);
    scheduler.options = options.options();
    check_checkpoints(context, table, options);
    if (scheduler.algorithm->schedules && context.spec.deterministic)
        table.complain("type", in_quotes(scheduler.algorithm->name) +
                                   " does not go with study.deterministic: a trial goes on with other values when its "
                                   "state is saved, which depends on time");
    parse_explore(context, table);
    parse_schedule(context, table);
    table.finish();
}

} // namespace ranktune::study
