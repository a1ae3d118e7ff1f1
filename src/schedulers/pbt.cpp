// SPDX-License-Identifier: Apache-2.0
// Population-based training as a study file names it. The algorithm is in population.cpp.
#include <memory>
#include <string>

#include "ranktune/base/text.hpp"
#include "ranktune/study/spec.hpp"
#include "schedulers/population/population.hpp"

namespace ranktune::schedulers {

study::SchedulerInfo describe_pbt();

namespace {

using Kind = study::OptionInfo::Kind;

std::vector<study::AlgorithmOption> pbt_options() {
    return {
        {.name = "interval",
         .kind = Kind::integer,
         .standard = 1,
         .description = "Iterations between two ready points, at which a trial is compared with the others.",
         .low = 1.0,
         .high = 1e15,
         .foreign_names = {{"Ray Tune", "perturbation_interval"}}},
        {.name = "burn_in",
         .kind = Kind::integer,
         .standard = 0,
         .description = "Iterations before the first ready point.",
         .low = 0.0,
         .high = 1e15,
         .foreign_names = {{"Ray Tune", "burn_in_period"}}},
        {.name = "selection",
         .kind = Kind::string,
         .standard = "truncation",
         .description = "`truncation`: the lower group from the upper group. `tournament`: from a random better trial. "
                        "`t_test`: so, if its mean is significantly higher (Welch).",
         .accepted = {"truncation", "tournament", "t_test"},
         .foreign_words = {{"binary_tournament", "tournament"}, {"ttest", "t_test"}}},
        {.name = "window",
         .kind = Kind::integer,
         .standard = 10,
         .description = "Newest scores of each trial that the t-test compares; fewer say less, more are older.",
         .low = 2.0,
         .high = 1000.0,
         .only_with = study::OptionValue{"selection", "t_test"}},
        {.name = "quantile",
         .kind = Kind::number,
         .standard = 0.25,
         .description = "Share of the trials in the lower and in the upper group; above 0.",
         .low = 0.0,
         .high = 0.5,
         .only_with = study::OptionValue{"selection", "truncation"},
         .foreign_names = {{"Ray Tune", "quantile_fraction"}}},
        {.name = "compare",
         .kind = Kind::string,
         .standard = "equal_iteration",
         .description = "Scores that are compared: `equal_iteration`: at the same ready point; `latest`: the newest of "
                        "each, so fast trials have an edge.",
         .accepted = {"equal_iteration", "latest"}},
        {.name = "synchronous",
         .kind = Kind::boolean,
         .standard = false,
         .description = "Every ready point is a barrier: trials wait for each other there, and are judged together. "
                        "Nobody waits for one that fails or ends.",
         .only_with = study::OptionValue{"compare", "equal_iteration"},
         .foreign_names = {{"Ray Tune", "synch"}}},
        {.name = "resample_probability",
         .kind = Kind::number,
         .standard = 0.25,
         .description = "With this probability an explored hyper-parameter is drawn anew, not multiplied by a factor.",
         .low = 0.0,
         .high = 1.0},
    };
}

/// The options, typed.
Population::Options population_options(const study::StudySpec& spec) {
    const space::Configuration& options = spec.scheduler.options;
    const std::string& selection = options.at("selection").as_string();
    const bool latest = options.at("compare").as_string() == "latest";
    return {.points = {.interval = static_cast<base::Iteration>(options.at("interval").as_int()),
                       .burn_in = static_cast<base::Iteration>(options.at("burn_in").as_int()),
                       .ceiling = spec.max_iterations},
            .quantile = options.at("quantile").as_double(),
            .selection = selection == "truncation"   ? Population::Selection::truncation
                         : selection == "tournament" ? Population::Selection::tournament
                                                     : Population::Selection::t_test,
            .compare = latest ? Population::Compare::latest : Population::Compare::equal_iteration,
            .synchronous = !latest && options.at("synchronous").as_bool(),
            .saved_before_verdict = saved_before_verdict(spec),
            .pauses_to_save = spec.trainable.program.has_value(),
            .resample = options.at("resample_probability").as_double(),
            .window = static_cast<std::size_t>(options.at("window").as_int()),
            .members = spec.num_trials,
            .seed = spec.seed};
}

void check_pbt(const study::AlgorithmCheck& check) {
    if (check.is_right("quantile") && !(check.options.at("quantile").as_double() > 0.0))
        check.complain("quantile", "must be above 0: with 0 nobody takes over anything");
    if (!check.reads_file || !check.max_iterations || !check.is_right("interval") || !check.is_right("burn_in")) return;
    const auto ceiling = static_cast<std::int64_t>(*check.max_iterations);
    for (const char* option : {"interval", "burn_in"}) {
        const std::int64_t value = check.options.at(option).as_int();
        if (value > 0 && value >= ceiling)
            return check.complain(option, std::to_string(value) + " leaves no ready point below the ceiling " +
                                              "study.max_iterations (" + std::to_string(ceiling) + ")");
    }
}

study::SchedulerPlan plan_pbt(const study::StudySpec& spec) {
    const std::string synchronous = population_options(spec).synchronous ? "synchronous " : "";
    study::SchedulerPlan plan{.words = synchronous + "population-based training" +
                                       (spec.scheduler.explore.empty() ? " that explores nothing" : ""),
                              .paused_checkpoints = 2 * std::uint64_t{spec.num_trials},
                              .needed_checkpoints = spec.num_trials};
    if (spec.num_trials < 2)
        plan.warning = "a population of one: nobody takes over anything; raise study.num_trials (10 to 80 are usual)";
    return plan;
}

} // namespace

study::SchedulerInfo describe_pbt() {
    study::SchedulerInfo info;
    info.name = "pbt";
    info.description =
        "population-based training: trials that do badly go on from the state of better ones, with other "
        "hyper-parameters. `[scheduler.explore]` says which, and how.";
    info.options = pbt_options();
    info.foreign_names = {"PopulationBasedTraining", "population_based_training"};
    info.check = check_pbt;
    info.explores = true;
    info.make = [](const study::StudySpec& spec) {
        return std::make_unique<Population>(population_options(spec), spec.objective, spec.space,
                                            spec.scheduler.explore, spec.resources.ranks_parameter);
    };
    info.needs_checkpoints = study::CheckpointNeed{.instead = "use \"asha\" with variant \"stop\", or \"fifo\""};
    info.not_deterministic = study::NotDeterministic{
        .when = {{"synchronous", true}}, .why = ", where trials are compared in logical order; leave one of them out"};
    info.plan = plan_pbt;
    return info;
}

} // namespace ranktune::schedulers
