// SPDX-License-Identifier: Apache-2.0
// The baseline: all trials are trained a little, the best few to the end. The algorithm is in halving.cpp.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "ranktune/base/text.hpp"
#include "ranktune/study/spec.hpp"
#include "schedulers/halving/halving.hpp"
#include "schedulers/rungs/rung_options.hpp"

namespace ranktune::schedulers {

study::SchedulerInfo describe_topk();

namespace {

using base::counted;
using Kind = study::OptionInfo::Kind;

std::vector<study::AlgorithmOption> topk_options() {
    return {
        {.name = "first",
         .kind = Kind::integer,
         .standard = 1,
         .description = "Iterations that every trial is trained for. Must be below the ceiling.",
         .low = 1.0,
         .high = 1e15},
        {.name = "k",
         .kind = Kind::integer,
         .standard = 1,
         .description = "So many of the best are then trained to the end.",
         .low = 1.0,
         .high = static_cast<double>(std::numeric_limits<std::int32_t>::max())},
        restart_paused_option("the best trials"),
    };
}

base::Iteration first_of(const study::StudySpec& spec) {
    return static_cast<base::Iteration>(spec.scheduler.options.at("first").as_int());
}
std::uint32_t k_of(const study::StudySpec& spec) {
    return static_cast<std::uint32_t>(spec.scheduler.options.at("k").as_int());
}

/// One bracket without an end: whoever can be created belongs to it.
BracketShape bracket_of(const study::StudySpec& spec) {
    BracketShape bracket{{}, std::numeric_limits<std::uint64_t>::max()};
    if (first_of(spec) < spec.max_iterations) bracket.levels.push_back(first_of(spec));
    bracket.levels.push_back(spec.max_iterations);
    return bracket;
}

void check_topk(const study::AlgorithmCheck& check) {
    if (!check.reads_file || !check.max_iterations || !check.is_right("first")) return;
    const auto first = static_cast<std::uint64_t>(check.options.at("first").as_int());
    if (first < *check.max_iterations) return;
    check.complain("first", std::to_string(first) + " is not below the ceiling study.max_iterations (" +
                                std::to_string(*check.max_iterations) + "): every trial would be trained to the end");
}

study::SchedulerPlan plan_topk(const study::StudySpec& spec) {
    const std::uint32_t k = k_of(spec);
    study::SchedulerPlan plan;
    // A top trial that fails is replaced, so that more may be trained.
    plan.certainty = study::SchedulerPlan::Certainty::estimate;
    plan.words = "the best " + (k == 1 ? "one" : std::to_string(k)) + " after " + counted(first_of(spec), "iteration");
    if (k >= spec.num_trials)
        plan.warning = "k = " + std::to_string(k) + " of " + counted(spec.num_trials, "trial") +
                       ": every trial is trained to the end; raise study.num_trials, or lower scheduler.k";
    if (first_of(spec) >= spec.max_iterations) return plan;
    const std::uint64_t to_the_end = std::min(k, spec.num_trials);
    plan.rungs = {{first_of(spec), spec.num_trials}, {spec.max_iterations, to_the_end}};
    plan.iterations = spec.num_trials * first_of(spec) + to_the_end * (spec.max_iterations - first_of(spec));
    const bool saves = spec.checkpoint.interval != study::CheckpointSpec::Interval::none;
    if (study::needs_checkpoints(spec.scheduler))
        plan.paused_checkpoints = (saves ? 2U : 1U) * std::uint64_t{spec.num_trials};
    return plan;
}

std::unique_ptr<Scheduler> make_topk(const study::StudySpec& spec) {
    return std::make_unique<Halving>(
        Halving::Options{
            .name = "topk", .brackets = {bracket_of(spec)}, .keep = k_of(spec), .num_trials = spec.num_trials},
        spec.objective);
}

} // namespace

study::SchedulerInfo describe_topk() {
    study::SchedulerInfo info;
    info.name = "topk";
    info.description = "a baseline: every trial is trained for `first` iterations, then the best `k` to the end.";
    info.options = topk_options();
    info.check = check_topk;
    info.make = make_topk;
    info.needs_checkpoints = study::CheckpointNeed{
        .when = {{"restart_paused", false}},
        .instead = "use restart_paused = true to train the best trials from the beginning, or \"fifo\"",
        .afterwards =
            " and restart_paused = true in [scheduler]: the best trials then train again from the beginning. "
            "With either the same command goes on"};
    info.has_rungs = true;
    info.plan = plan_topk;
    return info;
}

} // namespace ranktune::schedulers
