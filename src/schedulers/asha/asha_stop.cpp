// SPDX-License-Identifier: Apache-2.0
#include "schedulers/asha/asha_stop.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "ranktune/base/error.hpp"
#include "schedulers/checks.hpp"

namespace ranktune::schedulers {
namespace {

using study::Reason;
using study::Verb;

std::vector<base::Iteration> levels_of(const AshaStop::Options& options, std::uint32_t bracket) {
    if (options.rule == AshaStop::Rule::ray) {
        return ray_levels(options.first_rung, options.eta, options.ceiling, bracket, AshaStop::max_rungs);
    }
    return integer_levels(static_cast<base::Iteration>(options.first_rung), static_cast<std::uint64_t>(options.eta),
                          options.ceiling, bracket);
}

std::vector<std::vector<base::Iteration>> all_levels(const AshaStop::Options& options) {
    std::vector<std::vector<base::Iteration>> levels;
    for (std::uint32_t b = 0; b < options.brackets; ++b) levels.push_back(levels_of(options, b));
    return levels;
}

/// Bits 0 .. count-1.
std::uint64_t lowest_bits(std::size_t count) {
    return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

} // namespace

AshaStop::AshaStop(const Options& options, const study::Objective& objective)
    : options_(options),
      count_(options.rule == Rule::ray ? BestCount::Rule::quantile : BestCount::Rule::at_least_one, options.eta),
      objective_(objective),
      bracket_of_(bracket_choice(options.allotment, options.seed, all_levels(options),
                                 static_cast<std::uint64_t>(options.eta))) {
    assert(options.brackets >= 1 && options.brackets <= 255);
    assert(options.allotment == Allotment::ray || options.rule == Rule::floor);
    if (options_.rule == Rule::floor) options_.stop_last_trials = true;
    for (std::uint32_t b = 0; b < options.brackets; ++b) {
        first_.push_back(rungs_.size());
        const auto levels = levels_of(options, b);
        if (levels.size() > max_rungs) {
            throw base::UsageError("scheduler.eta = " + std::to_string(options.eta) + " gives more than " +
                                   std::to_string(max_rungs) + " rungs; take a larger eta");
        }
        for (const base::Iteration level : levels) rungs_.push_back({.level = level, .ranked = RankedSplit(count_)});
    }
    first_.push_back(rungs_.size());
}

// ---- deciding: changes nothing --------------------------------------------------------------------------------------

/// Position in rungs_ of the rung that a report is compared at and entered in, if any.
std::optional<std::size_t> AshaStop::rung_to_enter(const Slot& at, base::Iteration iteration) const {
    const std::size_t begin = first_[at.bracket];
    const std::size_t count = rungs_of(at.bracket);
    std::size_t reached = 0;
    while (reached < count && rungs_[begin + reached].level <= iteration) ++reached;
    const std::uint64_t open = lowest_bits(reached) & ~at.entered;
    if (open == 0) return std::nullopt;
    const auto highest = static_cast<std::size_t>(63 - std::countl_zero(open));
    if (!options_.stop_last_trials && highest + 1 != reached) return std::nullopt;
    return begin + highest;
}

study::Verdict AshaStop::decide(const Report& report, bool) const {
    const Slot& at = slot_of(slots_, report.trial);
    if (ends_at_ceiling(report.iteration)) {
        return {Verb::stop, Reason::max_iterations, static_cast<double>(options_.ceiling)};
    }
    const auto position = rung_to_enter(at, report.iteration);
    if (!position) return {Verb::go_on, Reason::below_rung};
    const Rung& here = rungs_[*position];
    return options_.rule == Rule::floor ? decide_floor(here, report) : decide_ray(here, report);
}

study::Verdict AshaStop::decide_floor(const Rung& here, const Report& report) const {
    const std::size_t size = several() ? here.compared.next_size() : here.ranked.size() + 1;
    const auto entries = static_cast<double>(size);
    if (!is_in_best(here, report)) {
        return {Verb::stop, Reason::not_in_top, static_cast<double>(here.level), entries};
    }
    if (size == 1) return {Verb::go_on, Reason::first_arrival};
    return {Verb::go_on, Reason::in_top, static_cast<double>(count_(size)), entries};
}

bool AshaStop::is_in_best(const Rung& here, const Report& report) const {
    if (!several()) return here.ranked.would_be_in_best({report.score.rank(), report.trial});
    const std::vector<base::TrialId> order = here.compared.order_with(report.trial, report.score);
    const auto place = std::ranges::find(order, report.trial) - order.begin();
    return std::cmp_less(place, count_(order.size()));
}

study::Verdict AshaStop::decide_ray(const Rung& here, const Report& report) const {
    if (here.ranked.size() == 0) return {Verb::go_on, Reason::first_arrival};
    if (report.is_nan) return {Verb::go_on, Reason::none}; // compares with nothing
    const auto entries = static_cast<double>(here.entries + 1);
    if (report.score.rank() < here.ranked.quantile()) {
        return {Verb::stop, Reason::not_in_top, static_cast<double>(here.level), entries};
    }
    return {Verb::go_on, Reason::in_top, static_cast<double>(here.ranked.next_best_count()), entries};
}

base::Iteration AshaStop::next_decision_point(base::TrialId trial, base::Iteration current) const {
    const Slot& at = slot_of(slots_, trial);
    for (std::size_t k = 0; k < rungs_of(at.bracket); ++k) {
        const base::Iteration level = rungs_[first_[at.bracket] + k].level;
        if (level > current && (at.entered >> k & 1U) == 0) return level;
    }
    return std::max(options_.ceiling, current + 1);
}

std::vector<Scheduler::RungView> AshaStop::rungs() const {
    std::vector<RungView> views;
    for (std::size_t i = 0; i < rungs_.size(); ++i) {
        const RungView view{rungs_[i].level, rungs_[i].entries, rungs_[i].promoted};
        i < first_[1] ? views.push_back(view) : merge(views, view);
    }
    return views;
}

// ---- applying: the only mutator -------------------------------------------------------------------------------------

void AshaStop::apply(const study::Record& record) {
    std::visit(
        [this](const auto& r) {
            if constexpr (requires { on(r); }) on(r);
        },
        record);
}

void AshaStop::on(const study::Reported& record) {
    Slot& at = slot_of(slots_, record.trial);
    // Rule ray: a trial that the ceiling ends leaves no entry; one that something else ends there does.
    if (options_.rule == Rule::ray && ends_at_ceiling(record.iteration) &&
        (record.verdict.verb != Verb::stop || record.verdict.reason == Reason::max_iterations)) {
        return;
    }
    const auto position = rung_to_enter(at, record.iteration);
    if (!position) return;
    const double value = objective_.value(record);
    const study::Score score = several() ? objective_.score(record) : study::Score(objective_.score(value));
    enter(at, *position, record.trial, score, std::isnan(value), record.verdict.verb == Verb::go_on);
}

void AshaStop::on(const study::TrialCreated& record) {
    require_record(record.trial.value() == slots_.size() && record.bracket + 1 < first_.size(), record.trial,
                   "is created out of order or in an unknown bracket");
    slots_.push_back({.bracket = static_cast<std::uint8_t>(record.bracket)});
}

void AshaStop::on(const study::TrialClosed& record) {
    Slot& at = slot_of(slots_, record.trial);
    require_record(!at.closed, record.trial, "is closed twice");
    at.closed = true;
    if (options_.rule != Rule::floor || record.phase != study::TrialPhase::failed) return;
    const auto heading = static_cast<std::size_t>(std::countr_one(at.entered));
    if (heading >= rungs_of(at.bracket)) return;
    enter(at, first_[at.bracket] + heading, record.trial, -std::numeric_limits<double>::infinity(), false, false);
}

/// Removes the entry that the failure made, so that the trial can be entered with its next report.
void AshaStop::on(const study::TrialReopened& record) {
    Slot& at = slot_of(slots_, record.trial);
    require_record(at.closed, record.trial, "is reopened but open");
    at.closed = false;
    if (options_.rule != Rule::floor || at.entered == 0) return;
    const auto index = static_cast<std::size_t>(std::bit_width(at.entered)) - 1;
    Rung& here = rungs_[first_[at.bracket] + index];
    const bool by_failure = several() ? here.compared.erase_failure(record.trial)
                                      : here.ranked.erase({-std::numeric_limits<double>::infinity(), record.trial});
    if (!by_failure) return;
    --here.entries;
    at.entered &= ~(std::uint64_t{1} << index);
}

void AshaStop::enter(Slot& at, std::size_t position, base::TrialId trial, const study::Score& score, bool is_nan,
                     bool goes_on) {
    const std::size_t index = position - first_[at.bracket];
    at.entered |= options_.rule == Rule::floor ? lowest_bits(index + 1) : std::uint64_t{1} << index;
    Rung& here = rungs_[position];
    ++here.entries;
    if (goes_on) ++here.promoted;
    if (several())
        here.compared.insert(trial, score);
    else if (options_.rule == Rule::floor || !is_nan)
        here.ranked.insert({score.rank(), trial});
}

} // namespace ranktune::schedulers
