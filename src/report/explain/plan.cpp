// SPDX-License-Identifier: Apache-2.0
#include "report/explain/plan.hpp"

#include <limits>
#include <mutex>
#include <string>

#include "ranktune/space/enumeration.hpp"
#include "schedulers/rehearsal.hpp"
#include "searchers/built_in.hpp"

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

Plan rehearsed_plan(const study::StudySpec& spec, std::uint32_t groups) {
    constexpr std::uint32_t usual_groups = 8;
    if (groups == 0) groups = usual_groups;
    const bool learns = searchers::make_searcher(spec)->learns();
    std::string key = spec.scheduler.algorithm->name + " " + spec.scheduler.options.text();
    for (const std::uint64_t number : {std::uint64_t{spec.num_trials}, std::uint64_t{spec.max_iterations}, spec.seed,
                                       std::uint64_t{groups}, std::uint64_t{learns}})
        key += " " + std::to_string(number);
    static std::mutex mutex;
    static std::string remembered;
    static study::SchedulerPlan last;
    const std::scoped_lock lock(mutex);
    Plan all = plan(spec);
    if (key != remembered) {
        last = all.scheduler;
        schedulers::rehearse(last, spec, groups, learns);
        remembered = key;
    }
    all.scheduler.rungs = last.rungs;
    all.scheduler.iterations = last.iterations;
    all.scheduler.fewest = last.fewest;
    all.scheduler.most = last.most;
    return all;
}

std::uint64_t grid_size(const study::StudySpec& spec) {
    if (!spec.searcher.algorithm->whole_space) return std::numeric_limits<std::uint64_t>::max();
    return space::Enumeration(spec.space).size();
}

} // namespace ranktune::report
