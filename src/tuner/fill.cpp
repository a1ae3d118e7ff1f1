// SPDX-License-Identifier: Apache-2.0
// Who gets free ranks, and when the study is over.

#include <algorithm>

#include "tuner/core.hpp"
#include "tuner/verdict.hpp"

namespace ranktune::tuner {
namespace {

/// Only Reason::study_time has a number to tell.
double budget_seconds(const study::StudySpec& spec) {
    return spec.time_budget ? base::to_seconds(*spec.time_budget) : 0.0;
}

} // namespace

void Tuner::Impl::fill(StudyTime now, Output& out) {
    if (spec.deterministic) return settle(now, out);
    if (state.draining || state.ended) return;
    while (ledger.free() > 0 && room_for_one_more()) {
        if (suspects_come_first()) {
            if (!place_suspect(now, out)) break;
            continue;
        }
        if (!place_waiting(now, out) && !promote_or_create(now, out)) break;
    }
}

bool Tuner::Impl::is_training(TrialId id) const {
    const TrialPhase phase = state.trials[id.value()].phase;
    return (phase == TrialPhase::running || phase == TrialPhase::ending) && !is_parked(id);
}

/// And could have them.
bool Tuner::Impl::waits_for_ranks(TrialId id) const {
    const TrialState& t = state.trials[id.value()];
    const bool waits = spec.deterministic ? needs_ranks(id) : t.phase == TrialPhase::waiting;
    return waits && t.wanted_ranks <= ledger.alive();
}

/// Whether a suspect waits or trains. Then nothing else is started: a death has to say whose it was. Paused ones, one
/// that can have no ranks, and one whose turn has not come keep nobody waiting.
bool Tuner::Impl::suspects_come_first() const {
    return std::any_of(suspects.begin(), suspects.end(),
                       [this](TrialId id) { return is_training(id) || waits_for_ranks(id); });
}

/// Suspects are tried one at a time, in trial order. What runs beside one has got past the place where it ran at a
/// death.
bool Tuner::Impl::place_suspect(StudyTime now, Output& out) {
    if (std::any_of(suspects.begin(), suspects.end(), [this](TrialId id) { return is_training(id); })) return false;
    for (const TrialId id : suspects) {
        const TrialState& t = state.trials[id.value()];
        if (!waits_for_ranks(id)) continue;
        if (!in_time(t, now)) return false;
        if (t.wanted_ranks > ledger.free()) {
            // Whoever waits for its turn may wait for this one's.
            if (spec.deterministic) ask_to_yield(UnitKey{}, t.wanted_ranks, out);
            return false;
        }
        start(id, ledger.plan(t.wanted_ranks), now, out);
        return true;
    }
    return false;
}

bool Tuner::Impl::room_for_one_more() const {
    return spec.max_concurrent == 0 ||
           state.in(TrialPhase::running) + state.in(TrialPhase::ending) < spec.max_concurrent;
}

/// Starts the first waiting trial that fits. Trial order, except that a later one may go first while the earlier does
/// not fit; after being overtaken `max_overtaken` times a trial is waited for.
bool Tuner::Impl::place_waiting(StudyTime now, Output& out) {
    for (const TrialId id : waiting) {
        const TrialState& t = state.trials[id.value()];
        if (!in_time(t, now)) continue;
        if (t.wanted_ranks <= ledger.free()) {
            start(id, ledger.plan(t.wanted_ranks), now, out);
            return true;
        }
        const bool possible = t.wanted_ranks <= ledger.alive();
        if (possible && t.overtaken >= max_overtaken) return false;
    }
    return false;
}

bool Tuner::Impl::can_create() const {
    const auto created = static_cast<std::uint32_t>(state.trials.size());
    return created < spec.num_trials && !searcher->exhausted(TrialId{created});
}

bool Tuner::Impl::promote_or_create(StudyTime now, Output& out) {
    if (!in_time_for_another(now)) return false;
    // With a trial that reserves ranks, or too many that do not fit, what is free is not for others.
    if (waiting.size() >= max_unplaced) return false;
    for (const TrialId id : waiting) {
        const TrialState& t = state.trials[id.value()];
        if (t.overtaken >= max_overtaken && t.wanted_ranks <= ledger.alive() && in_time(t, now)) return false;
    }
    const bool active =
        state.in(TrialPhase::running) + state.in(TrialPhase::ending) + state.in(TrialPhase::waiting) > 0;
    return next_work(active, now, out);
}

/// Promotes a paused trial or makes a new one.
bool Tuner::Impl::next_work(bool active, StudyTime now, Output& out) {
    const bool may_create = can_create();
    if (const auto promotion = scheduler->next({may_create, active})) {
        commit(study::TrialPromoted{promotion->trial, now, promotion->from, promotion->target, promotion->reason}, out);
        return true;
    }
    if (!may_create) return false;
    const TrialId id{static_cast<std::uint32_t>(state.trials.size())};
    auto configuration = searcher->suggest(id);
    if (!configuration) return false;
    const std::uint32_t ranks = spec.ranks_for(*configuration);
    commit(study::TrialCreated{id, now, ranks, scheduler->bracket(id), std::move(*configuration)}, out);
    return true;
}

void Tuner::Impl::start(TrialId id, std::vector<Rank> ranks, StudyTime now, Output& out) {
    const TrialState& t = trial(id);
    StartFrom from = Fresh{};
    if (!t.checkpoints.empty()) from = t.checkpoints.back();
    commit(study::TrialStarted{id, t.attempt.next(), now, std::move(ranks), std::move(from)}, out);
    out.commands.emplace_back(start_command(id));
}

study::StartTrial Tuner::Impl::start_command(TrialId id) const {
    const TrialState& t = state.trials[id.value()];
    StartFrom from = Fresh{};
    if (!t.checkpoints.empty()) from = t.checkpoints.back();
    return {id,        t.attempt,        state.incarnation,
            t.ranks,   t.configuration,  std::move(from),
            t.seconds, t.decision_point, mean_time_between_failures(state, spec.checkpoint)};
}

bool Tuner::Impl::someone_holds_ranks() const {
    // Winding: paused or closed already. (The ledger knows nothing of ranks on hosts out of service.)
    return state.in(TrialPhase::running) + state.in(TrialPhase::ending) > 0 || !leaving.empty();
}

void Tuner::Impl::end_if_over(StudyTime now, Output& out) {
    if (state.ended || someone_holds_ranks()) return;
    if (!state.draining && waits_for_time(now)) end_for_want_of_time(now, out);
    const StudyEnded end = verdict_on_study(now);
    const bool for_good = ends_for_good(end.outcome, end.reason);
    if (for_good) close_what_is_left(now, out);
    // Closing may have changed the counts that the exit code is made of.
    const StudyEnded final_end = for_good ? verdict_on_study(now) : end;
    commit(final_end, out);
    out.commands.emplace_back(study::EndStudy{final_end.outcome, final_end.reason, final_end.message});
}

/// Paused and waiting trials will never run again: they are stopped, and only the best trial and the finished ones keep
/// a checkpoint.
void Tuner::Impl::close_what_is_left(StudyTime now, Output& out) {
    const Reason reason = state.draining ? state.drain_reason : Reason::not_promoted;
    const std::size_t open = state.in(TrialPhase::waiting) + state.in(TrialPhase::paused);
    out.records.reserve(out.records.size() + 2 * open); // a trial is closed and mostly gives up one checkpoint
    out.commands.reserve(out.commands.size() + open);
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const TrialId id{i};
        const TrialState& t = state.trials[i];
        if (!is_final(t.phase))
            close(id, TrialPhase::stopped, {Verb::stop, reason, budget_seconds(spec), 0.0}, {}, now, out);
        retain(id, out);
    }
}

