// SPDX-License-Identifier: Apache-2.0
// PASHA as a study file names it. The algorithm is in progressive_asha.cpp.
#include <limits>
#include <memory>
#include <string>

#include "ranktune/base/text.hpp"
#include "ranktune/study/spec.hpp"
#include "schedulers/asha_plan.hpp"
#include "schedulers/progressive_asha.hpp"

namespace ranktune::schedulers {

study::SchedulerInfo describe_pasha();

namespace {

using Kind = study::OptionInfo::Kind;

std::vector<study::AlgorithmOption> pasha_options() {
    return {
        {.name = "eta",
         .kind = Kind::integer,
         .standard = 3,
         .description = "One in `eta` goes on.",
         .low = 2.0,
         .high = 1e6},
        {.name = "first_rung",
         .kind = Kind::integer,
         .standard = 1,
         .description = "Iterations at the first rung; rungs are at first_rung x eta^k below `study.max_iterations`, "
                        "then that ceiling. Trials go to the second rung at first.",
         .low = 1.0,
         .high = 1e15},
        {.name = "ranking",
         .kind = Kind::string,
         .standard = "soft",
         .description = "When two trials count as equal. `soft`: their scores differ by no more than the noise of the "
                        "learning curves, which is estimated. `fixed`: by no more than `epsilon`.",
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
        {.name = "restart_paused",
         .kind = Kind::boolean,
         .standard = false,
         .description = "Needed with a trainable that cannot save checkpoints: promoted trials are trained again from "
                        "the beginning.",
         .may_change = true},
    };
}

/// The options, typed.
ProgressiveAsha::Options pasha_options(const study::StudySpec& spec) {
    const space::Configuration& options = spec.scheduler.options;
    ProgressiveAsha::Options typed{.first_rung = static_cast<base::Iteration>(options.at("first_rung").as_int()),
                                   .eta = static_cast<std::uint32_t>(options.at("eta").as_int()),
                                   .ceiling = spec.max_iterations,
                                   .finish_top = static_cast<std::uint32_t>(options.at("finish_top").as_int()),
                                   .num_trials = spec.num_trials,
                                   .pause_at_verdict = spec.deterministic};
    if (options.at("ranking").as_string() == "fixed") typed.epsilon = options.at("epsilon").as_double();
    return typed;
}

void check_pasha(const study::AlgorithmCheck& check) {
    if (!check.max_iterations || !check.is_right("first_rung")) return;
    const auto first = static_cast<base::Iteration>(check.options.at("first_rung").as_int());
    if (first > *check.max_iterations)
        check.complain("first_rung", std::to_string(first) + " is above the ceiling study.max_iterations (" +
                                         std::to_string(*check.max_iterations) + ")");
}

/// ASHA's plan: as if the top rose to the ceiling at once. While rankings are stable PASHA trains less.
study::SchedulerPlan plan_pasha(const study::StudySpec& spec) {
    const ProgressiveAsha::Options options = pasha_options(spec);
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
    info.check = check_pasha;
    info.make = [](const study::StudySpec& spec) {
        return std::make_unique<ProgressiveAsha>(pasha_options(spec), spec.objective);
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
