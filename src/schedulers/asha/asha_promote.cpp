// SPDX-License-Identifier: Apache-2.0
#include "schedulers/asha/asha_promote.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <variant>

#include "ranktune/study/spec.hpp"
#include "schedulers/checks.hpp"

namespace ranktune::schedulers {
namespace {

using study::Ranked;
using study::Reason;
using study::Verb;

std::vector<std::vector<base::Iteration>> all_levels(const AshaPromote::Options& options) {
    std::vector<std::vector<base::Iteration>> levels;
    for (std::uint32_t b = 0; b < options.brackets; ++b)
        levels.push_back(integer_levels(options.first_rung, options.eta, options.ceiling, b));
    return levels;
}

} // namespace

AshaPromote::AshaPromote(const Options& options, const study::Objective& objective)
    : options_(options),
      count_(BestCount::Rule::floor, options.eta),
      objective_(objective),
      bracket_of_(bracket_choice(options.allotment, options.seed, all_levels(options), options.eta)) {
    assert(options.eta >= 2 && options.brackets >= 1 && options.brackets <= 255);
    for (std::uint32_t b = 0; b < options.brackets; ++b) {
        first_.push_back(rungs_.size());
        const auto levels = integer_levels(options.first_rung, options.eta, options.ceiling, b);
        for (std::size_t k = 0; k < levels.size(); ++k) {
            const bool last = k + 1 == levels.size();
            if (!last) order_.push_back(rungs_.size());
            rungs_.push_back({.level = levels[k],
                              .bracket = static_cast<std::uint8_t>(b),
                              .index = static_cast<std::uint8_t>(k),
                              .last = last,
                              .entries = RankedSplit(count_)});
        }
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [this](std::size_t a, std::size_t b) { return rungs_[a].level > rungs_[b].level; });
}

// ---- deciding: changes nothing --------------------------------------------------------------------------------------

study::Verdict AshaPromote::decide(const Report& report, bool contended) const {
    const Slot& at = slot_of(slots_, report.trial);
    const Rung& here = rung(at);
    if (report.iteration < here.level) return {Verb::go_on, Reason::below_rung};
    const auto level = static_cast<double>(here.level);
    if (report.iteration >= options_.ceiling) {
        return {Verb::stop, Reason::max_iterations, static_cast<double>(options_.ceiling)};
    }
    if (at.finishing) return {Verb::go_on, Reason::finish_top, level};

    const std::size_t size = several() ? here.compared.next_size() : here.entries.size() + 1;
    const auto entries = static_cast<double>(size);
    const bool chosen = !contended && may_promote(here, size) && leads(here, report) && !promotable_above(here.level);
    if (!chosen) return {Verb::pause, Reason::rung, level, entries};
    return {Verb::go_on, Reason::in_top, static_cast<double>(count_(size)), entries};
}

/// Whether the report would be among the best of the rung, and better than every trial that waits there.
bool AshaPromote::leads(const Rung& rung, const Report& report) const {
    if (!several()) {
        const Ranked entry{report.score.rank(), report.trial};
        return rung.entries.would_be_in_best(entry) &&
               (!top_among_best(rung) || study::better(entry, rung.paused.top()));
    }
    const std::vector<base::TrialId> order = rung.compared.order_with(report.trial, report.score);
    for (std::size_t place = 0; place < count_(order.size()); ++place) {
        if (order[place] == report.trial) return true;
        if (waits_at({0.0, order[place]}, rung)) return false;
    }
    return false;
}

/// Whether the rung, with so many entries, may promote one of its best.
bool AshaPromote::may_promote(const Rung& rung, std::size_t entries) const {
    return !options_.delayed || entries / options_.eta > rung.promoted;
}

bool AshaPromote::promotable_above(base::Iteration level) const {
    for (const std::size_t position : order_) {
        if (rungs_[position].level <= level) return false;
        if (rungs_[position].promotable) return true;
    }
    return false;
}

/// The entry that `pick` finds in the highest rung where it finds one; the better one if several brackets have that
/// level.
template <class Pick>
AshaPromote::Candidate AshaPromote::highest(Pick pick) const {
    Candidate found;
    for (const std::size_t position : order_) {
        const Rung& each = rungs_[position];
        if (found.entry != nullptr && each.level < found.rung->level) break;
        const Ranked* const entry = pick(each);
        if (entry == nullptr) continue;
        if (found.entry == nullptr || study::better(*entry, *found.entry)) found = {&each, entry};
    }
    return found;
}

/// The best paused trial of the rung; null: none. O(1), but O(trials) if the top of the heap has left without a
/// promotion, which is rare: at the end of the study, or when a trial is closed while it is paused.
const Ranked* AshaPromote::best_waiting(const Rung& rung) const {
    if (!rung.paused.empty() && waits_at(rung.paused.top(), rung)) return &rung.paused.top();
    const Ranked* best = nullptr;
    for (const Ranked& entry : rung.paused.items()) {
        if (waits_at(entry, rung) && (best == nullptr || study::better(entry, *best))) best = &entry;
    }
    return best;
}

Work AshaPromote::next(const Pool& pool) const {
    const Candidate upwards = highest([](const Rung& each) { return each.promotable ? &each.paused.top() : nullptr; });
    if (upwards.entry != nullptr) {
        const Rung& from = *upwards.rung;
        const Rung& to = rungs_[first_[from.bracket] + from.index + 1U];
        return Promotion{upwards.entry->trial, from.level, to.level, Reason::promoted};
    }
    if (pool.can_create) return Create{bracket_of_(pool.trial)};
    if (completed_ + finishing_ >= options_.finish_top) return NothingLeft{};
    // Finish only when nothing else is left: all active trials are finishing already.
    if (pool.active && active_ != finishing_) return Wait{};
    const Candidate to_finish = highest([this](const Rung& each) { return best_waiting(each); });
    if (to_finish.entry == nullptr) return NothingLeft{};
    return Promotion{to_finish.entry->trial, to_finish.rung->level, options_.ceiling, Reason::finish_top};
}

base::Iteration AshaPromote::next_decision_point(base::TrialId trial, base::Iteration current) const {
    const Slot& at = slot_of(slots_, trial);
    if (at.finishing) return std::max(options_.ceiling, current + 1);
    return std::max(rung(at).level, current + 1);
}

std::vector<Scheduler::RungView> AshaPromote::rungs() const {
    std::vector<RungView> views;
    for (const Rung& each : rungs_) {
        const RungView view{each.level, several() ? each.compared.arrivals() : each.entries.size(), each.promoted};
        each.bracket == 0 ? views.push_back(view) : merge(views, view);
    }
    return views;
}

// ---- applying: the only mutator -------------------------------------------------------------------------------------

void AshaPromote::apply(const study::Record& record) {
    fell_out_.clear();
    std::visit(
        [this](const auto& r) {
            if constexpr (requires { on(r); }) on(r);
        },
        record);
}

void AshaPromote::on(const study::Reported& record) {
    Slot& at = slot_of(slots_, record.trial);
    if (record.iteration < rung(at).level) return;
    if (!at.entered) {
        enter(at, record.trial, score_of(record));
        if (rung(at).last) ++completed_;
    }
    if (rung(at).last) {
        set_finishing(at, false);
    } else if (record.verdict.verb == Verb::go_on) {
        promote(at);
    } else {
        set_paused(record.trial, record.verdict.verb == Verb::pause);
    }
}

void AshaPromote::on(const study::TrialCreated& record) {
    require_record(record.trial.value() == slots_.size() && record.bracket < first_.size(), record.trial,
                   "is created out of order or in an unknown bracket");
    slots_.push_back({.bracket = static_cast<std::uint8_t>(record.bracket)});
    ++active_;
}

void AshaPromote::on(const study::TrialPromoted& record) {
    Slot& at = slot_of(slots_, record.trial);
    require_record(at.paused, record.trial, "is promoted although it is not paused at a rung");
    Rung& from = rung(at);
    set_paused(record.trial, false);
    drop_left(from); // so that the next best is on top
    promote(at);
    if (record.reason == Reason::finish_top) set_finishing(at, true);
}

void AshaPromote::on(const study::TrialClosed& record) {
    Slot& at = slot_of(slots_, record.trial);
    require_record(!at.closed, record.trial, "is closed twice");
    set_paused(record.trial, false);
    set_finishing(at, false);
    at.closed = true;
    --active_;
    // Without this entry, failures would keep floor(n / eta) small and starve the rungs above.
    if (record.phase == study::TrialPhase::failed && !at.entered) {
        enter(at, record.trial, -std::numeric_limits<double>::infinity());
    }
}

/// Removes the entry that the failure made, so that the trial can be entered with its next report.
void AshaPromote::on(const study::TrialReopened& record) {
    Slot& at = slot_of(slots_, record.trial);
    require_record(at.closed, record.trial, "is reopened but open");
    at.closed = false;
    ++active_;
    Rung& here = rung(at);
    if (!at.entered || here.last) return;
    const bool by_failure =
        several() ? here.compared.erase_failure(record.trial) : at.score == -std::numeric_limits<double>::infinity();
    if (!by_failure) return;
    if (!several()) here.entries.erase({at.score, record.trial});
    at.entered = false;
    at.score = 0.0;
    several() ? rank_again(here) : refresh(here);
    rebuild_reach(here);
}

study::Score AshaPromote::score_of(const study::Reported& record) const {
    return several() ? objective_.score(record) : study::Score(objective_.score(objective_.value(record)));
}

void AshaPromote::enter(Slot& at, base::TrialId trial, const study::Score& score) {
    Rung& here = rung(at);
    at.entered = true;
    if (several()) {
        here.compared.insert(trial, score);
        return rank_again(here);
    }
    const Ranked entry{score.rank(), trial};
    at.score = entry.score;
    here.entries.insert(entry);
    refresh(here);
    if (const auto out = put_in_reach(here, entry)) fell_out_.push_back(*out);
}

/// Several objectives: every entry may change the places of all others, and a place stands for a score.
void AshaPromote::rank_again(Rung& here) {
    here.entries = RankedSplit(count_);
    here.paused.clear();
    const std::vector<base::TrialId> order = here.compared.order();
    for (std::size_t place = 0; place < order.size(); ++place) {
        const Ranked entry{-static_cast<double>(place), order[place]};
        here.entries.insert(entry);
        Slot& at = slots_[entry.trial.value()];
        if (!at.entered || at.bracket != here.bracket || at.rung != here.index) continue;
        at.score = entry.score;
        if (at.paused) here.paused.push(entry);
    }
    refresh(here);
}

/// The trial leaves its rung for the next one.
void AshaPromote::promote(Slot& at) {
    Rung& from = rung(at);
    ++from.promoted;
    if (options_.delayed) refresh(from);
    ++at.rung;
    at.entered = false;
    at.score = 0.0;
}

void AshaPromote::set_paused(base::TrialId trial, bool paused) {
    Slot& at = slots_[trial.value()];
    if (at.paused == paused) return;
    Rung& here = rung(at);
    at.paused = paused;
    if (paused) {
        --active_;
        if (!several() || here.compared.find(trial) != nullptr) here.paused.push({at.score, trial});
    } else {
        ++active_;
    }
    refresh(here);
}

void AshaPromote::set_finishing(Slot& at, bool finishing) {
    if (at.finishing == finishing) return;
    at.finishing = finishing;
    finishing ? ++finishing_ : --finishing_;
}

bool AshaPromote::waits_at(const Ranked& entry, const Rung& rung) const {
    const Slot& at = slots_[entry.trial.value()];
    return at.paused && at.bracket == rung.bracket && at.rung == rung.index;
}

// ---- what can still be promoted -------------------------------------------------------------------------------------

/// How many trials a rung can promote if all trials of the study come to it; at least finish_top.
std::size_t AshaPromote::reach() const {
    return std::max<std::size_t>({options_.num_trials / options_.eta, options_.finish_top, 1});
}

/// Returns the trial that falls out of reach, if any; it may be the new one.
std::optional<base::TrialId> AshaPromote::put_in_reach(Rung& rung, const Ranked& entry) const {
    if (rung.last || several()) return std::nullopt;
    if (rung.within_reach.size() < reach()) {
        rung.within_reach.push(entry);
        return std::nullopt;
    }
    if (!study::better(entry, rung.within_reach.top())) return entry.trial;
    return rung.within_reach.replace_top(entry).trial;
}

void AshaPromote::rebuild_reach(Rung& rung) const {
    rung.within_reach.clear();
    rung.entries.for_each([&](const Ranked& entry) { static_cast<void>(put_in_reach(rung, entry)); });
}

bool AshaPromote::out_of_reach(base::TrialId trial) const {
    const Slot& at = slot_of(slots_, trial);
    const Rung& here = rung(at);
    if (!at.entered || here.last || several() || here.within_reach.size() < reach()) return false;
    return study::better(here.within_reach.top(), {at.score, trial});
}

void AshaPromote::study_changed(const study::StudySpec& spec) {
    const std::uint32_t num_trials = spec.num_trials;
    options_.num_trials = num_trials;
    for (Rung& each : rungs_) rebuild_reach(each);
}

/// Pops trials that have left from the top.
void AshaPromote::drop_left(Rung& rung) const {
    while (!rung.paused.empty() && !waits_at(rung.paused.top(), rung)) rung.paused.pop();
}

/// Pops trials that have left while they hide whether another one can be promoted: if the top is not among the best,
/// those below it are not either. It stops there, because at the end of a study all paused trials are closed one after
/// the other, and keeping the best of the rest on top would cost O(log n) for each.
void AshaPromote::refresh(Rung& rung) const {
    while (top_among_best(rung) && !waits_at(rung.paused.top(), rung)) rung.paused.pop();
    rung.promotable = top_among_best(rung) && may_promote(rung, rung.entries.size());
}

} // namespace ranktune::schedulers
