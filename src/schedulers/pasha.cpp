// SPDX-License-Identifier: Apache-2.0
// PASHA as a study file names it. The algorithm is in progressive_asha.cpp.
#include <limits>
#include <memory>

#include "ranktune/study/spec.hpp"
#include "schedulers/asha/asha_plan.hpp"
#include "schedulers/asha/progressive_asha.hpp"
#include "schedulers/rungs/rung_options.hpp"

namespace ranktune::schedulers {

study::SchedulerInfo describe_pasha();

namespace {

using Kind = study::OptionInfo::Kind;

std::vector<study::AlgorithmOption> pasha_options() {
    return {
        eta_option("One in `eta` goes on."),
        first_rung_option("Iterations at the first rung; rungs are at first_rung x eta^k below "
                          "`study.max_iterations`, then that ceiling. Trials go to the second rung at first."),
        {.name = "ranking",
         .kind = Kind::string,
         .standard = "soft",
         .description = "When two trials count as equal: `soft`: scores within the estimated noise of the learning "
                        "curves; `fixed`: within `epsilon`.",
         .accepted = {"soft", "fixed"}},
        {.name = "epsilon",
         .kind = Kind::number,
         .standard = 0.0,
         .description = "In units of `study.metric`.",
         .low = 0.0,
         .high = std::numeric_limits<double>::max(),
         .only_with = study::OptionValue{"ranking", "fixed"},
         .takes = "number >= 0"},
        {.name = "finish_top",
         .kind = Kind::integer,
         .standard = 1,
         .description = "When nothing else is left, so many of the best paused trials are trained to the end.",
         .low = 1.0,
         .high = static_cast<double>(std::numeric_limits<std::int32_t>::max())},
        restart_paused_option("promoted trials"),
    };
}

/// The options, typed.
ProgressiveAsha::Options pasha_settings(const study::StudySpec& spec) {
    const space::Configuration& options = spec.scheduler.options;
    ProgressiveAsha::Options typed{.first_rung = static_cast<base::Iteration>(options.at("first_rung").as_int()),
                                   .eta = static_cast<std::uint32_t>(options.at("eta").as_int()),
                                   .ceiling = spec.max_iterations,
                                   .finish_top = static_cast<std::uint32_t>(options.at("finish_top").as_int()),
                                   .num_trials = spec.num_trials};
    if (options.at("ranking").as_string() == "fixed") typed.epsilon = options.at("epsilon").as_double();
    return typed;
}

/// ASHA's plan: as if the top rose to the ceiling at once. While rankings are stable PASHA trains less.
study::SchedulerPlan plan_pasha(const study::StudySpec& spec) {
    const ProgressiveAsha::Options options = pasha_settings(spec);
    study::SchedulerPlan plan = plan_rungs(spec, {.eta = static_cast<double>(options.eta),
                                                  .first_rung = static_cast<double>(options.first_rung),
                                                  .finish_top = options.finish_top});
    plan.words = "PASHA";
    return plan;
}

} // namespace

study::SchedulerInfo describe_pasha() {
    study::SchedulerInfo info;
    info.name = "pasha";
    info.description =
        "ASHA with a ceiling that rises only while the ranking of the best trials still changes (Bohdal "
        "et al., ICLR 2023).";
    info.options = pasha_options();
    info.check = [](const study::AlgorithmCheck& check) { check_ceiling(check, "first_rung"); };
    info.make = [](const study::StudySpec& spec) {
        return std::make_unique<ProgressiveAsha>(pasha_settings(spec), spec.objective);
    };
    info.needs_checkpoints = study::CheckpointNeed{
        .when = {{"restart_paused", false}},
        .instead = "use restart_paused = true to train promoted trials from the beginning",
        .afterwards =
            " and restart_paused = true in [scheduler]: trials that are promoted then train again from the "
            "beginning. With that the same command goes on."};
    info.has_rungs = true;
    info.plan = plan_pasha;
    return info;
}

} // namespace ranktune::schedulers
