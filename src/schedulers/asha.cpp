// SPDX-License-Identifier: Apache-2.0
// ASHA in study files: its options, and the plan of a study with it. The algorithm is in asha_promote and asha_stop.
#include <cmath>
#include <limits>

#include "ranktune/base/text.hpp"
#include "ranktune/study/spec.hpp"
#include "schedulers/asha/asha_plan.hpp"
#include "schedulers/asha/asha_promote.hpp"
#include "schedulers/asha/asha_stop.hpp"
#include "schedulers/rungs/rung_options.hpp"

namespace ranktune::schedulers {

study::SchedulerInfo describe_asha();

namespace {

using Kind = study::OptionInfo::Kind;

constexpr double most_iterations = 1e15; // far from overflow: rungs are computed by multiplying

// ---- options

/// The options, typed.
AshaSettings settings_of(const space::Configuration& options) {
    const bool promotes = options.at("variant").as_string() == "promote";
    return {.promotes = promotes,
            .ray = !promotes && options.at("rule").as_string() == "ray",
            .eta = options.at("eta").as_double(),
            .first_rung = options.at("first_rung").as_double(),
            .brackets = static_cast<std::uint32_t>(options.at("brackets").as_int()),
            .allotment = options.at("allotment").as_string() == "budget" ? Allotment::budget : Allotment::ray,
            .finish_top = static_cast<std::uint32_t>(options.at("finish_top").as_int())};
}

std::vector<study::AlgorithmOption> rung_options() {
    return {
        {.name = "variant",
         .kind = Kind::string,
         .standard = "promote",
         .description = "`promote` pauses each trial at a rung and resumes the best, highest rung first. `stop` "
                        "decides once, at the rung: go on or stop.",
         .accepted = {"promote", "stop"},
         .foreign_words = {{"promotion", "promote"}, {"stopping", "stop"}}},
        {.name = "rule",
         .kind = Kind::string,
         .standard = "floor",
         .description = "`floor`: go on iff among the best max(floor(m/eta), 1) of the m that arrived. `ray`: iff not "
                        "below Ray Tune's quantile.",
         .accepted = {"floor", "ray"},
         .only_with = {{"variant", "stop"}}},
        {.name = "eta",
         .kind = Kind::number,
         .standard = 3.0,
         .description = "One in `eta` goes on.",
         .low = 1.0,
         .high = 1e6,
         .takes = "number > 1; whole but for `ray`",
         .foreign_names = {{"Ray Tune", "reduction_factor"}, {"Keras Tuner", "factor"}}},
        {.name = "first_rung",
         .kind = Kind::number,
         .standard = 1.0,
         .description = "Iterations at the first rung, not above the ceiling. Rungs are at first_rung x eta^k below "
                        "`study.max_iterations`, then that ceiling.",
         .low = 0.0,
         .high = most_iterations,
         .takes = "number >= 1, whole; `ray`: > 0",
         .foreign_names =
             {{"Ray Tune", "grace_period"}, {"Optuna", "min_resource"}, {"W&B", "min_iter"}, {"BOHB", "min_budget"}}},
        {.name = "brackets",
         .kind = Kind::integer,
         .standard = 1,
         .description =
             "Bracket s begins at first_rung x eta^s. Each of several must begin below the ceiling, but for `ray`.",
         .low = 1.0,
         .high = 64.0,
         .foreign_names = {{"Optuna", "min_early_stopping_rate"}}},
        {.name = "allotment",
         .kind = Kind::string,
         .standard = "ray",
         .description = "How trials are shared among brackets. `ray`: drawn with weight e^(number of rungs). `budget`: "
                        "each the same budget, not with rule `ray`.",
         .accepted = {"ray", "budget"}},
    };
}

std::vector<study::AlgorithmOption> asha_options() {
    const double most_32 = std::numeric_limits<std::int32_t>::max();
    auto options = rung_options();
    options.insert(
        options.end(),
        {
            {.name = "finish_top",
             .kind = Kind::integer,
             .standard = 1,
             .description =
                 "When nothing else is left, so many of the best paused trials are trained to the end; 0: as in "
                 "the paper.",
             .low = 0.0,
             .high = most_32,
             .only_with = {{"variant", "promote"}}},
            {.name = "delayed",
             .kind = Kind::boolean,
             .standard = false,
             .description = "D-ASHA: of a rung with n entries never more than floor(n / eta) are promoted, also when "
                            "better ones arrive later.",
             .only_with = {{"variant", "promote"}}},
            restart_paused_option("promoted trials", study::OptionValue{"variant", "promote"}),
            {.name = "stop_last_trials",
             .kind = Kind::boolean,
             .standard = true,
             .description = "true: a report at the ceiling leaves no entry. false: it is compared at the highest rung. "
                            "The ceiling ends the trial anyway.",
             .only_with = {{"rule", "ray"}}},
        });
    return options;
}

/// Only rule `ray` takes fractions for eta and first_rung.
void check_numbers(const study::AlgorithmCheck& check, const AshaSettings& asha) {
    const bool fractions = asha.ray || !check.is_right("variant") || !check.is_right("rule");
    const auto check_whole = [&](const char* option, double value) {
        if (fractions || value == std::trunc(value)) return;
        check.complain(
            option, "needs a whole number, not " + space::float_text(value) + " (only rule \"ray\" takes fractions)");
    };
    if (check.is_right("eta")) check_whole("eta", asha.eta);
    if (asha.eta == 1.0) check.complain("eta", "needs a number > 1: one in eta goes on");
    if (!check.is_right("first_rung")) return;
    if (!fractions && asha.first_rung < 1.0) {
        check.complain("first_rung", "needs a number >= 1, not " + space::number_text(asha.first_rung));
    } else if (asha.first_rung == 0.0) {
        check.complain("first_rung", "needs a number > 0");
    } else {
        check_whole("first_rung", asha.first_rung);
    }
}

/// The rungs against the ceiling.
void check_rungs(const study::AlgorithmCheck& check, const AshaSettings& asha) {
    if (!check.max_iterations || !check.is_right("first_rung") || !check_ceiling(check, "first_rung")) return;
    const auto ceiling = static_cast<double>(*check.max_iterations);
    const std::string ceiling_text = "study.max_iterations (" + std::to_string(*check.max_iterations) + ")";
    if (!check.is_right("variant") || !check.is_right("rule") || !check.is_right("eta")) return;
    if (asha.ray) {
        // Ray Tune allows brackets without a rung: their trials run to the end. Only the number of rungs has a limit.
        double level = asha.first_rung;
        for (std::size_t k = 0; k < AshaStop::max_rungs; ++k) level *= asha.eta;
        if (level > ceiling) return;
        check.complain(asha.eta < 2.0 ? "eta" : "first_rung",
                       "gives more than " + std::to_string(AshaStop::max_rungs) + " rungs up to " + ceiling_text);
        return;
    }
    if (!check.is_right("brackets") || !check.reads_file) return;
    double first = asha.first_rung;
    std::uint32_t useful = 1;
    while (first * asha.eta < ceiling && useful < asha.brackets) {
        first *= asha.eta;
        ++useful;
    }
    if (useful >= asha.brackets) return;
    check.complain("brackets", "bracket " + std::to_string(useful + 1) + " would have its first rung at " +
                                   space::number_text(first * asha.eta) + ", not below " + ceiling_text + "; at most " +
                                   std::to_string(useful));
}

void check_asha(const study::AlgorithmCheck& check) {
    const AshaSettings asha = settings_of(check.options);
    check_numbers(check, asha);
    check_rungs(check, asha);
    if (asha.ray && check.several_objectives && check.is_right("rule"))
        check.complain("rule", R"("ray" compares trials by one metric; with several in study.metric use "floor")");
    if (asha.ray && asha.allotment == Allotment::budget && check.is_right("rule") && check.is_right("allotment"))
        check.complain("allotment", "\"budget\" needs whole rungs; with rule \"ray\" only \"ray\" is possible");
}

study::SchedulerPlan plan_asha(const study::StudySpec& spec) {
    const AshaSettings asha = settings_of(spec.scheduler.options);
    study::SchedulerPlan plan = plan_rungs(spec, asha);
    plan.words = asha.promotes ? "ASHA promote" : "ASHA stop";
    return plan;
}

std::unique_ptr<Scheduler> make_asha(const study::StudySpec& spec) {
    const AshaSettings asha = settings_of(spec.scheduler.options);
    if (asha.promotes)
        return std::make_unique<AshaPromote>(
            AshaPromote::Options{.first_rung = static_cast<base::Iteration>(asha.first_rung),
                                 .eta = static_cast<std::uint32_t>(asha.eta),
                                 .ceiling = spec.max_iterations,
                                 .brackets = asha.brackets,
                                 .finish_top = asha.finish_top,
                                 .delayed = spec.scheduler.options.at("delayed").as_bool(),
                                 .allotment = asha.allotment,
                                 .seed = spec.seed,
                                 .num_trials = spec.num_trials},
            spec.objective);
    return std::make_unique<AshaStop>(
        AshaStop::Options{.rule = asha.ray ? AshaStop::Rule::ray : AshaStop::Rule::floor,
                          .first_rung = asha.first_rung,
                          .eta = asha.eta,
                          .ceiling = spec.max_iterations,
                          .brackets = asha.brackets,
                          .stop_last_trials = spec.scheduler.options.at("stop_last_trials").as_bool(),
                          .seed = spec.seed,
                          .allotment = asha.allotment},
        spec.objective);
}

} // namespace

study::SchedulerInfo describe_asha() {
    study::SchedulerInfo info;
    info.name = "asha";
    info.description = "asynchronous successive halving (Li et al., MLSys 2020).";
    info.options = asha_options();
    info.foreign_names = {"asynchyperband", "async_hyperband", "successive_halving"};
    info.check = check_asha;
    info.make = make_asha;
    info.needs_checkpoints = {
        .when = {{"variant", "promote"}, {"restart_paused", false}},
        .instead = "use variant = \"stop\", or restart_paused = true to train promoted trials from the beginning",
        .afterwards =
            " and restart_paused = true in [scheduler]: trials that are promoted then train again from the "
            "beginning. With either the same command goes on. (variant = \"stop\" in [scheduler] never "
            "pauses; it begins again, with --fresh)"};
    info.several_objectives = true;
    info.has_rungs = true;
    info.plan = plan_asha;
    return info;
}

} // namespace ranktune::schedulers
