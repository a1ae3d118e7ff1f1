// SPDX-License-Identifier: Apache-2.0
#include "report/plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ranktune/space/enumeration.hpp"
#include "report/text.hpp"
#include "schedulers/levels.hpp"

#include <fmt/format.h>

namespace ranktune::report {
namespace {

std::vector<base::Iteration> levels_of(const study::StudySpec& spec, std::uint32_t bracket) {
    const auto& scheduler = spec.scheduler;
    const bool ray = scheduler.variant == study::AshaVariant::stop && scheduler.rule == study::AshaRule::ray;
    if (!ray) {
        return schedulers::integer_levels(static_cast<base::Iteration>(scheduler.first_rung),
                                          static_cast<std::uint64_t>(scheduler.eta), spec.max_iterations, bracket);
    }
    auto levels = schedulers::ray_levels(scheduler.first_rung, scheduler.eta, spec.max_iterations, bracket, 1000);
    levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
    if (levels.empty() || levels.back() < spec.max_iterations) levels.push_back(spec.max_iterations);
    return levels;
}

struct Bracket {
    std::vector<base::Iteration> levels;
    std::vector<std::uint64_t> trials; ///< that train up to each
};

/// Trials that train up to each level of one bracket with `entrants` trials, without finish_top.
std::vector<std::uint64_t> survivors(const study::StudySpec& spec, std::size_t levels, std::uint64_t entrants) {
    std::vector<std::uint64_t> trials;
    double left = static_cast<double>(entrants);
    for (std::size_t i = 0; i < levels; ++i) {
        trials.push_back(static_cast<std::uint64_t>(left));
        const double next = std::floor(left / spec.scheduler.eta);
        // The stopping variant lets the best so far pass, however few there are.
        left = spec.scheduler.variant == study::AshaVariant::stop && left > 0.0 ? std::max(next, 1.0) : next;
    }
    return trials;
}

/// The highest rung of all brackets at which a trial is left behind; null: none is. Its bracket and its number.
std::pair<Bracket*, std::size_t> highest_with_paused(std::vector<Bracket>& brackets) {
    Bracket* found = nullptr;
    std::size_t rung = 0;
    for (Bracket& bracket : brackets) {
        for (std::size_t i = bracket.levels.size() - 1; i-- > 0;) {
            if (bracket.trials[i] == bracket.trials[i + 1]) continue;
            if (found == nullptr || bracket.levels[i] > found->levels[rung]) {
                found = &bracket;
                rung = i;
            }
            break;
        }
    }
    return {found, rung};
}

/// finish_top, which counts once for all brackets: trials that are paused at the highest rung go to the ceiling.
void finish(const study::StudySpec& spec, std::vector<Bracket>& brackets) {
    if (spec.scheduler.variant != study::AshaVariant::promote) return;
    std::uint64_t at_the_top = 0;
    for (const Bracket& bracket : brackets) at_the_top += bracket.trials.back();
    while (at_the_top < spec.scheduler.finish_top) {
        const auto [bracket, rung] = highest_with_paused(brackets);
        if (bracket == nullptr) return;
        const std::uint64_t more =
            std::min(spec.scheduler.finish_top - at_the_top, bracket->trials[rung] - bracket->trials[rung + 1]);
        for (std::size_t i = rung + 1; i < bracket->trials.size(); ++i) bracket->trials[i] += more;
        at_the_top += more;
    }
}

/// Of one bracket whose rungs see so many trials. A trial at its first rung has no second one yet, unless it saves on
/// the way.
std::uint64_t paused_at_most(const study::StudySpec& spec, const std::vector<std::uint64_t>& trials) {
    if (spec.scheduler.variant != study::AshaVariant::promote || spec.scheduler.restart_paused) return 0;
    const auto eta = static_cast<std::uint64_t>(spec.scheduler.eta);
    const std::uint64_t within_reach = std::max<std::uint64_t>({spec.num_trials / eta, spec.scheduler.finish_top, 1});
    const bool on_the_way = spec.checkpoint.interval != study::CheckpointSpec::Interval::none;
    std::uint64_t checkpoints = 0;
    for (std::size_t rung = 0; rung + 1 < trials.size(); ++rung)
        checkpoints += std::min(trials[rung], within_reach) * (rung > 0 || on_the_way ? 2 : 1);
    return checkpoints;
}

void add(Plan& plan, const Bracket& bracket) {
    const auto& [levels, trials] = bracket;
    base::Iteration before = 0;
    for (std::size_t i = 0; i < levels.size(); ++i) {
        const base::Iteration level = levels[i];
        plan.iterations += trials[i] * (level - before);
        before = level;
        const auto place =
            std::find_if(plan.rungs.begin(), plan.rungs.end(), [&](const auto& r) { return r.iteration >= level; });
        if (place != plan.rungs.end() && place->iteration == level) {
            place->trials += trials[i];
        } else {
            plan.rungs.insert(place, {level, trials[i]});
        }
    }
}

/// At how many rungs trials are left behind, in the brackets that have any: the ceiling is none.
std::string judged_at(const std::vector<Bracket>& brackets) {
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    std::size_t most = 0;
    for (const Bracket& bracket : brackets) {
        if (bracket.trials.front() == 0) continue;
        fewest = std::min(fewest, bracket.levels.size() - 1);
        most = std::max(most, bracket.levels.size() - 1);
    }
    if (fewest < most) return fmt::format("at each of {} to {}, by bracket", fewest, counted(most, "rung"));
    return most == 1 ? "at 1 rung" : fmt::format("at each of {}", counted(most, "rung"));
}

} // namespace

Plan plan(const study::StudySpec& spec) {
    Plan plan;
    plan.full = static_cast<std::uint64_t>(spec.num_trials) * spec.max_iterations;
    plan.running_checkpoints = 2 + spec.checkpoint.keep;
    if (spec.scheduler.kind != study::SchedulerKind::asha) {
        const bool pauses = spec.scheduler.kind == study::SchedulerKind::median && !spec.scheduler.hard_stop;
        plan.paused_checkpoints = pauses ? 2 * std::uint64_t{spec.num_trials} : 0;
        plan.rungs = {{spec.max_iterations, spec.num_trials}};
        plan.iterations = plan.full;
        plan.at_most = spec.scheduler.kind == study::SchedulerKind::median || !spec.stop.metrics.empty() ||
                       spec.stop.plateau || spec.stop.trial_time || spec.time_budget;
        return plan;
    }
    std::vector<std::size_t> rungs;
    for (std::uint32_t b = 0; b < spec.scheduler.brackets; ++b) rungs.push_back(levels_of(spec, b).size());
    // The draw of brackets depends on (seed, trial) only: count it instead of guessing.
    std::vector<std::uint64_t> entrants(spec.scheduler.brackets, 0);
    const schedulers::BracketDraw draw(spec.seed, rungs);
    for (std::uint32_t i = 0; i < spec.num_trials; ++i) ++entrants[draw(base::TrialId{i})];
    std::vector<Bracket> brackets;
    for (std::uint32_t b = 0; b < spec.scheduler.brackets; ++b) {
        auto levels = levels_of(spec, b);
        auto trials = survivors(spec, levels.size(), entrants[b]);
        brackets.push_back({std::move(levels), std::move(trials)});
    }
    finish(spec, brackets);
    std::uint64_t to_the_top = 0;
    for (const Bracket& bracket : brackets) {
        to_the_top += bracket.trials.back();
        plan.paused_checkpoints += paused_at_most(spec, bracket.trials);
        add(plan, bracket);
    }
    if (to_the_top == 0) {
        plan.warning = fmt::format(
            "no trial can reach {}: of {}, one in {} goes on {}; raise study.num_trials or scheduler.first_rung, or "
            "set scheduler.finish_top = 1",
            counted(spec.max_iterations, "iteration"), counted(spec.num_trials, "trial"), spec.scheduler.eta,
            judged_at(brackets));
    }
    return plan;
}

std::uint64_t grid_size(const study::StudySpec& spec) {
    if (spec.searcher.kind != study::SearcherKind::grid) return std::numeric_limits<std::uint64_t>::max();
    return space::Enumeration(spec.space).size();
}

std::string scheduler_words(const study::StudySpec& spec) {
    switch (spec.scheduler.kind) {
        case study::SchedulerKind::fifo:
            return "every trial to the end";
        case study::SchedulerKind::median:
            return "median stopping";
        case study::SchedulerKind::asha:
            break;
    }
    return spec.scheduler.variant == study::AshaVariant::promote ? "ASHA promote" : "ASHA stop";
}

} // namespace ranktune::report
