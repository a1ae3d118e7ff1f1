// SPDX-License-Identifier: Apache-2.0
// What else a round has to do because of a record: its tasks. Changes no state.

#include <algorithm>

#include "tuner/decide.hpp"
#include "tuner/rules/causes.hpp"
#include "tuner/rules/limits.hpp"
#include "tuner/rules/outcomes.hpp"
#include "tuner/rules/words.hpp"

namespace ranktune::tuner {
namespace {

/// The study drains once it has reached a limit.
void stop_at_limit(const Core& core, Round& round) {
    if (core.state.draining) return;
    if (auto limit = limit_reached(core.state, core.spec, round.now))
        round.push(Drain{limit->reason, std::move(limit->why)});
}

void follow(const Core& core, const study::Reported& r, Round& round) {
    if (core.state.placement.free() > 0 || core.admission->keeps_the_line()) round.push(Fill{});
    stop_at_limit(core, round); // before anything else is admitted or started
    if (r.verdict.reason == Reason::missing_metric && !core.state.scored)
        round.push(
            Drain{Reason::missing_metric, words::missing_metric(r.trial, core.spec.objective, metric_names(core, r))});
    if (r.verdict.verb == Verb::stop) round.push(Close{r.trial, phase_after(r.verdict.reason), r.verdict, {}});
    if (r.verdict.verb == Verb::pause && !core.state.trials[r.trial].attempt.live) {
        round.push(Evict{});
        round.push(Retain{r.trial});
    }
}

void follow(const Core&, const study::ReportHeld&, Round& round) { round.push(Fill{}); }

void follow(const Core& core, const study::CheckpointCommitted& r, Round& round) {
    if (core.scheduler->synchronous()) round.push(Fill{}); // a verdict may wait for it
    // Wait if it is about to pause: it may be the trial to evict.
    if (core.state.trials[r.trial].phase == TrialPhase::running) round.push(Evict{});
    round.push(Retain{r.trial});
}

void follow(const Core& core, const study::CheckpointReleased& r, Round& round) {
    const Trial& t = core.state.trials[r.trial];
    const bool may_go_on = t.phase == TrialPhase::paused || t.phase == TrialPhase::waiting;
    if (!r.stays && may_go_on && is_stranded(t))
        round.push(UndoExploit{r.trial, t.generation(), StateLoss::evicted, false});
}

/// The message when the end of one attempt ends the study, because other trials would end the same way.
std::string reason_to_end(const study::AttemptEnded& r) {
    if (r.outcome == AttemptOutcome::stateless) return named(r.trial) + ": " + r.failure.message;
    if (r.outcome == AttemptOutcome::unreachable)
        return "a checkpoint cannot be read, and is kept: " + describe(r.failure) +
               ". When the file is there again, the same command goes on; one that is gone for good may be given up by "
               "an empty file in its place: the trial then goes on from the checkpoint before";
    return describe(r.failure);
}

void follow(const Core& core, const study::AttemptEnded& r, Round& round) {
    const Trial& t = core.state.trials[r.trial];
    const Saying& saying = saying_of(r.outcome);
    const bool in_any_case = r.outcome == AttemptOutcome::unsaved || r.outcome == AttemptOutcome::stateless;
    // A user paused it, and nothing else would have to save: it begins again when it is resumed.
    const bool alone = r.outcome == AttemptOutcome::stateless && t.on_hold;
    if (in_any_case && !alone)
        round.push(Drain{saying.ends_study, reason_to_end(r)});
    else if (r.outcome == AttemptOutcome::unreachable && !r.retry && t.phase == TrialPhase::waiting)
        round.push(Drain{saying.ends_study, reason_to_end(r)});
    if (r.outcome == AttemptOutcome::unstarted) round.push(JudgeSetUp{r.trial, r.failure.message, r.failure.rank});
    if (saying.against_host)
        round.push(JudgePlace{core.state.placement.only_host_of(t.attempt.ranks),
                              core.state.placement.device_of(t.attempt.ranks, r.failure.rank)});
    if (!is_final(t.phase)) round.push(Evict{});
    round.push(Retain{r.trial});
    // The trial goes on from the previous checkpoint, or from scratch.
    if (r.outcome == AttemptOutcome::unreadable && r.retry) {
        const StartFrom from = start_of(t).from;
        const auto* own = std::get_if<CheckpointRef>(&from);
        const bool nothing_trained = !t.takeovers.empty() && t.iteration == t.takeovers.back().iteration;
        if (own == nullptr && nothing_trained) round.push(FindDonor{r.trial, t.generation() - 1});
        round.push(UndoExploit{r.trial, t.generation(), StateLoss::unreadable, own == nullptr});
        if (own != nullptr) round.push(Release{r.trial, own->path, true});
    }
}

/// When the study ends for a cause outside its trials, those that failed in a row do not count as failed.
void reopen_row(const Core& core, Round& round) {
    const auto& row = core.state.blame.in_a_row();
    for (auto id = row.rbegin(); id != row.rend(); ++id) round.push(Reopen{*id, false});
}

void follow(const Core& core, const study::TrialClosed& r, Round& round) {
    stop_at_limit(core, round);
    if (r.phase == TrialPhase::failed) {
        if (core.state.draining && blames_surroundings(core.state.drain_reason)) reopen_row(core, round);
        round.push(CountFailure{r.failure});
    }
    const std::uint32_t repeats = core.spec.searcher.repeats;
    for (std::uint32_t i = first_repeat(r.trial, repeats).value(), k = 0;
         k < repeats && i + k < core.state.trials.size(); ++k)
        round.push(Retain{TrialId{i + k}});
}

void follow(const Core& core, const study::DrainBegan& r, Round& round) {
    if (r.reason == Reason::failures_in_a_row) reopen_row(core, round);
}

void follow(const Core& core, const study::HostRetired& r, Round& round) {
    if (!core.admission->failures_are_taken_back()) return; // admitted failures stay, whichever host they ran on
    for (auto id = r.trials.rbegin(); id != r.trials.rend(); ++id) round.push(Reopen{*id, false});
}

void follow(const Core& core, const study::TrialReopened& r, Round& round) {
    if (!r.from_scratch) return;
    round.push(Release{r.trial, {}, false});
    round.push(UndoExploit{r.trial, core.state.trials[r.trial].generation(), StateLoss::anew, true});
}

/// No trial can begin without the data that [before] makes. A failed [after_trial] keeps the trial's checkpoint only
/// while there is room.
void follow(const Core&, const study::SideEnded& r, Round& round) {
    if (r.retry || r.outcome == AttemptOutcome::finished) return;
    if (r.task.kind == study::SideTask::Kind::before)
        round.push(Drain{Reason::before_failed, words::before_failed(r.failure)});
    else if (r.task.kind == study::SideTask::Kind::after_trial)
        round.push(Evict{});
}

void follow(const Core& core, const study::RankLost& r, Round& round) {
    if (const auto& unit = core.state.placement.worker(r.rank).aside)
        round.push(EndSide{*unit, core.state.side.all().at(*unit).attempt, r.guilty, r.why});
    const auto& holder = core.state.placement.worker(r.rank).lost_from;
    if (!holder) return;
    // A living leader answers with AttemptOver once its members are out. Without a leader the ranks are free at once;
    // each of them joins its next attempt only after it has left this one.
    const Attempt& attempt = core.state.trials[*holder].attempt;
    if (!core.state.placement.worker(attempt.ranks.front()).alive) round.push(EndAttempt{*holder, attempt.id, false});
}

void follow(const Core& core, const study::JobDied& r, Round& round) {
    // To be done after the next incarnation has begun.
    for (const TrialId id : core.state.blame.suspects())
        if (core.state.trials[id].deaths_alone >= deaths_to_convict) round.push(Convict{id});
    for (auto entry = r.notes.rbegin(); entry != r.notes.rend(); ++entry)
        if (!entry->retry) round.push(Convict{entry->note.trial});
}

void follow(const Core& core, const study::IncarnationBegan&, Round& round) {
    // Trials that had been told to stop when the previous head died need no ranks to be closed. What was kept for ranks
    // that were about to save is looked at again.
    stop_at_limit(core, round); // the head before may have died on the way to the end
    round.push(Evict{});
    for (auto i = static_cast<std::uint32_t>(core.state.trials.size()); i-- > 0;) {
        const Trial& t = core.state.trials[i];
        if (t.verdict.verb == Verb::stop && !is_final(t.phase))
            round.push(Close{TrialId{i}, phase_after(t.verdict.reason), t.verdict, t.failure});
        else if (!t.checkpoints.empty() && t.phase != TrialPhase::waiting)
            round.push(Retain{TrialId{i}});
    }
}

void follow(const Core&, const study::ExploitUndone& r, Round& round) {
    round.push(UndoExploit{r.trial, r.generation, r.why, r.why == StateLoss::anew});
}

void follow(const Core&, const study::TicketPrepared&, Round& round) { round.push(Fill{}); }

void follow(const Core& core, const study::Steered& r, Round& round) {
    if (r.ask.verb == study::SteerVerb::set) stop_at_limit(core, round); // it may be a lower one
    if (r.ask.verb != study::SteerVerb::cancel) return;                  // the tasks of the round do the rest
    const Verdict& verdict = core.state.trials[r.ask.trial].verdict;
    round.push(Close{r.ask.trial, phase_after(verdict.reason), verdict, {}});
}

} // namespace

void add_tasks(const Core& core, const study::Record& record, Round& round) {
    std::visit(
        [&](const auto& r) {
            if constexpr (requires { follow(core, r, round); }) follow(core, r, round);
        },
        record);
    for (const TrialId id : core.state.retention.doubtful()) round.push(Retain{id});
    for (const TrialId id : core.scheduler->fell_out())
        if (core.state.trials[id].phase == TrialPhase::paused) round.push(Retain{id});
    // Pushed last, so done first: it pins the checkpoint of the donor before anything is released.
    if (round.exploit &&
        (std::holds_alternative<study::Reported>(record) || std::holds_alternative<study::TrialPromoted>(record)))
        round.push(TakeOver{std::make_unique<study::Exploited>(*std::exchange(round.exploit, std::nullopt))});
}

} // namespace ranktune::tuner
