// SPDX-License-Identifier: Apache-2.0
#include "report/explain/plan.hpp"

#include <limits>

#include "ranktune/space/enumeration.hpp"

namespace ranktune::report {
namespace {

study::SchedulerPlan plan_of_scheduler(const study::StudySpec& spec) {
    const auto& plan = spec.scheduler.algorithm->plan;
    return plan ? plan(spec) : study::SchedulerPlan{};
}

} // namespace

Plan plan(const study::StudySpec& spec) {
    using Certainty = study::SchedulerPlan::Certainty;
    Plan plan{.scheduler = plan_of_scheduler(spec)};
    plan.full = static_cast<std::uint64_t>(spec.num_trials) * spec.max_iterations;
    plan.running_checkpoints = 2 + spec.checkpoint.keep;
    study::SchedulerPlan& scheduler = plan.scheduler;
    if (scheduler.words.empty()) scheduler.words = spec.scheduler.algorithm->name;
    if (scheduler.rungs.empty()) {
        scheduler.rungs = {{spec.max_iterations, spec.num_trials}};
        scheduler.iterations = plan.full;
    }
    const bool stops = !spec.stop.metrics.empty() || spec.stop.plateau || spec.stop.trial_time || spec.time_budget;
    if (stops && scheduler.certainty == Certainty::exact) scheduler.certainty = Certainty::at_most;
    return plan;
}

std::uint64_t grid_size(const study::StudySpec& spec) {
    if (!spec.searcher.algorithm->whole_space) return std::numeric_limits<std::uint64_t>::max();
    return space::Enumeration(spec.space).size();
}

} // namespace ranktune::report
