// SPDX-License-Identifier: Apache-2.0
#include "tuner/admission/by_turn.hpp"

#include <algorithm>
#include <utility>

#include "ranktune/study/schema.hpp"
#include "schedulers/checks.hpp"
#include "tuner/rules/causes.hpp"

namespace ranktune::tuner {

using schedulers::require;

const LogicalSlot* ByTurn::slot_of(TrialId id) const {
    const std::uint32_t slot = trials_[id].slot;
    return slot == no_slot ? nullptr : &time_.slots()[slot];
}

/// (A group that has saved is about to leave: the verdict waits for that, too.)
bool ByTurn::has_to_save(TrialId id) const {
    const Trial& t = trials_[id];
    const LogicalSlot* slot = slot_of(id);
    if (slot == nullptr || slot->held.empty()) return false;
    const Iteration iteration = slot->held.back().iteration;
    if (!scheduler_.saves_first(id, iteration)) return false;
    return t.attempt.live || std::ranges::none_of(t.checkpoints, [&](const CheckpointRef& each) {
               return each.generation == t.generation() && each.iteration == iteration;
           });
}

// ---- facts

Standing ByTurn::standing(TrialId trial, Iteration iteration) const {
    const LogicalSlot* slot = slot_of(trial);
    if (slot == nullptr) return Standing::foreign;
    if (iteration <= slot->received) return Standing::known;
    const bool its_turn = !draining_ && time_.next() == trials_[trial].slot && slot->held.empty();
    return its_turn && !scheduler_.saves_first(trial, iteration) ? Standing::next : Standing::early;
}

std::optional<Fact> ByTurn::next() const {
    if (draining_ || !time_.any_busy()) return {};
    const LogicalSlot& slot = time_.slots()[time_.next()];
    if (!slot.held.empty()) {
        if (slot.held.size() == 1 && !slot.end && has_to_save(*slot.trial)) return {};
        const study::ReportHeld& held = slot.held.front();
        return ReportFact{*slot.trial, held.attempt, held.iteration, held.seconds, held.metrics};
    }
    if (slot.end) return EndFact{*slot.trial, slot.end->outcome, slot.end->failure};
    return {};
}

Iteration ByTurn::received(TrialId trial) const {
    const LogicalSlot* slot = slot_of(trial);
    return slot == nullptr ? trials_[trial].attempt.iteration : slot->received;
}

const std::deque<study::ReportHeld>* ByTurn::held(TrialId trial) const {
    const LogicalSlot* slot = slot_of(trial);
    return slot == nullptr ? nullptr : &slot->held;
}

bool ByTurn::has_ended(TrialId trial) const {
    const LogicalSlot* slot = slot_of(trial);
    return slot != nullptr && slot->end && slot->held.size() == 1 && has_to_save(trial);
}

// ---- work and ranks

void ByTurn::visit_line(const std::function<bool(TrialId)>& visit) const {
    for (const UnitKey& key : time_.needy())
        if (!visit(*time_.slots()[key.slot].trial)) return;
}

bool ByTurn::wants_ranks(TrialId trial) const {
    const Trial& t = trials_[trial];
    const LogicalSlot* slot = slot_of(trial);
    if (slot == nullptr || t.phase != TrialPhase::waiting || t.attempt.live) return false;
    return !slot->end && (slot->received < t.decision_point || has_to_save(trial));
}

bool ByTurn::is_parked(TrialId trial) const {
    const Trial& t = trials_[trial];
    const LogicalSlot* slot = slot_of(trial);
    return slot != nullptr && t.phase == TrialPhase::running && !t.attempt.abandoned &&
           slot->received >= t.decision_point;
}

std::optional<TrialId> ByTurn::to_yield(std::optional<TrialId> before, std::uint32_t wanted, std::uint32_t free) const {
    const UnitKey key = before ? time_.key(trials_[*before].slot) : UnitKey{};
    if (free + returning_ >= wanted) return {};
    const auto& parked = time_.parked();
    for (auto at = parked.rbegin(); at != parked.rend() && !(*at < key); ++at) {
        const TrialId id = *time_.slots()[at->slot].trial;
        if (!leaving_.contains(id)) return id;
    }
    return {};
}

std::optional<TrialId> ByTurn::surplus(std::uint32_t, bool) const {
    if (unsaved_.empty()) return {};
    return *unsaved_.begin();
}

// ---- mutators

void ByTurn::apply(const study::Record& record) {
    std::optional<TrialId> about;
    std::visit(
        [&](const auto& r) {
            if constexpr (requires { r.trial; }) about = r.trial;
        },
        record);
    if (std::holds_alternative<study::TrialCreated>(record) || std::holds_alternative<study::TrialPromoted>(record)) {
        enter_slot(*about);
    } else if (std::holds_alternative<study::TrialReopened>(record)) {
        unslotted_.insert(*about);
        if (time_.has_empty_slot()) enter_slot(*unslotted_.begin());
    } else if (const auto* report = std::get_if<study::Reported>(&record)) {
        admit(*report);
    } else if (const auto* early = std::get_if<study::ReportHeld>(&record)) {
        keep(*early);
    } else if (const auto* ended = std::get_if<study::AttemptEnded>(&record)) {
        set_leaving(ended->trial, false);
    } else if (std::holds_alternative<study::TrialClosed>(record)) {
        unslotted_.erase(*about);
        if (const std::uint32_t slot = trials_[*about].slot; slot != no_slot) {
            if (time_.next() == slot) time_.admit(slot); // a trial that is closed before its turn takes no time
            leave_slot(*about);
        }
    } else if (std::holds_alternative<study::YieldAsked>(record)) {
        set_leaving(*about, true);
    } else if (const auto* retired = std::get_if<study::HostRetired>(&record)) {
        for (const TrialId id : retired->trials) forget_failure(id);
    } else if (const auto* drained = std::get_if<study::DrainBegan>(&record)) {
        draining_ = true;
        if (blames_surroundings(drained->reason))
            for (const auto& slot : time_.slots())
                if (slot.trial && trials_[*slot.trial].unheard) forget_failure(*slot.trial);
    } else if (std::holds_alternative<study::IncarnationBegan>(record)) {
        draining_ = false;
        leaving_.clear();
        returning_ = 0;
    }
    const bool about_ranks =
        std::holds_alternative<study::IncarnationBegan>(record) || std::holds_alternative<study::RankLost>(record);
    if (about_ranks)
        for (const auto& slot : time_.slots())
            if (slot.trial) refresh(*slot.trial);
    if (about) refresh(*about);
}

void ByTurn::admit(const study::Reported& r) {
    const std::uint32_t position = trials_[r.trial].slot;
    if (position == no_slot) impossible(named(r.trial) + " reports without having a slot");
    LogicalSlot& slot = time_.slot(position);
    if (slot.held.empty())
        slot.received = r.iteration;
    else
        slot.held.pop_front();
    time_.admit(position);
    if (r.verdict.verb == Verb::pause || r.verdict.verb == Verb::stop) leave_slot(r.trial);
}

void ByTurn::keep(const study::ReportHeld& r) {
    const std::uint32_t position = trials_[r.trial].slot;
    if (position == no_slot) impossible("a report of " + named(r.trial) + " waits for no turn");
    LogicalSlot& slot = time_.slot(position);
    slot.held.push_back(r);
    slot.received = r.iteration;
}

/// How it ended takes effect when its turn comes.
void ByTurn::end(EndFact fact) {
    const std::uint32_t position = trials_[fact.trial].slot;
    if (position != no_slot) time_.slot(position).end = HeldEnd{fact.outcome, std::move(fact.failure)};
}

/// Forgets a failure that has not taken effect yet: the trial is tried again.
void ByTurn::forget_failure(TrialId id) {
    const std::uint32_t position = trials_[id].slot;
    if (position == no_slot) return;
    auto& end = time_.slot(position).end;
    if (end && is_failure(end->outcome)) end.reset();
    refresh(id);
}

void ByTurn::enter_slot(TrialId id) {
    if (!time_.has_empty_slot()) impossible("there is no slot for " + named(id));
    unslotted_.erase(id);
    trials_.at(id).slot = time_.enter(id, trials_[id].iteration);
    refresh(id);
}

/// Frees the slot. A reopened trial gets it first.
void ByTurn::leave_slot(TrialId id) {
    time_.leave(std::exchange(trials_.at(id).slot, no_slot));
    if (!unslotted_.empty()) enter_slot(*unslotted_.begin());
}

void ByTurn::set_leaving(TrialId id, bool leaves) {
    const auto ranks = static_cast<std::uint32_t>(trials_[id].attempt.ranks.size());
    if (leaves && leaving_.insert(id).second) returning_ += ranks;
    if (!leaves && leaving_.erase(id) > 0) returning_ -= ranks;
}

void ByTurn::refresh(TrialId id) {
    if (winds_down(trials_[id])) set_leaving(id, true);
    unsaved_.erase(id);
    const std::uint32_t slot = trials_[id].slot;
    if (slot == no_slot) return;
    const bool parked = is_parked(id);
    time_.set_needs_ranks(slot, wants_ranks(id));
    time_.set_parked(slot, parked);
    if (parked && !leaving_.contains(id) && has_to_save(id)) unsaved_.insert(id);
}

// ---- snapshot and invariants

void ByTurn::snapshot(study::Encoder& out) const {
    study::put(out, draining_);
    study::put(out, std::vector<TrialId>(leaving_.begin(), leaving_.end()));
    study::put(out, time_.now());
    study::put(out, time_.slots());
}

void ByTurn::restore(study::Decoder& in) {
    study::get(in, draining_);
    const auto leaving = study::decoded<std::vector<TrialId>>(in);
    const auto now = study::decoded<double>(in);
    time_.restored(now, study::decoded<std::vector<LogicalSlot>>(in));
    unslotted_.clear();
    unsaved_.clear();
    leaving_.clear();
    returning_ = 0;
    for (const TrialId id : leaving) set_leaving(id, true);
    for (std::uint32_t i = 0; i < trials_.size(); ++i) {
        const Trial& t = trials_[TrialId{i}];
        if (t.phase == TrialPhase::waiting && t.slot == no_slot) unslotted_.insert(TrialId{i});
        refresh(TrialId{i});
    }
}

/// Trials and slots refer to each other, and the lists of trials that need or idly hold ranks are right.
void ByTurn::check_invariants() const {
    const auto& slots = time_.slots();
    std::uint32_t returning = 0;
    for (std::uint32_t i = 0; i < trials_.size(); ++i) {
        const TrialId id{i};
        const Trial& t = trials_[id];
        require(t.slot == no_slot || slots.at(t.slot).trial == id, named(id) + " and its slot disagree");
        require(!winds_down(t) || leaving_.contains(id), named(id) + " leaves, but its ranks are not counted on");
        require(unslotted_.contains(id) == (t.phase == TrialPhase::waiting && t.slot == no_slot),
                named(id) + " and the list of those without a slot disagree");
        if (leaving_.contains(id)) {
            require(t.attempt.live, named(id) + " is waited for but holds no ranks");
            returning += static_cast<std::uint32_t>(t.attempt.ranks.size());
        }
    }
    require(returning == returning_, "the number of ranks that come back is off");
    for (std::uint32_t s = 0; s < slots.size(); ++s) {
        const LogicalSlot& slot = slots[s];
        require(slot.clock <= time_.now(), "the clock of a slot is ahead of time");
        if (!slot.trial) continue;
        const Trial& t = trials_[*slot.trial];
        require(t.slot == s, named(*slot.trial) + " does not know its slot");
        require(t.phase == TrialPhase::waiting || t.phase == TrialPhase::running,
                named(*slot.trial) + " has a slot but is " + std::string(name(t.phase)));
        Iteration last = t.iteration;
        for (const auto& report : slot.held) {
            require(report.iteration > last, named(*slot.trial) + " holds reports out of order");
            last = report.iteration;
        }
        require(slot.received == last, named(*slot.trial) + " has received something else than it holds");
        const auto key = time_.key(s);
        require(time_.needy().contains(key) == wants_ranks(*slot.trial),
                named(*slot.trial) + " and the list of those that need ranks disagree");
        const bool unsaved = is_parked(*slot.trial) && !leaving_.contains(*slot.trial) && has_to_save(*slot.trial);
        require(unsaved_.contains(*slot.trial) == unsaved, named(*slot.trial) + " is asked to save, or is not");
        require(time_.parked().contains(key) == is_parked(*slot.trial),
                named(*slot.trial) + " and the list of those whose turn has not come disagree");
    }
}

} // namespace ranktune::tuner
