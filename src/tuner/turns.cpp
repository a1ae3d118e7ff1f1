// SPDX-License-Identifier: Apache-2.0
// Deterministic mode: what records do to logical time. Called by apply(), live and in replay.

#include <utility>

#include "tuner/core.hpp"

namespace ranktune::tuner {

void Tuner::Impl::apply_turn(const study::Record& record) {
    std::optional<TrialId> about;
    std::visit(
        [&](const auto& r) {
            if constexpr (requires { r.trial; }) about = r.trial;
        },
        record);
    if (std::holds_alternative<study::TrialCreated>(record) || std::holds_alternative<study::TrialPromoted>(record)) {
        enter_slot(*about);
    } else if (std::holds_alternative<study::TrialReopened>(record)) {
        unslotted.insert(*about);
        if (state.logical.has_empty_slot()) enter_slot(*unslotted.begin());
    } else if (const auto* report = std::get_if<study::Reported>(&record)) {
        apply_turn_of(*report);
    } else if (std::holds_alternative<study::TrialClosed>(record)) {
        unslotted.erase(*about);
        if (const std::uint32_t slot = trial(*about).slot; slot != no_slot) {
            state.logical.admit(slot);
            leave_slot(*about);
        }
    } else if (std::holds_alternative<study::TrialStarted>(record)) {
        set_decision_point(*about);
    } else if (const auto* retired = std::get_if<study::HostRetired>(&record)) {
        for (const TrialId id : retired->trials) forget_failure(id);
    } else if (const auto* drained = std::get_if<study::DrainBegan>(&record);
               drained != nullptr && blames_surroundings(drained->reason)) {
        for (const auto& slot : state.logical.slots())
            if (slot.trial && trial(*slot.trial).unheard) forget_failure(*slot.trial);
    } else if (std::holds_alternative<study::IncarnationBegan>(record)) {
        leaving.clear();
        returning = 0;
        for (const auto& slot : state.logical.slots())
            if (slot.trial) refresh_turn(*slot.trial);
    }
    if (about) refresh_turn(*about);
}

void Tuner::Impl::apply_turn_of(const study::Reported& r) {
    TrialState& t = trial(r.trial);
    if (t.slot == no_slot) impossible("trial #" + std::to_string(r.trial.value()) + " reports without having a slot");
    LogicalSlot& slot = state.logical.slot(t.slot);
    if (slot.held.empty())
        slot.received = r.iteration;
    else
        slot.held.pop_front();
    state.logical.admit(t.slot);
    if (r.verdict.verb == Verb::go_on) {
        if (r.iteration >= t.decision_point) set_decision_point(r.trial);
        return;
    }
    leave_slot(r.trial);
    if (r.verdict.verb != Verb::pause) return; // the record that follows closes it
    if (t.phase == TrialPhase::running) wind(r.trial);
    set_phase(r.trial, TrialPhase::paused);
}

/// The iteration at which a group has to wait for the turn of its trial.
void Tuner::Impl::set_decision_point(TrialId id) {
    TrialState& t = trial(id);
    t.decision_point = next_decision_point(id, t.iteration);
    t.target = scheduler->next_decision_point(id, t.iteration);
}

/// Only ranks come back: what the trial was told, or how it ended, counts when its turn comes.
void Tuner::Impl::end_attempt_of_turn(const study::AttemptEnded& r) {
    TrialState& t = trial(r.trial);
    set_leaving(r.trial, false);
    t.abandoned = false;
    if (std::exchange(t.winding, false)) return;
    if (r.outcome == AttemptOutcome::lost) learn_from_loss(t, r.at);
    set_phase(r.trial, TrialPhase::waiting);
    switch (r.outcome) {
        case AttemptOutcome::lost:
        case AttemptOutcome::disturbed:
            ++t.losses;
            break;
        case AttemptOutcome::failed:
            ++t.failures;
            t.failed_at = last_report(r.trial);
            t.failure = digest_of_failure(r.message);
            break;
        case AttemptOutcome::unreachable:
            t.losses = r.retry ? t.losses + 1 : 0;
            return;
        case AttemptOutcome::unreadable:
        case AttemptOutcome::finished:
            break;
        case AttemptOutcome::paused:
        case AttemptOutcome::stopped:
        case AttemptOutcome::unsaved:
        case AttemptOutcome::unstarted:
        case AttemptOutcome::stateless:
            return; // it goes on when it gets ranks
    }
    if (!r.retry && t.slot != no_slot) state.logical.slot(t.slot).end = HeldEnd{r.outcome, r.message};
}

/// Of a trial whose turn has not come: it is tried again, as if nothing had been.
void Tuner::Impl::forget_failure(TrialId id) {
    const std::uint32_t position = trial(id).slot;
    if (position == no_slot) return;
    auto& end = state.logical.slot(position).end;
    if (end && (end->outcome == AttemptOutcome::failed || end->outcome == AttemptOutcome::disturbed)) end.reset();
    refresh_turn(id);
}

void Tuner::Impl::enter_slot(TrialId id) {
    if (!state.logical.has_empty_slot()) impossible("there is no slot for trial #" + std::to_string(id.value()));
    TrialState& t = trial(id);
    unslotted.erase(id);
    t.slot = state.logical.enter(id, t.iteration);
    set_decision_point(id);
    refresh_turn(id);
}

/// The slot is free, for the study to fill; a failed trial that was given another chance comes first.
void Tuner::Impl::leave_slot(TrialId id) {
    state.logical.leave(std::exchange(trial(id).slot, no_slot));
    if (!unslotted.empty()) enter_slot(*unslotted.begin());
}

/// The trial has left its slot, its group is about to give its ranks back.
void Tuner::Impl::wind(TrialId id) {
    trial(id).winding = true;
    set_leaving(id, true);
}

void Tuner::Impl::set_leaving(TrialId id, bool leaves) {
    if (leaves && leaving.insert(id).second) returning += trial(id).wanted_ranks;
    if (!leaves && leaving.erase(id) > 0) returning -= trial(id).wanted_ranks;
}

bool Tuner::Impl::needs_ranks(TrialId id) const {
    const TrialState& t = state.trial(id);
    if (t.slot == no_slot || t.phase != TrialPhase::waiting || t.winding) return false;
    const LogicalSlot& slot = state.logical.slots()[t.slot];
    return !slot.end && slot.received < t.decision_point;
}

bool Tuner::Impl::is_parked(TrialId id) const {
    const TrialState& t = state.trial(id);
    return t.slot != no_slot && t.phase == TrialPhase::running && !t.abandoned &&
           state.logical.slots()[t.slot].received >= t.decision_point;
}

void Tuner::Impl::refresh_turn(TrialId id) {
    const std::uint32_t slot = trial(id).slot;
    if (slot == no_slot) return;
    state.logical.set_needs_ranks(slot, needs_ranks(id));
    state.logical.set_parked(slot, is_parked(id));
}

void Tuner::Impl::mark_nondeterministic() {
    if (!state.deterministic_until) state.deterministic_until = state.records;
}

} // namespace ranktune::tuner
