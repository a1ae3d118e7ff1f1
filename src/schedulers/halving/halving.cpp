// SPDX-License-Identifier: Apache-2.0
#include "schedulers/halving/halving.hpp"

#include <algorithm>
#include <cassert>
#include <utility>
#include <variant>

#include "schedulers/checks.hpp"
#include "schedulers/rungs/levels.hpp"

namespace ranktune::schedulers {

using base::Iteration;
using base::TrialId;
using study::Ranked;
using study::Reason;
using study::Verb;

Halving::Halving(Options options, const study::Objective& objective)
    : options_(std::move(options)), objective_(objective) {
    assert(options_.eta >= 2 && !options_.brackets.empty());
    for (const BracketShape& shape : options_.brackets)
        for (const Iteration level : shape.levels) merge(views_, {level, 0, 0});
}

Scheduler::RungView& Halving::view(Iteration level) {
    return *std::ranges::lower_bound(views_, level, {}, &RungView::iteration);
}

// ---- brackets

/// Whether new trials are created in this bracket: the newest one, until it is full, or has promoted a trial because no
/// more could be created.
bool Halving::takes_trials(std::size_t bracket) const {
    if (bracket + 1 != brackets_.size()) return false;
    const Bracket& rungs = brackets_[bracket];
    const bool has_promoted = rungs.size() > 1 && rungs[1].arrived > 0;
    return !has_promoted && rungs.front().arrived < shape(bracket).trials;
}

/// How many trials a rung is planned for. `cut`: no more trials can be created.
std::uint64_t Halving::size(std::size_t bracket, std::size_t rung, bool cut) const {
    std::uint64_t size = takes_trials(bracket) && !cut ? shape(bracket).trials : brackets_[bracket].front().arrived;
    for (std::size_t i = 0; i < rung; ++i) size = kept(size);
    return size;
}

/// How many of a rung of this size go on.
std::uint64_t Halving::kept(std::uint64_t size) const {
    return options_.keep > 0 ? options_.keep : std::max<std::uint64_t>(size / options_.eta, 1);
}

/// How many more may go on, of `kept`.
std::uint64_t Halving::places_left(const Bracket& bracket, std::size_t rung, std::uint64_t kept) const {
    const Rung& above = bracket[rung + 1];
    const std::uint64_t taken = above.arrived - (options_.keep > 0 ? above.failed : 0);
    return kept - std::min(taken, kept);
}

/// The rung has promoted all that it will ever promote.
bool Halving::has_no_place(const Slot& at) const {
    if (options_.keep > 0 || is_last(at)) return false;
    return places_left(brackets_[at.bracket], at.rung, kept(size(at.bracket, at.rung, false))) == 0;
}

/// All trials of this trial's rung have come, and all others have reported.
bool Halving::awaits_nobody_else(const Slot& at, bool cut) const {
    const Bracket& rungs = brackets_[at.bracket];
    if (rungs[at.rung].heading > 1 || (takes_trials(at.bracket) && !cut)) return false;
    for (std::size_t i = 0; i < at.rung; ++i) {
        const bool over = rungs[i].heading == 0 && rungs[i].standing.size() == 0;
        if (!over && places_left(rungs, i, kept(size(at.bracket, i, cut))) > 0) return false;
    }
    return true;
}

/// The trial of the bracket that goes on next; nothing: none does now.
std::optional<Halving::Choice> Halving::choose(std::size_t bracket, bool cut) const {
    if (takes_trials(bracket) && !cut) return {};
    const Bracket& rungs = brackets_[bracket];
    std::uint64_t planned = size(bracket, 0, cut);
    for (std::size_t i = 0; i + 1 < rungs.size(); ++i) {
        const Rung& here = rungs[i];
        const std::uint64_t left = places_left(rungs, i, kept(planned));
        if (left > 0 && here.heading > 0) return {};
        if (left > 0 && here.standing.size() > 0) return Choice{i, here.standing.best()};
        planned = kept(planned);
    }
    return {};
}

// ---- decisions: change nothing

study::Verdict Halving::decide(const Report& report, bool contended) const {
    const Slot& at = slot_of(slots_, report.trial);
    if (report.iteration >= shape(at.bracket).levels.back())
        return {Verb::stop, Reason::max_iterations, static_cast<double>(shape(at.bracket).levels.back())};
    if (report.iteration < level(at)) return {Verb::go_on, Reason::below_rung};
    const Rung& here = brackets_[at.bracket][at.rung];
    const auto iteration = static_cast<double>(level(at));
    const auto entries = static_cast<double>(here.entries + (at.entered ? 0 : 1));
    if (has_no_place(at)) return {Verb::stop, Reason::not_in_top, iteration, entries};
    const bool cut = slots_.size() >= options_.num_trials;
    if (contended || !awaits_nobody_else(at, cut)) return {Verb::pause, Reason::rung, iteration, entries};
    const std::uint64_t planned = size(at.bracket, at.rung, cut);
    const std::uint64_t left = places_left(brackets_[at.bracket], at.rung, kept(planned));
    if (here.standing.position({report.score.rank(), report.trial}) >= left)
        return {Verb::pause, Reason::rung, iteration, entries};
    return {Verb::go_on, Reason::in_top, static_cast<double>(kept(planned)), static_cast<double>(planned)};
}

Work Halving::next(const Pool& pool) const {
    std::optional<std::size_t> bracket;
    std::optional<Choice> choice;
    if (!runnable_.empty()) {
        bracket = *runnable_.begin();
        choice = choose(*bracket, false);
    } else if (!pool.can_create && !brackets_.empty()) {
        bracket = brackets_.size() - 1;
        choice = choose(*bracket, true);
    }
    if (choice) {
        const auto& levels = shape(*bracket).levels;
        return Promotion{choice->entry.trial, levels[choice->rung], levels[choice->rung + 1], Reason::promoted};
    }
    if (pool.can_create) {
        const std::size_t last = brackets_.empty() ? 0 : brackets_.size() - 1;
        const std::size_t newest = !brackets_.empty() && !takes_trials(last) ? last + 1 : last;
        return Create{static_cast<std::uint32_t>(newest), shape(newest).levels.front()};
    }
    return pool.active ? Work(Wait{}) : Work(NothingLeft{});
}

Iteration Halving::next_decision_point(TrialId trial, Iteration current) const {
    return std::max(level(slot_of(slots_, trial)), current + 1);
}

bool Halving::out_of_reach(TrialId trial) const {
    const Slot& at = slot_of(slots_, trial);
    return at.stands() && has_no_place(at);
}

/// Also a paused one: once it is promoted, its next rung waits for it.
bool Halving::holds_up_others(TrialId trial) const {
    const Slot& at = slot_of(slots_, trial);
    return at.phase != Phase::closed && !is_last(at);
}

// ---- records

void Halving::apply(const study::Record& record) {
    fell_out_.clear();
    std::visit(
        [this](const auto& r) {
            if constexpr (requires { on(r); }) on(r);
        },
        record);
}

void Halving::on(const study::TrialCreated& record) {
    const std::size_t newest =
        brackets_.empty() || !takes_trials(brackets_.size() - 1) ? brackets_.size() : brackets_.size() - 1;
    require_record(record.trial.value() == slots_.size() && record.bracket == newest, record.trial,
                   "is created out of order or not in the bracket that takes trials");
    slots_.push_back({.bracket = record.bracket});
    place(record.trial);
    refresh(record.bracket);
}

void Halving::on(const study::Reported& record) {
    Slot& at = slot_of(slots_, record.trial);
    if (record.iteration < level(at)) return;
    enter(at);
    if (is_last(at) || record.verdict.verb == Verb::stop) return; // it is awaited until it is closed
    if (record.verdict.verb == Verb::pause) {
        if (!at.stands()) stand(record.trial, objective_.score(objective_.value(record)));
    } else {
        go_up(record.trial);
    }
    refresh(at.bracket);
}

void Halving::enter(Slot& at) {
    if (at.entered) return;
    at.entered = true;
    ++rung(at).entries;
    ++view(level(at)).entries;
}

/// The trial pauses at its rung.
void Halving::stand(TrialId trial, double score) {
    leave(trial);
    Slot& at = slot_of(slots_, trial);
    at.score = score;
    at.phase = Phase::paused;
    rung(at).standing.insert({score, trial});
    if (has_no_place(at)) fell_out_.push_back(trial);
}

/// Out of the rung, in whatever phase it is there.
void Halving::leave(TrialId trial) {
    Slot& at = slot_of(slots_, trial);
    Rung& here = rung(at);
    if (at.phase == Phase::heading) --here.heading;
    if (at.stands()) here.standing.erase({at.score, trial});
    at.score = 0.0;
}

/// The trial leaves its rung for the next one.
void Halving::go_up(TrialId trial) {
    leave(trial);
    Slot& at = slot_of(slots_, trial);
    ++view(level(at)).promoted;
    const Slot below = at;
    ++at.rung;
    at.phase = Phase::heading;
    at.entered = false;
    ++rung(at).arrived;
    ++rung(at).heading;
    if (!has_no_place(below)) return;
    brackets_[below.bracket][below.rung].standing.for_each(
        [this](const Ranked& left) { fell_out_.push_back(left.trial); });
}

void Halving::on(const study::TrialPromoted& record) {
    const Slot& at = slot_of(slots_, record.trial);
    require_record(at.phase == Phase::paused, record.trial, "is promoted although it is not paused at a rung");
    go_up(record.trial);
    refresh(at.bracket);
}

void Halving::on(const study::TrialClosed& record) {
    Slot& at = slot_of(slots_, record.trial);
    require_record(at.phase != Phase::closed, record.trial, "is closed twice");
    leave(record.trial);
    at.phase = Phase::closed;
    if (record.phase == study::TrialPhase::failed) count_failure(at, true);
    at.failed = record.phase == study::TrialPhase::failed;
    refresh(at.bracket);
}

/// The trial is awaited again where it failed.
void Halving::on(const study::TrialReopened& record) {
    Slot& at = slot_of(slots_, record.trial);
    require_record(at.phase == Phase::closed, record.trial, "is reopened but open");
    if (at.failed) count_failure(at, false);
    at.failed = false;
    at.phase = Phase::heading;
    ++rung(at).heading;
    refresh(at.bracket);
}

void Halving::count_failure(const Slot& at, bool failed) {
    Bracket& rungs = brackets_[at.bracket];
    for (std::size_t i = 0; i <= at.rung; ++i) failed ? ++rungs[i].failed : --rungs[i].failed;
}

void Halving::refresh(std::size_t bracket) {
    if (choose(bracket, false)) {
        runnable_.insert(bracket);
    } else {
        runnable_.erase(bracket);
    }
}

} // namespace ranktune::schedulers
