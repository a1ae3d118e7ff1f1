// SPDX-License-Identifier: Apache-2.0
// HyperBand in study files: its options, and the plan of a study with it. The algorithm is in halving.cpp.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ranktune/base/text.hpp"
#include "ranktune/study/spec.hpp"
#include "schedulers/halving/halving.hpp"
#include "schedulers/rungs/rung_options.hpp"

namespace ranktune::schedulers {

study::SchedulerInfo describe_hyperband();

namespace {

using base::counted;
using Kind = study::OptionInfo::Kind;

std::vector<study::AlgorithmOption> hyperband_options() {
    return {
        eta_option("One in `eta` of a rung goes on."),
        first_rung_option("The fewest iterations that a trial is trained for before it is compared: brackets begin at "
                          "`study.max_iterations` divided by powers of eta, not below this."),
        {.name = "table",
         .kind = Kind::string,
         .standard = "formula",
         .description = "Trials of bracket s. `formula`: ceil((s_max + 1) eta^s / (s + 1)), as in the paper. `floor`: "
                        "those of HpBandSter, DEHB and NePS.",
         .accepted = {"formula", "floor"}},
        restart_paused_option("promoted trials"),
    };
}

std::vector<BracketShape> brackets_of(const study::StudySpec& spec) {
    const space::Configuration& options = spec.scheduler.options;
    return hyperband_brackets(static_cast<base::Iteration>(options.at("first_rung").as_int()),
                              static_cast<std::uint64_t>(options.at("eta").as_int()), spec.max_iterations,
                              options.at("table").as_string() == "floor" ? BracketTable::floor : BracketTable::formula);
}

// ---- the plan

/// Adds `times` brackets with so many trials each.
void add(study::SchedulerPlan& plan, const BracketShape& bracket, std::uint64_t trials, std::uint64_t times,
         std::uint64_t eta, bool saves_between_rungs) {
    base::Iteration before = 0;
    const std::uint64_t entrants = trials;
    for (const base::Iteration level : bracket.levels) {
        plan.iterations += times * trials * (level - before);
        before = level;
        const auto rung = std::ranges::lower_bound(plan.rungs, level, {}, &study::SchedulerPlan::Rung::iteration);
        rung->trials += times * trials;
        trials = std::max<std::uint64_t>(trials / eta, 1);
    }
    // A paused trial keeps two checkpoints, but one at its first rung. Those that a rung leaves behind keep none once
    // the rung has promoted all it can.
    if (bracket.levels.size() == 1) return;
    const std::uint64_t second = std::max<std::uint64_t>(entrants / eta, 1);
    const bool one_rung = bracket.levels.size() == 2;
    plan.paused_checkpoints += times * (saves_between_rungs ? 2 * entrants : entrants + (one_rung ? 0 : second));
}

study::SchedulerPlan plan_hyperband(const study::StudySpec& spec) {
    const std::vector<BracketShape> brackets = brackets_of(spec);
    const auto eta = static_cast<std::uint64_t>(spec.scheduler.options.at("eta").as_int());
    const bool saves = spec.checkpoint.interval != study::CheckpointSpec::Interval::none;
    study::SchedulerPlan plan;
    std::vector<std::string> sizes;
    std::uint64_t round = 0;
    for (const BracketShape& bracket : brackets) {
        sizes.push_back(std::to_string(bracket.trials));
        round += bracket.trials;
    }
    for (const base::Iteration level : brackets.front().levels) plan.rungs.push_back({level, 0});
    plan.words = "HyperBand, " +
                 (brackets.size() == 1 ? "1 bracket of " : counted(brackets.size(), "bracket") + " of ") +
                 base::join(sizes, "/") + (round == 1 ? " trial" : " trials");
    const std::uint64_t rounds = spec.num_trials / round;
    std::uint64_t left = spec.num_trials % round;
    for (const BracketShape& bracket : brackets) {
        if (rounds > 0) add(plan, bracket, bracket.trials, rounds, eta, saves);
        const std::uint64_t begun = std::min(left, bracket.trials);
        if (begun > 0) add(plan, bracket, begun, 1, eta, saves);
        left -= begun;
    }
    if (!study::needs_checkpoints(spec.scheduler)) plan.paused_checkpoints = 0;
    if (rounds == 0)
        plan.warning = "study.num_trials = " + std::to_string(spec.num_trials) +
                       " is less than one round of all brackets, which takes " + counted(round, "trial") +
                       "; the last ones, which train their trials longest, are cut off or missing";
    return plan;
}

std::unique_ptr<Scheduler> make_hyperband(const study::StudySpec& spec) {
    return std::make_unique<Halving>(
        Halving::Options{.name = "hyperband",
                         .brackets = brackets_of(spec),
                         .eta = static_cast<std::uint32_t>(spec.scheduler.options.at("eta").as_int()),
                         .num_trials = spec.num_trials},
        spec.objective);
}

} // namespace

study::SchedulerInfo describe_hyperband() {
    study::SchedulerInfo info;
    info.name = "hyperband";
    info.description =
        "HyperBand (Li et al., JMLR 2018): successive halving in brackets that begin with many trials "
        "and few iterations, or with few and many.";
    info.options = hyperband_options();
    info.foreign_names = {"HyperBandScheduler", "HyperbandPruner", "HpBandSter"};
    info.check = [](const study::AlgorithmCheck& check) { check_ceiling(check, "first_rung"); };
    info.make = make_hyperband;
    info.needs_checkpoints = study::CheckpointNeed{
        .when = {{"restart_paused", false}},
        .instead =
            "use restart_paused = true to train promoted trials from the beginning, or \"asha\" with variant "
            "\"stop\"",
        .afterwards =
            " and restart_paused = true in [scheduler]: trials that are promoted then train again from the "
            "beginning. With either the same command goes on"};
    info.has_rungs = true;
    info.plan = plan_hyperband;
    return info;
}

} // namespace ranktune::schedulers
