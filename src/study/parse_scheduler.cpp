// SPDX-License-Identifier: Apache-2.0
// [scheduler]: which trials go on. Keys of another type, variant or rule are refused, never read and ignored.
#include <cmath>
#include <limits>
#include <span>

#include "ranktune/space/value.hpp"
#include "study/parse_tables.hpp"

namespace ranktune::study {
namespace {

constexpr Word<SchedulerKind> scheduler_kinds[] = {
    {"fifo", SchedulerKind::fifo}, {"asha", SchedulerKind::asha}, {"median", SchedulerKind::median}};
constexpr Word<AshaVariant> variants[] = {{"promote", AshaVariant::promote}, {"stop", AshaVariant::stop}};
constexpr Word<AshaRule> rules[] = {{"floor", AshaRule::floor}, {"ray", AshaRule::ray}};

constexpr std::int64_t most_brackets = 64;
constexpr int most_rungs = 64; // of a bracket: schedulers::AshaStop keeps a bit for each
constexpr std::int64_t most_32 = std::numeric_limits<std::int32_t>::max();

using Keys = std::span<const std::string_view>;
constexpr std::string_view asha_keys[] = {
    "variant", "rule", "eta", "first_rung", "brackets", "finish_top", "restart_paused", "stop_last_trials"};
constexpr std::string_view median_keys[] = {"grace", "min_samples", "hard_stop"};

constexpr std::string_view promote_keys[] = {"finish_top", "restart_paused"};

void refuse_all(TableReader& table, Keys keys, const std::string& message) {
    for (const std::string_view key : keys) table.refuse(key, message);
}

std::string iterations_text(double value) {
    return value == std::trunc(value) ? std::to_string(static_cast<std::int64_t>(value)) : space::float_text(value);
}

/// Which of the keys that make the rungs can be counted on: left out, or right by themselves.
struct Rungs {
    bool rule = true; ///< variant and rule
    bool eta = true;
    bool first = true;
    bool brackets = true;
};

/// eta and first_rung: whole numbers, except under the rule that takes fractions.
void parse_rungs(TableReader& table, SchedulerSpec& scheduler, Rungs& known) {
    const Mistakes& mistakes = table.mistakes();
    const bool fractions = !known.rule || (scheduler.variant == AshaVariant::stop && scheduler.rule == AshaRule::ray);
    const auto check_whole = [&](const char* key, double value) {
        if (fractions || value == std::trunc(value)) return;
        table.mistakes().value(
            *table.take(key), table.dotted(key),
            "needs a whole number, not " + space::float_text(value) + " (only rule \"ray\" takes fractions)");
    };
    std::size_t before = mistakes.size();
    if (const auto eta = table.number("eta", 1.0, 1e6)) {
        scheduler.eta = *eta;
        check_whole("eta", *eta);
        if (*eta == 1.0) table.complain("eta", "needs a number > 1: one in eta goes on");
    }
    known.eta = mistakes.size() == before;
    before = mistakes.size();
    if (const auto first = table.number("first_rung", fractions ? 0.0 : 1.0, static_cast<double>(most_iterations))) {
        scheduler.first_rung = *first;
        check_whole("first_rung", *first);
        if (*first == 0.0) table.complain("first_rung", "needs a number > 0");
    }
    known.first = mistakes.size() == before;
    before = mistakes.size();
    scheduler.brackets = static_cast<std::uint32_t>(table.integer("brackets", 1, most_brackets).value_or(1));
    known.brackets = mistakes.size() == before;
}

/// The rungs against the ceiling.
void check_ceiling(const ParseContext& context, TableReader& table, const Rungs& known) {
    const SchedulerSpec& scheduler = context.spec.scheduler;
    if (!context.has_max_iterations || !known.first) return;
    const auto ceiling = static_cast<double>(context.spec.max_iterations);
    const std::string ceiling_text = "study.max_iterations (" + std::to_string(context.spec.max_iterations) + ")";
    if (scheduler.first_rung > ceiling) {
        table.complain("first_rung", iterations_text(scheduler.first_rung) + " is above the ceiling " + ceiling_text);
        return;
    }
    if (!known.rule || !known.eta) return;
    if (scheduler.variant == AshaVariant::stop && scheduler.rule == AshaRule::ray) {
        // Ray Tune allows brackets without a rung: trials in them run to the end. Only their number has a limit.
        double level = scheduler.first_rung;
        for (int k = 0; k < most_rungs; ++k) level *= scheduler.eta;
        if (level > ceiling) return;
        table.complain(scheduler.eta < 2.0 ? "eta" : "first_rung",
                       "gives more than " + std::to_string(most_rungs) + " rungs up to " + ceiling_text);
        return;
    }
    if (!known.brackets) return;
    double first = scheduler.first_rung;
    std::uint32_t useful = 1;
    while (first * scheduler.eta < ceiling && useful < scheduler.brackets) {
        first *= scheduler.eta;
        ++useful;
    }
    if (useful >= scheduler.brackets) return;
    table.complain("brackets", "bracket " + std::to_string(useful + 1) + " would have its first rung at " +
                                   iterations_text(first * scheduler.eta) + ", not below " + ceiling_text +
                                   "; at most " + std::to_string(useful));
}

/// "the trainable 'x' cannot save checkpoints"
std::string without_checkpoints(const ParseContext& context) {
    if (context.spec.trainable.program) return "the program cannot save checkpoints (trainable.checkpoints = false)";
    return "the trainable '" + context.info->name + "' cannot save checkpoints";
}

void check_checkpoints(const ParseContext& context, TableReader& table) {
    if (context.info == nullptr || context.info->can_checkpoint || context.spec.scheduler.restart_paused) return;
    table.complain("variant", "\"promote\" pauses trials, and " + without_checkpoints(context) +
                                  "; use variant = \"stop\", or restart_paused = true to train "
                                  "promoted trials from the beginning");
}

void parse_asha(ParseContext& context, TableReader& table) {
    SchedulerSpec& scheduler = context.spec.scheduler;
    const std::size_t before = context.mistakes.size();
    scheduler.variant = table.word("variant", variants).value_or(AshaVariant::promote);
    const bool variant_is_valid = context.mistakes.size() == before;

    if (scheduler.variant == AshaVariant::stop || !variant_is_valid) {
        scheduler.rule = table.word("rule", rules).value_or(AshaRule::floor);
    } else {
        table.refuse("rule", "is a key of variant \"stop\" only");
    }
    const bool valid = context.mistakes.size() == before;
    if (scheduler.variant == AshaVariant::promote || !variant_is_valid) {
        scheduler.finish_top = static_cast<std::uint32_t>(table.integer("finish_top", 0, most_32).value_or(1));
        const auto restart = table.boolean("restart_paused");
        scheduler.restart_paused = restart.value_or(false);
        if (variant_is_valid && (restart || !table.has("restart_paused"))) check_checkpoints(context, table);
    } else {
        refuse_all(table, promote_keys, "is a key of variant \"promote\" only");
    }
    if (scheduler.rule == AshaRule::ray || !valid) {
        scheduler.stop_last_trials = table.boolean("stop_last_trials").value_or(true);
    } else {
        table.refuse("stop_last_trials", "is a key of rule \"ray\" only");
    }

    Rungs known{.rule = valid};
    parse_rungs(table, scheduler, known);
    check_ceiling(context, table, known);
}

void parse_median(ParseContext& context, TableReader& table) {
    SchedulerSpec& scheduler = context.spec.scheduler;
    if (const auto grace = table.number("grace", 0.0, static_cast<double>(most_iterations))) {
        scheduler.grace = *grace;
        if (context.has_max_iterations && *grace > static_cast<double>(context.spec.max_iterations))
            table.complain("grace", iterations_text(*grace) + " is above the ceiling study.max_iterations (" +
                                        std::to_string(context.spec.max_iterations) + "); it counts iterations");
    }
    scheduler.min_samples = static_cast<std::uint32_t>(table.integer("min_samples", 1, most_32).value_or(3));
    scheduler.hard_stop = table.boolean("hard_stop").value_or(true);
    if (!scheduler.hard_stop && context.info != nullptr && !context.info->can_checkpoint)
        table.complain("hard_stop", "false pauses trials, and " + without_checkpoints(context));
}

} // namespace

void parse_scheduler(ParseContext& context) {
    TableReader table = context.reader("scheduler");
    const std::size_t before = context.mistakes.size();
    const auto kind = table.word("type", scheduler_kinds);
    if (table.table() != nullptr) table.require("type", "\"fifo\", \"asha\" or \"median\"");
    if (context.mistakes.size() != before) {
        // Without a type nobody knows which of its keys are right: only names that no type has are reported.
        for (const std::string_view key : asha_keys) static_cast<void>(table.take(key));
        for (const std::string_view key : median_keys) static_cast<void>(table.take(key));
        table.finish();
        return;
    }
    context.has_scheduler = !table.is_wrong();
    context.spec.scheduler.kind = kind.value_or(SchedulerKind::fifo);
    const auto only = [](const char* type) { return "is a key of type \"" + std::string(type) + "\" only"; };
    if (context.spec.scheduler.kind != SchedulerKind::asha) refuse_all(table, asha_keys, only("asha"));
    if (context.spec.scheduler.kind != SchedulerKind::median) refuse_all(table, median_keys, only("median"));
    if (context.spec.scheduler.kind == SchedulerKind::asha) parse_asha(context, table);
    if (context.spec.scheduler.kind == SchedulerKind::median) parse_median(context, table);
    table.finish();
}

} // namespace ranktune::study
