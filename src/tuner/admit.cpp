// SPDX-License-Identifier: Apache-2.0
// Deterministic mode: what arrives is held until its turn, and takes effect in the one order that the study file
// determines, whatever the number of ranks and however long things take.

#include <algorithm>
#include <string>
#include <utility>

#include "ranktune/study/objective.hpp"
#include "tuner/core.hpp"

namespace ranktune::tuner {

void Tuner::Impl::take_report(const study::ReportArrived& event, StudyTime now, Output& out) {
    if (!is_current(event.trial, event.attempt, event.incarnation) || trial(event.trial).abandoned ||
        trial(event.trial).slot == no_slot) {
        ++state.stale_events;
        return;
    }
    const std::uint32_t slot = trial(event.trial).slot;
    if (event.iteration <= state.logical.slots()[slot].received) return; // trained again after a loss
    std::vector<study::MetricValue> metrics = numbered(event.metrics, out);
    const bool its_turn = !state.draining && state.logical.next() == slot && state.logical.slots()[slot].held.empty();
    if (its_turn)
        admit_report(event.trial, event.attempt, event, std::move(metrics), now, out);
    else
        commit(study::ReportHeld{event.trial, event.attempt, now, event.iteration, event.seconds, std::move(metrics)},
               out);
    // Slower than anything that was known: the study has to end earlier before its deadline.
    if (state.deadline && !state.draining && trial(event.trial).pace > slowest_known) set_timer(out);
    settle(now, out);
    end_if_over(now, out);
}

/// An attempt is over; not by the loss of a rank. Whether the trial is depends on what was decided, or will be.
void Tuner::Impl::take_end(TrialId id, AttemptOutcome outcome, const std::string& message, StudyTime now, Output& out) {
    const TrialState& t = trial(id);
    bool retry = false;
    if (!t.winding && outcome == AttemptOutcome::failed) retry = may_retry(id, message);
    if (!t.winding && (outcome == AttemptOutcome::disturbed || outcome == AttemptOutcome::unreachable))
        retry = t.losses < spec.failure.max_losses;
    const bool falls_back = !is_final(t.phase) && outcome == AttemptOutcome::unreadable && !t.checkpoints.empty();
    const bool uncharged = outcome == AttemptOutcome::unsaved || outcome == AttemptOutcome::unstarted ||
                           outcome == AttemptOutcome::stateless;
    if (falls_back || uncharged) retry = true;
    // While the study ends for a cause outside of its trials, none of them fails for it.
    const bool fails = outcome == AttemptOutcome::failed || outcome == AttemptOutcome::disturbed;
    if (fails && t.unheard && state.draining && blames_surroundings(state.drain_reason)) retry = true;
    const bool was_winding = t.winding;
    commit(study::AttemptEnded{id, t.attempt, now, outcome, retry, message}, out);
    // It goes on from the checkpoint before, or from nothing. The file stays: whoever looks for the damage needs it.
    if (falls_back) commit(study::CheckpointReleased{id, std::string(t.checkpoints.back().path)}, out);
    if (was_winding) let_go(id, out);
    if (outcome == AttemptOutcome::unstarted)
        judge_set_up(id, message, now, out);
    else if (speaks_against_host(outcome))
        retire_bad_host(id, now, out);
    // Where one cannot save, the next cannot either: the study ends, and is resumed when there is room.
    if (outcome == AttemptOutcome::unsaved) drain(Reason::unsaved, message, now, out);
    if (outcome == AttemptOutcome::stateless) drain(Reason::stateless, stateless_message(id, message), now, out);
    if (outcome == AttemptOutcome::unreachable && !retry && !was_winding)
        drain(Reason::unreachable, kept_checkpoint_message(message), now, out);
}

/// A trial without ranks that is paused or closed: what it saved may be of no more use.
void Tuner::Impl::let_go(TrialId id, Output& out) {
    retain(id, out);
    if (trial(id).phase == TrialPhase::paused) evict(out);
}

/// Admits what is due, fills slots, and gives ranks away. May be called at any time: what it decides depends on the
/// admitted sequence alone, except who gets which ranks when.
void Tuner::Impl::settle(StudyTime now, Output& out) {
    const auto fill_slots = [&] {
        while (!state.draining && state.logical.has_empty_slot() && next_work(state.logical.any_busy(), now, out)) {
        }
    };
    if (state.ended) return;
    fill_slots();
    while (admit_next(now, out)) fill_slots();
    place_by_turn(now, out);
}

/// The outcome of the unit with the smallest key, if it is there.
bool Tuner::Impl::admit_next(StudyTime now, Output& out) {
    if (state.draining || !state.logical.any_busy()) return false;
    const LogicalSlot& slot = state.logical.slots()[state.logical.next()];
    const TrialId id = *slot.trial;
    if (slot.held.empty()) {
        if (!slot.end) return false;
        admit_end(id, now, out);
        return true;
    }
    const study::ReportHeld& held = slot.held.front();
    study::ReportArrived report{id, held.attempt, state.incarnation, held.iteration, held.seconds, {}};
    for (const auto& metric : held.metrics)
        report.metrics.push_back({state.metrics.at(metric.id.value()), metric.value});
    admit_report(id, held.attempt, report, held.metrics, now, out);
    return true;
}

void Tuner::Impl::admit_report(TrialId id, Attempt attempt, const study::ReportArrived& report,
                               std::vector<study::MetricValue> metrics, StudyTime now, Output& out) {
    const TrialState& t = trial(id);
    const bool has_group = t.phase == TrialPhase::running && !t.abandoned;
    const bool waits = report.iteration >= t.decision_point;
    const Verdict verdict = decide(id, report, objective_of(report));
    const std::optional<TrialId> keeper = state.keeper;
    commit(study::Reported{id, attempt, now, report.iteration, report.seconds, std::move(metrics), verdict}, out);
    if (keeper && keeper != state.keeper) retain(*keeper, out);
    const Verdict told = as_told(id, verdict);
    if (verdict.verb == Verb::pause && !t.winding) let_go(id, out);
    if (has_group && waits) {
        const Iteration next = verdict.verb == Verb::go_on ? t.decision_point : 0;
        out.commands.emplace_back(study::Decide{id, t.attempt, state.incarnation, report.iteration, told, next});
    } else if (has_group && verdict.verb != Verb::go_on) {
        out.commands.emplace_back(study::Interrupt{id, t.attempt, state.incarnation, told});
    }
    if (verdict.verb == Verb::stop) close(id, phase_after(verdict.reason), verdict, {}, now, out);
    if (verdict.reason == Reason::missing_metric && state.reports == 1)
        drain(Reason::missing_metric, missing_metric_message(report), now, out);
}

void Tuner::Impl::admit_end(TrialId id, StudyTime now, Output& out) {
    const TrialState& t = trial(id);
    const HeldEnd end = *state.logical.slots()[t.slot].end;
    if (end.outcome == AttemptOutcome::lost || end.outcome == AttemptOutcome::disturbed) {
        const std::string message = end.outcome == AttemptOutcome::disturbed
                                        ? end.message
                                        : "its ranks were lost " + std::to_string(t.losses) + " times";
        close(id, TrialPhase::failed, {Verb::stop, Reason::lost, static_cast<double>(t.losses), 0.0}, message, now,
              out);
    } else if (end.outcome == AttemptOutcome::finished && t.reported) {
        close(id, TrialPhase::finished, {Verb::stop, Reason::trainable_done, 0.0, 0.0}, {}, now, out);
    } else {
        const std::string message =
            end.outcome == AttemptOutcome::finished ? "the trainable ended without a single report" : end.message;
        close(id, TrialPhase::failed, {Verb::stop, Reason::exception, 0.0, 0.0}, message, now, out);
    }
}

/// Free ranks go to the waiting trial whose turn comes first, and are kept for it until there are enough.
void Tuner::Impl::place_by_turn(StudyTime now, Output& out) {
    while (!state.draining && !state.logical.needy().empty()) {
        if (suspects_come_first()) {
            if (!place_suspect(now, out)) return;
            continue;
        }
        const UnitKey key = *state.logical.needy().begin();
        const TrialId id = *state.logical.slots()[key.slot].trial;
        const std::uint32_t wanted = trial(id).wanted_ranks;
        if (!in_time(trial(id), now)) return; // the job ends before; who comes behind could not be admitted
        if (wanted > ledger.free()) {
            // Everybody whose turn comes later would wait for this one for ever.
            if (wanted > ledger.alive())
                drain(Reason::no_ranks, study::describe(Reason::no_ranks, 0, 0), now, out);
            else
                ask_to_yield(key, wanted, out);
            return;
        }
        start(id, ledger.plan(wanted), now, out);
    }
}

/// Groups that wait for their turn, the latest first, save their state and give their ranks back. (Not before they
/// wait: what they train until then is never in vain, and a state costs time.) Leaves no logical record.
void Tuner::Impl::ask_to_yield(UnitKey before, std::uint32_t wanted, Output& out) {
    const auto& parked = state.logical.parked();
    for (auto at = parked.rbegin(); at != parked.rend() && ledger.free() + returning < wanted; ++at) {
        if (*at < before) return;
        const TrialId id = *state.logical.slots()[at->slot].trial;
        if (leaving.contains(id)) continue;
        set_leaving(id, true);
        out.commands.emplace_back(
            study::Interrupt{id, trial(id).attempt, state.incarnation, {Verb::pause, Reason::yielded, 0.0, 0.0}});
    }
}

} // namespace ranktune::tuner
