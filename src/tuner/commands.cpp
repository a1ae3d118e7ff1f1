// SPDX-License-Identifier: Apache-2.0
// Commands follow from the state: what the group of an attempt is owed, and which suggestions are to be prepared.

#include <algorithm>
#include <limits>
#include <utility>

#include "tuner/apply.hpp"
#include "tuner/decide.hpp"

namespace ranktune::tuner {
namespace {

/// A verdict as its group is told. Unless every trial keeps checkpoints, only one that leads, or may come to lead,
/// saves a last one, and only where it does not keep a better one; a trial that pauses where it cannot be promoted from
/// saves none: such checkpoints would be deleted at once.
Verdict as_told(const Core& core, TrialId id, const Verdict& verdict) {
    Verdict told = verdict;
    if (verdict.verb == Verb::go_on && core.state.draining) told = {Verb::pause, Reason::draining, 0.0, 0.0};
    const Trial& t = core.state.trials[id];
    const bool is_worse = core.spec.objective.several() || t.last != t.best; // of equal ones, the newest is kept
    const bool evaluated = verdict.verb == Verb::stop && core.spec.evaluates_checkpoints();
    const bool keeps_any = core.spec.checkpoint.every_trial || (evaluated && is_evaluated(core, id, verdict.reason));
    const bool is_kept = core.spec.checkpoint.keep == 1 && is_worse && keeps_best(t, core.spec.objective);
    if (verdict.verb == Verb::stop && (is_kept || !(keeps_any || core.state.leads(id) || may_come_to_lead(core, id))))
        told.verb = Verb::discard;
    if (verdict.verb == Verb::exploit) told.verb = Verb::discard;
    const bool at_a_rung = verdict.verb == Verb::pause && verdict.reason == Reason::rung;
    if (at_a_rung && !keeps_any && !core.state.is_result(id) && core.scheduler->out_of_reach(id))
        told.verb = Verb::discard;
    return told;
}

/// The ranks whose memory may hold a donor's newest checkpoint, if all of them live. (They may have dropped it: it also
/// lies on disk.)
std::vector<Rank> holders_of(const Core& core, const study::StartFrom& from) {
    const auto* donor = std::get_if<Donor>(&from);
    const auto found = donor == nullptr ? core.holders.end() : core.holders.find(donor->trial);
    if (found == core.holders.end()) return {};
    const auto& ranks = found->second;
    const auto lives = [&](Rank rank) {
        return core.state.placement.knows(rank) && core.state.placement.worker(rank).alive;
    };
    return std::ranges::all_of(ranks, lives) ? ranks : std::vector<Rank>{};
}

/// See StartTrial. After a death while it saved its best state, nothing is the best: it would die of that at each
/// start.
std::optional<double> to_beat(const Core& core, TrialId id) {
    using Limits = std::numeric_limits<double>; // finite: what is not finite counts as the worst
    const Trial& t = core.state.trials[id];
    if (t.dies_saving) return core.spec.objective.mode == study::Mode::max ? Limits::max() : Limits::lowest();
    if (core.spec.evaluates_checkpoints()) return std::nullopt; // each trial's own best is evaluated
    const bool repeats =
        core.spec.searcher.repeats > 1; // the trial may lead by its mean, if its repetitions do not beat it
    const bool is_kept = keeps_best(t, core.spec.objective);
    auto rival = repeats ? repetitions_of(id, core.state.trials, core.spec).leader : core.state.best;
    if (rival == id && !is_kept) return std::nullopt;
    if (repeats && is_kept && (!rival || study::better(ranked(core, id), ranked(core, *rival)))) rival = id;
    return rival ? std::optional(core.state.trials[*rival].best) : std::nullopt;
}

study::StartTrial start_command(const Core& core, TrialId id) {
    const Trial& t = core.state.trials[id];
    Start start = start_of(t);
    std::vector<Rank> holders = holders_of(core, start.from);
    return {.trial = id,
            .attempt = t.attempt.id,
            .incarnation = core.state.incarnation,
            .ranks = t.attempt.ranks,
            .configuration = t.configuration,
            .from = std::move(start.from),
            .holders = std::move(holders),
            .generation = t.generation(),
            .iteration = start.iteration,
            .seconds = t.seconds,
            .decision_point = t.decision_point,
            .between_failures = mean_time_between_failures(core.state, core.spec.checkpoint),
            .to_beat = to_beat(core, id),
            .roles = t.attempt.roles};
}

/// Why the group of a trial that runs is to give its ranks back; go_on: it is not.
Verdict interruption(const Core& core, TrialId id) {
    const auto pause = [](Reason reason) { return Verdict{Verb::pause, reason, 0.0, 0.0}; };
    if (core.state.draining) return pause(Reason::draining);
    if (core.state.trials[id].on_hold) return pause(Reason::paused_by_user);
    return core.admission->is_leaving(id) ? pause(Reason::yielded) : Verdict{};
}

} // namespace

/// With searcher.repeats only the mean of all repetitions says which configuration is the best, and the best of its
/// trials leads. Until then that can be each one that none that is over beats.
bool may_come_to_lead(const Core& core, TrialId id) {
    const Trial& t = core.state.trials[id];
    if (core.spec.searcher.repeats == 1 || t.phase == TrialPhase::failed) return false;
    const Repetitions all = repetitions_of(id, core.state.trials, core.spec);
    const bool trains_on = !is_final(t.phase) && t.verdict.verb != Verb::stop;
    const bool beaten = all.leader && study::better(ranked(core, *all.leader), ranked(core, id));
    return !all.complete && (trains_on || !beaten);
}

/// What the group of the trial's attempt is owed, without what was `sent`: to give up, to start, the verdict that it
/// waits for, to pause or to stop.
void tell(const Core& core, TrialId id, Sent& sent, std::vector<study::Command>& commands) {
    const Trial& t = core.state.trials[id];
    const Attempt& attempt = t.attempt;
    if (attempt.abandoned) {
        auto living = core.state.placement.living(attempt.ranks);
        if (!living.empty() && living.size() != std::exchange(sent.left, living.size()))
            commands.emplace_back(study::Abandon{id, attempt.id, core.state.incarnation, std::move(living)});
        return;
    }
    if (sent.over) return;
    if (attempt.silent && !std::exchange(sent.start, true)) commands.emplace_back(start_command(core, id));
    if (attempt.decided > sent.decided) {
        const Verdict verdict = as_told(core, id, t.verdict);
        const Iteration next = verdict.verb == Verb::go_on ? t.decision_point : 0;
        commands.emplace_back(study::Decide{id, attempt.id, core.state.incarnation, attempt.decided, verdict, next});
        sent.decided = attempt.decided;
        if (verdict.verb != Verb::go_on) sent.end = verdict.reason;
    }
    const bool ends = winds_down(t) || t.verdict.verb == Verb::stop; // closed by the next record
    const Verdict end = ends ? t.verdict : interruption(core, id);
    if (end.verb != Verb::go_on && end.reason != std::exchange(sent.end, end.reason))
        commands.emplace_back(study::Interrupt{id, attempt.id, core.state.incarnation, as_told(core, id, end)});
}

void tell_all(const Core& core, const std::function<void(TrialId)>& tell) {
    for (const auto& worker : core.state.placement.workers())
        if (worker.trial && core.state.trials[*worker.trial].attempt.ranks.front() == worker.info.rank)
            tell(*worker.trial);
}

std::vector<study::Command> pending_commands(const Core& core) {
    std::vector<study::Command> commands;
    if (core.state.ended) {
        commands.emplace_back(study::EndStudy{core.state.outcome, core.state.end_reason, core.state.end_message});
        return commands;
    }
    tell_all(core, [&](TrialId id) {
        Sent nothing;
        tell(core, id, nothing, commands);
        nothing.end = Reason::none; // a group that had gone on drops the verdict on an earlier report
        tell(core, id, nothing, commands);
    });
    for (const TrialId unit : core.state.side.running()) tell_side(core, unit, commands);
    for (const Ticket& ticket : core.state.tickets.open())
        if (!ticket.answered) commands.emplace_back(study::Prepare{ticket.number});
    return commands;
}

} // namespace ranktune::tuner
