// SPDX-License-Identifier: Apache-2.0
// Commands follow from the state: what the group of an attempt is owed, and which suggestions are to be prepared.

#include <algorithm>
#include <limits>
#include <utility>

#include "tuner/tuner.hpp"

namespace ranktune::tuner {

/// With searcher.repeats only the mean of all repetitions says which configuration is the best, and the best of its
/// trials leads. Until then that can be each one that none that is over beats.
bool Tuner::may_come_to_lead(TrialId id) const {
    const Trial& t = state_.trials[id];
    if (spec_.searcher.repeats == 1 || t.phase == TrialPhase::failed) return false;
    const Repetitions all = repetitions_of(id, state_.trials, spec_);
    const bool trains_on = !is_final(t.phase) && t.verdict.verb != Verb::stop;
    const bool beaten = all.leader && study::better(ranked(*all.leader), ranked(id));
    return !all.complete && (trains_on || !beaten);
}

/// A verdict as its group is told. Only a trial that leads, or may come to lead, saves a last checkpoint, and only
/// where it does not keep a better one; a trial that pauses where it cannot be promoted from saves none: such
/// checkpoints would be deleted at once.
Verdict Tuner::as_told(TrialId id, const Verdict& verdict) const {
    Verdict told = verdict;
    if (verdict.verb == Verb::go_on && state_.draining) told = {Verb::pause, Reason::draining, 0.0, 0.0};
    const Trial& t = state_.trials[id];
    const bool is_worse = spec_.objective.several() || t.last != t.best; // of equal ones, the newest is kept
    const bool is_kept = spec_.checkpoint.keep == 1 && is_worse && keeps_best(t, spec_.objective);
    if (verdict.verb == Verb::stop && (is_kept || !(state_.leads(id) || may_come_to_lead(id))))
        told.verb = Verb::discard;
    if (verdict.verb == Verb::exploit) told.verb = Verb::discard;
    const bool at_a_rung = verdict.verb == Verb::pause && verdict.reason == Reason::rung;
    if (at_a_rung && !state_.is_result(id) && scheduler_->out_of_reach(id)) told.verb = Verb::discard;
    return told;
}

/// The ranks whose memory may hold a donor's newest checkpoint, if all of them live. (They may have dropped it: it also
/// lies on disk.)
std::vector<Rank> Tuner::holders_of(const study::StartFrom& from) const {
    const auto* donor = std::get_if<Donor>(&from);
    const auto found = donor == nullptr ? holders_.end() : holders_.find(donor->trial);
    if (found == holders_.end()) return {};
    const auto& ranks = found->second;
    const auto lives = [&](Rank rank) { return state_.placement.knows(rank) && state_.placement.worker(rank).alive; };
    return std::ranges::all_of(ranks, lives) ? ranks : std::vector<Rank>{};
}

study::StartTrial Tuner::start_command(TrialId id) const {
    const Trial& t = state_.trials[id];
    Start start = start_of(t);
    std::vector<Rank> holders = holders_of(start.from);
    return {.trial = id,
            .attempt = t.attempt.id,
            .incarnation = state_.incarnation,
            .ranks = t.attempt.ranks,
            .configuration = t.configuration,
            .from = std::move(start.from),
            .holders = std::move(holders),
            .generation = t.generation(),
            .iteration = start.iteration,
            .seconds = t.seconds,
            .decision_point = t.decision_point,
            .between_failures = mean_time_between_failures(state_, spec_.checkpoint),
            .to_beat = to_beat(id)};
}

/// See StartTrial. After a death while it saved its best state, nothing is the best: it would die of that at each
/// start.
std::optional<double> Tuner::to_beat(TrialId id) const {
    using Limits = std::numeric_limits<double>; // finite: what is not finite counts as the worst
    const Trial& t = state_.trials[id];
    if (t.dies_saving) return spec_.objective.mode == study::Mode::max ? Limits::max() : Limits::lowest();
    const bool repeats =
        spec_.searcher.repeats > 1; // the trial may lead by its mean, if its repetitions do not beat it
    const bool is_kept = keeps_best(t, spec_.objective);
    auto rival = repeats ? repetitions_of(id, state_.trials, spec_).leader : state_.best;
    if (rival == id && !is_kept) return std::nullopt;
    if (repeats && is_kept && (!rival || study::better(ranked(id), ranked(*rival)))) rival = id;
    return rival ? std::optional(state_.trials[*rival].best) : std::nullopt;
}

/// Why the group of a trial that runs is to give its ranks back; go_on: it is not.
Verdict Tuner::interruption(TrialId id) const {
    const auto pause = [](Reason reason) { return Verdict{Verb::pause, reason, 0.0, 0.0}; };
    if (state_.draining) return pause(Reason::draining);
    if (state_.trials[id].on_hold) return pause(Reason::paused_by_user);
    return admission_->is_leaving(id) ? pause(Reason::yielded) : Verdict{};
}

/// What the group of the trial's attempt is owed, without what was `sent`: to give up, to start, the verdict that it
/// waits for, to pause or to stop.
void Tuner::tell(TrialId id, Sent& sent, std::vector<study::Command>& commands) const {
    const Trial& t = state_.trials[id];
    const Attempt& attempt = t.attempt;
    if (attempt.abandoned) {
        auto living = state_.placement.living(attempt.ranks);
        if (!living.empty() && living.size() != std::exchange(sent.left, living.size()))
            commands.emplace_back(study::Abandon{id, attempt.id, state_.incarnation, std::move(living)});
        return;
    }
    if (attempt.silent && !std::exchange(sent.start, true)) commands.emplace_back(start_command(id));
    if (attempt.decided > sent.decided) {
        const Verdict verdict = as_told(id, t.verdict);
        const Iteration next = verdict.verb == Verb::go_on ? t.decision_point : 0;
        commands.emplace_back(study::Decide{id, attempt.id, state_.incarnation, attempt.decided, verdict, next});
        sent.decided = attempt.decided;
        if (verdict.verb != Verb::go_on) sent.end = verdict.reason;
    }
    const Verdict end = winds_down(t) ? as_told(id, t.verdict) : interruption(id);
    if (end.verb != Verb::go_on && end.reason != std::exchange(sent.end, end.reason))
        commands.emplace_back(study::Interrupt{id, attempt.id, state_.incarnation, end});
}

void Tuner::tell(TrialId id, Output& out) {
    const Attempt& attempt = state_.trials[id].attempt;
    if (!attempt.live) return;
    const std::size_t leader = attempt.ranks.front().value();
    if (leader >= sent_.size()) sent_.resize(leader + 1);
    SentTo& to = sent_[leader];
    if (to.trial != id || to.attempt != attempt.id) to = {id, attempt.id, {}};
    tell(id, to.sent, out.commands);
}

void Tuner::tell_all(const std::function<void(TrialId)>& tell) const {
    for (const auto& worker : state_.placement.workers())
        if (worker.trial && state_.trials[*worker.trial].attempt.ranks.front() == worker.info.rank) tell(*worker.trial);
}

/// Sends what follows from a record.
void Tuner::send(const study::Record& record, Output& out) {
    if (std::holds_alternative<study::DrainBegan>(record)) return tell_all([&](TrialId id) { tell(id, out); });
    if (const auto* lost = std::get_if<study::RankLost>(&record)) {
        if (const auto& holder = state_.placement.worker(lost->rank).lost_from) tell(*holder, out);
    } else if (const auto* steered = std::get_if<study::Steered>(&record)) {
        if (steered->spec.empty()) tell(steered->ask.trial, out);
    } else if (const auto* released = std::get_if<study::CheckpointReleased>(&record)) {
        if (!released->stays) out.commands.emplace_back(study::DeleteCheckpoint{released->path, released->shards});
    } else if (const auto* opened = std::get_if<study::TicketOpened>(&record)) {
        out.commands.emplace_back(study::Prepare{opened->ticket});
    } else if (std::holds_alternative<study::IncarnationBegan>(record) ||
               std::holds_alternative<study::StudyEnded>(record)) {
        for (study::Command& command : pending_commands()) out.commands.push_back(std::move(command));
    } else {
        std::visit(
            [&](const auto& r) {
                if constexpr (requires { r.trial; }) tell(r.trial, out);
            },
            record);
    }
}

std::vector<study::Command> Tuner::pending_commands() const {
    std::vector<study::Command> commands;
    if (state_.ended) {
        commands.emplace_back(study::EndStudy{state_.outcome, state_.end_reason, state_.end_message});
        return commands;
    }
    tell_all([&](TrialId id) {
        Sent nothing;
        tell(id, nothing, commands);
    });
    for (const Ticket& ticket : state_.tickets.open())
        if (!ticket.answered) commands.emplace_back(study::Prepare{ticket.number});
    return commands;
}

} // namespace ranktune::tuner
