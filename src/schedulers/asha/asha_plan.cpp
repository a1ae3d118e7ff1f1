// SPDX-License-Identifier: Apache-2.0
#include "schedulers/asha/asha_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/base/text.hpp"

namespace ranktune::schedulers {
namespace {

using base::counted;

std::vector<base::Iteration> levels_of(const AshaSettings& asha, base::Iteration ceiling, std::uint32_t bracket) {
    if (!asha.ray) {
        return integer_levels(static_cast<base::Iteration>(asha.first_rung), static_cast<std::uint64_t>(asha.eta),
                              ceiling, bracket);
    }
    auto levels = ray_levels(asha.first_rung, asha.eta, ceiling, bracket, 1000);
    levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
    if (levels.empty() || levels.back() < ceiling) levels.push_back(ceiling);
    return levels;
}

struct Bracket {
    std::vector<base::Iteration> levels;
    std::vector<std::uint64_t> trials; ///< that train up to each level
};

/// Trials that train up to each level of one bracket with `entrants` trials, without finish_top.
std::vector<std::uint64_t> survivors(const AshaSettings& asha, std::size_t levels, std::uint64_t entrants) {
    std::vector<std::uint64_t> trials;
    double left = static_cast<double>(entrants);
    for (std::size_t i = 0; i < levels; ++i) {
        trials.push_back(static_cast<std::uint64_t>(left));
        const double next = std::floor(left / asha.eta);
        // The stopping variant lets the best so far pass, however few there are.
        left = !asha.promotes && left > 0.0 ? std::max(next, 1.0) : next;
    }
    return trials;
}

/// The bracket and number of the highest rung at which trials are left behind; null: there is none.
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

/// Applies finish_top, which counts once for all brackets: trials paused at the highest rung go to the ceiling.
void finish(const AshaSettings& asha, std::vector<Bracket>& brackets) {
    if (!asha.promotes) return;
    std::uint64_t at_the_top = 0;
    for (const Bracket& bracket : brackets) at_the_top += bracket.trials.back();
    while (at_the_top < asha.finish_top) {
        const auto [bracket, rung] = highest_with_paused(brackets);
        if (bracket == nullptr) return;
        const std::uint64_t more =
            std::min(asha.finish_top - at_the_top, bracket->trials[rung] - bracket->trials[rung + 1]);
        for (std::size_t i = rung + 1; i < bracket->trials.size(); ++i) bracket->trials[i] += more;
        at_the_top += more;
    }
}

/// The most checkpoints that paused trials of one bracket keep. A trial keeps two, but only one at its first rung
/// unless it also saves between rungs.
std::uint64_t paused_at_most(const study::StudySpec& spec, const AshaSettings& asha,
                             const std::vector<std::uint64_t>& trials) {
    if (!study::needs_checkpoints(spec.scheduler)) return 0;
    const auto eta = static_cast<std::uint64_t>(asha.eta);
    const std::uint64_t within_reach = std::max<std::uint64_t>({spec.num_trials / eta, asha.finish_top, 1});
    const bool on_the_way = spec.checkpoint.interval != study::CheckpointSpec::Interval::none;
    std::uint64_t checkpoints = 0;
    for (std::size_t rung = 0; rung + 1 < trials.size(); ++rung)
        checkpoints += std::min(trials[rung], within_reach) * (rung > 0 || on_the_way ? 2 : 1);
    return checkpoints;
}

void add(study::SchedulerPlan& plan, const Bracket& bracket) {
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

/// At how many rungs trials are left behind, in the brackets that have trials. The ceiling does not count.
std::string judged_at(const std::vector<Bracket>& brackets) {
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    std::size_t most = 0;
    for (const Bracket& bracket : brackets) {
        if (bracket.trials.front() == 0) continue;
        fewest = std::min(fewest, bracket.levels.size() - 1);
        most = std::max(most, bracket.levels.size() - 1);
    }
    if (fewest < most) return "at each of " + std::to_string(fewest) + " to " + counted(most, "rung") + ", by bracket";
    return most == 1 ? "at 1 rung" : "at each of " + counted(most, "rung");
}

} // namespace

study::SchedulerPlan plan_rungs(const study::StudySpec& spec, const AshaSettings& asha) {
    study::SchedulerPlan plan{.words = {}, .certainty = study::SchedulerPlan::Certainty::estimate};
    std::vector<std::vector<base::Iteration>> levels;
    for (std::uint32_t b = 0; b < asha.brackets; ++b) levels.push_back(levels_of(asha, spec.max_iterations, b));
    // The bracket depends on (seed, trial) only: count instead of guessing.
    std::vector<std::uint64_t> entrants(asha.brackets, 0);
    const auto bracket_of = bracket_choice(asha.allotment, spec.seed, levels, static_cast<std::uint64_t>(asha.eta));
    if (asha.brackets == 1)
        entrants.front() = spec.num_trials; // every view asks, of studies with millions of trials, too
    else
        for (std::uint32_t i = 0; i < spec.num_trials; ++i) ++entrants[bracket_of(base::TrialId{i})];
    std::vector<Bracket> brackets;
    for (std::uint32_t b = 0; b < asha.brackets; ++b) {
        auto trials = survivors(asha, levels[b].size(), entrants[b]);
        brackets.push_back({std::move(levels[b]), std::move(trials)});
    }
    finish(asha, brackets);
    std::uint64_t to_the_top = 0;
    for (const Bracket& bracket : brackets) {
        to_the_top += bracket.trials.back();
        plan.paused_checkpoints += paused_at_most(spec, asha, bracket.trials);
        add(plan, bracket);
    }
    if (to_the_top == 0)
        plan.warning = "no trial can reach " + counted(spec.max_iterations, "iteration") + ": of " +
                       counted(spec.num_trials, "trial") + ", one in " + space::number_text(asha.eta) + " goes on " +
                       judged_at(brackets) +
                       "; raise study.num_trials or scheduler.first_rung, or set scheduler.finish_top = 1";
    return plan;
}

} // namespace ranktune::schedulers