StudyEnded Tuner::Impl::verdict_on_study(StudyTime now) const {
    const auto text = [&](Reason reason, double a) { return study::describe(reason, a, 0.0); };
    if (state.draining) {
        switch (state.drain_reason) {
            case Reason::early_failures:
                return {now, StudyOutcome::no_success, Reason::early_failures, state.drain_message};
            case Reason::missing_metric:
            case Reason::unread_parameter:
            case Reason::stateless:
                return {now, StudyOutcome::usage, state.drain_reason, state.drain_message};
            case Reason::study_time:
                break;
            default:
                return {now, StudyOutcome::resumable, state.drain_reason, state.drain_message};
        }
    } else if (!waiting.empty() || ledger.alive() == 0) {
        // fill() could not place them although nothing runs: too few ranks are left.
        return {now, StudyOutcome::resumable, Reason::no_ranks, text(Reason::no_ranks, 0.0)};
    }
    const bool any_success = std::any_of(state.trials.begin(), state.trials.end(), [](const TrialState& t) {
        return t.reported && t.phase != TrialPhase::failed;
    });
    if (!any_success)
        return {now, StudyOutcome::no_success, Reason::no_trial_succeeded, text(Reason::no_trial_succeeded, 0.0)};
    if (!state.best) return {now, StudyOutcome::no_success, Reason::never_finite, never_finite_sentence(state, spec)};
    const Reason reason = state.draining ? Reason::study_time : Reason::study_complete;
    if (too_many_failed(state, spec.failure))
        return {
            now, StudyOutcome::too_many_failures, reason,
            (state.draining ? text(reason, budget_seconds(spec)) + "; " : "") + failures_sentence(state, spec.failure)};
    return {now, StudyOutcome::ok, reason, text(reason, budget_seconds(spec))};
}

} // namespace ranktune::tuner
