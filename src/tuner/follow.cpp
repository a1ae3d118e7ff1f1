// SPDX-License-Identifier: Apache-2.0
// What follows from a record: commands to the driver, and tasks for the rest of the round. Changes no state.

#include <algorithm>
#include <limits>
#include <ranges>

#include "tuner/causes.hpp"
#include "tuner/outcomes.hpp"
#include "tuner/tuner.hpp"
#include "tuner/words.hpp"

namespace ranktune::tuner {

namespace {

/// The trial that a record is about.
std::optional<TrialId> trial_of(const study::Record& record) {
    return std::visit(
        [](const auto& r) -> std::optional<TrialId> {
            if constexpr (requires { r.trial; }) return r.trial;
            return std::nullopt;
        },
        record);
}

/// The newest first.
std::vector<TrialId> donors_of(const Trial& trial) {
    std::vector<TrialId> donors;
    for (const Takeover& each : depends_on(trial) | std::views::reverse) donors.push_back(each.donor.trial);
    return donors;
}

} // namespace

Before Tuner::look(const study::Record& record) const {
    Before before;
    before.keeper = state_.retention.keeper();
    if (std::holds_alternative<study::Reported>(record)) before.front = state_.front.trials();
    before.draining = state_.draining;
    const auto about = exploits_ ? trial_of(record) : std::nullopt;
    if (about && about->value() < state_.trials.size()) before.donors = donors_of(state_.trials[*about]);
    if (const auto* report = std::get_if<study::Reported>(&record)) {
        const Trial& t = state_.trials[report->trial];
        before.has_group = t.phase == TrialPhase::running && !t.attempt.abandoned;
        before.waits = report->iteration >= t.decision_point;
        before.was_suspect = t.deaths >= deaths_to_suspect;
    } else if (const auto* ended = std::get_if<study::AttemptEnded>(&record)) {
        before.was_winding = winds_down(state_.trials[ended->trial]);
    } else if (const auto* lost = std::get_if<study::RankLost>(&record)) {
        before.holder = state_.placement.worker(lost->rank).trial;
    } else if (const auto* released = std::get_if<study::CheckpointReleased>(&record)) {
        const auto& all = state_.trials[released->trial].checkpoints;
        const auto found = std::ranges::find(all, released->path, &CheckpointRef::path);
        if (found != all.end()) before.shards = static_cast<std::uint32_t>(found->shards.size());
    }
    return before;
}

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

/// What follows from each kind of record; nothing for kinds without a member.
struct Tuner::Following {
    const Tuner& tuner;
    const Before& before;
    Round& round;
    Output& out;
    const State& state;

    void operator()(const study::Reported&) const;
    void operator()(const study::ReportHeld&) const;
    void operator()(const study::CheckpointCommitted&) const;
    void operator()(const study::CheckpointReleased&) const;
    void operator()(const study::TrialStarted&) const;
    void operator()(const study::YieldAsked&) const;
    void operator()(const study::AttemptEnded&) const;
    void operator()(const study::TrialClosed&) const;
    void operator()(const study::DrainBegan&) const;
    void operator()(const study::HostRetired&) const;
    void operator()(const study::TrialReopened&) const;
    void operator()(const study::RankLost&) const;
    void operator()(const study::JobDied&) const;
    void operator()(const study::IncarnationBegan&) const;
    void operator()(const study::ExploitUndone&) const;
    void operator()(const study::TicketOpened&) const;
    void operator()(const study::TicketPrepared&) const;
    void operator()(const study::StudyEnded&) const;
    void operator()(const study::Steered&) const;
    template <class Other>
    void operator()(const Other&) const {}

    template <class Command>
    void send(Command command) const {
        out.commands.emplace_back(std::move(command));
    }
    void interrupt(TrialId id, const Verdict& verdict) const {
        send(study::Interrupt{id, state.trials[id].attempt.id, state.incarnation, verdict});
    }
    /// Checks which of the trial's checkpoints are still needed.
    void retain(TrialId id) const { round.push(Retain{id}); }
};

void Tuner::Following::operator()(const study::Reported& r) const {
    const Trial& t = state.trials[r.trial];
    const Verdict told = tuner.as_told(r.trial, r.verdict);
    if (before.has_group && before.waits) {
        const Iteration next = told.verb == Verb::go_on ? t.decision_point : 0;
        send(study::Decide{r.trial, t.attempt.id, state.incarnation, r.iteration, told, next});
    } else if (before.has_group && r.verdict.verb != Verb::go_on) {
        interrupt(r.trial, told);
    }
    const bool cleared = before.was_suspect && t.deaths < deaths_to_suspect;
    const bool stirs = state.placement.free() > 0 && (r.verdict.reason != Reason::below_rung || cleared);
    if (stirs || tuner.admission_->keeps_the_line()) round.push(Fill{});
    if (r.verdict.reason == Reason::missing_metric && !state.scored)
        round.push(Drain{Reason::missing_metric,
                         words::missing_metric(r.trial, tuner.spec().objective, tuner.metric_names(r))});
    if (r.verdict.verb == Verb::stop) round.push(Close{r.trial, phase_after(r.verdict.reason), r.verdict, {}});
    if (r.verdict.verb == Verb::pause && !t.attempt.live) {
        round.push(Evict{});
        retain(r.trial);
    }
}

void Tuner::Following::operator()(const study::ReportHeld&) const { round.push(Fill{}); }

void Tuner::Following::operator()(const study::CheckpointCommitted& r) const {
    if (tuner.scheduler_->synchronous()) round.push(Fill{}); // a verdict may wait for it
    // Wait if it is about to pause: it may be the trial to evict.
    if (state.trials[r.trial].phase == TrialPhase::running) round.push(Evict{});
    retain(r.trial);
}

void Tuner::Following::operator()(const study::CheckpointReleased& r) const {
    if (!r.stays) send(study::DeleteCheckpoint{r.path, before.shards});
    const Trial& t = state.trials[r.trial];
    const bool may_go_on = t.phase == TrialPhase::paused || t.phase == TrialPhase::waiting;
    if (!r.stays && may_go_on && is_stranded(t))
        round.push(UndoExploit{r.trial, t.generation(), StateLoss::evicted, false});
}

void Tuner::Following::operator()(const study::TrialStarted& r) const { send(tuner.start_command(r.trial)); }

void Tuner::Following::operator()(const study::YieldAsked& r) const {
    interrupt(r.trial, {Verb::pause, Reason::yielded, 0.0, 0.0});
}

void Tuner::Following::operator()(const study::AttemptEnded& r) const {
    const Trial& t = state.trials[r.trial];
    const Saying& saying = saying_of(r.outcome);
    const bool in_any_case = r.outcome == AttemptOutcome::unsaved || r.outcome == AttemptOutcome::stateless;
    // A user paused it, and nothing else would have to save: it begins again when it is resumed.
    const bool alone = r.outcome == AttemptOutcome::stateless && t.on_hold;
    if (in_any_case && !alone)
        round.push(Drain{saying.ends_study, tuner.reason_to_end(r)});
    else if (r.outcome == AttemptOutcome::unreachable && !r.retry && !before.was_winding)
        round.push(Drain{saying.ends_study, tuner.reason_to_end(r)});
    if (r.outcome == AttemptOutcome::unstarted) round.push(JudgeSetUp{r.trial, r.failure.message, r.failure.rank});
    if (saying.against_host)
        round.push(JudgePlace{state.placement.only_host_of(t.attempt.ranks),
                              state.placement.device_of(t.attempt.ranks, r.failure.rank)});
    if (t.phase == TrialPhase::paused) round.push(Evict{});
    retain(r.trial);
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

void Tuner::Following::operator()(const study::TrialClosed& r) const {
    if (r.phase == TrialPhase::failed) {
        if (state.draining && blames_surroundings(state.drain_reason)) tuner.reopen_row(round);
        round.push(CountFailure{r.failure});
    }
    const std::uint32_t repeats = tuner.spec_.searcher.repeats;
    for (std::uint32_t i = first_repeat(r.trial, repeats).value(), k = 0; k < repeats && i + k < state.trials.size();
         ++k)
        retain(TrialId{i + k});
}

void Tuner::Following::operator()(const study::DrainBegan& r) const {
    if (r.reason == Reason::failures_in_a_row) tuner.reopen_row(round);
    if (before.draining) return; // the trials have been told already
    std::optional<TrialId> last;
    for (const auto& worker : state.placement.workers()) {
        if (!worker.alive || !worker.trial || worker.trial == last) continue;
        last = worker.trial;
        const Trial& t = state.trials[*last];
        if (t.phase == TrialPhase::running && !t.attempt.abandoned && t.attempt.ranks.front() == worker.info.rank)
            interrupt(*last, {Verb::pause, Reason::draining, 0.0, 0.0});
    }
}

void Tuner::Following::operator()(const study::HostRetired& r) const {
    if (!tuner.admission_->failures_are_taken_back()) return; // admitted failures stay, whichever host they ran on
    for (auto id = r.trials.rbegin(); id != r.trials.rend(); ++id) round.push(Reopen{*id, false});
}

void Tuner::Following::operator()(const study::TrialReopened& r) const {
    if (!r.from_scratch) return;
    round.push(Release{r.trial, {}, false});
    round.push(UndoExploit{r.trial, state.trials[r.trial].generation(), StateLoss::anew, true});
}

void Tuner::Following::operator()(const study::RankLost&) const {
    if (!before.holder) return;
    const Trial& t = state.trials[*before.holder];
    // A living leader answers with AttemptOver once its members are out. Without a leader the ranks are free at once;
    // each of them joins its next attempt only after it has left this one.
    if (!state.placement.worker(t.attempt.ranks.front()).alive)
        round.push(EndAttempt{*before.holder, t.attempt.id, false});
    if (auto living = state.placement.living(t.attempt.ranks); !living.empty())
        send(study::Abandon{*before.holder, t.attempt.id, state.incarnation, std::move(living)});
}

void Tuner::Following::operator()(const study::JobDied& r) const {
    // To be done after the next incarnation has begun.
    for (const TrialId id : state.blame.suspects())
        if (state.trials[id].deaths_alone >= deaths_to_convict) round.push(Convict{id});
    for (auto entry = r.notes.rbegin(); entry != r.notes.rend(); ++entry)
        if (!entry->retry) round.push(Convict{entry->note.trial});
}

void Tuner::Following::operator()(const study::IncarnationBegan&) const {
    for (const Ticket& ticket : state.tickets.open())
        if (!ticket.answered) send(study::Prepare{ticket.number});
    // Trials that had been told to stop when the previous head died need no ranks to be closed.
    for (auto i = static_cast<std::uint32_t>(state.trials.size()); i-- > 0;) {
        const Trial& t = state.trials[i];
        if (t.verdict.verb == Verb::stop && !is_final(t.phase))
            round.push(Close{TrialId{i}, phase_after(t.verdict.reason), t.verdict, t.failure});
    }
}

void Tuner::Following::operator()(const study::ExploitUndone& r) const {
    round.push(UndoExploit{r.trial, r.generation, r.why, r.why == StateLoss::anew});
}

void Tuner::Following::operator()(const study::TicketOpened& r) const { send(study::Prepare{r.ticket}); }

void Tuner::Following::operator()(const study::TicketPrepared&) const { round.push(Fill{}); }

void Tuner::Following::operator()(const study::StudyEnded& r) const {
    send(study::EndStudy{r.outcome, r.reason, r.message});
}

void Tuner::Following::operator()(const study::Steered& r) const {
    const bool about_trial = r.ask.verb == study::SteerVerb::pause || r.ask.verb == study::SteerVerb::cancel;
    if (!about_trial) return; // the tasks of the round do the rest
    const Trial& t = state.trials[r.ask.trial];
    const bool cancels = r.ask.verb == study::SteerVerb::cancel;
    const Verdict verdict = cancels ? t.verdict : Verdict{Verb::pause, Reason::paused_by_user, 0.0, 0.0};
    if (cancels) round.push(Close{r.ask.trial, phase_after(verdict.reason), verdict, {}});
    if (t.phase == TrialPhase::running && !t.attempt.abandoned)
        interrupt(r.ask.trial, tuner.as_told(r.ask.trial, verdict));
}

void Tuner::follow(const study::Record& record, const Before& before, Round& round, Output& out) const {
    const Following following{*this, before, round, out, state_};
    std::visit(following, record);
    const auto& keeper = state_.retention.keeper();
    if (before.keeper && before.keeper != keeper) following.retain(*before.keeper);
    for (const TrialId id : before.front)
        if (!state_.front.contains(id)) following.retain(id);
    if (!before.donors.empty() && donors_of(state_.trials[*trial_of(record)]) != before.donors)
        for (const TrialId donor : before.donors) following.retain(donor);
    for (const TrialId id : scheduler_->fell_out())
        if (state_.trials[id].phase == TrialPhase::paused) following.retain(id);
    // Pushed last, so done first: it pins the checkpoint of the donor before anything is released.
    if (round.exploit &&
        (std::holds_alternative<study::Reported>(record) || std::holds_alternative<study::TrialPromoted>(record)))
        round.push(TakeOver{std::make_unique<study::Exploited>(*std::exchange(round.exploit, std::nullopt))});
}

/// When the study ends for a cause outside its trials, those that failed in a row do not count as failed.
void Tuner::reopen_row(Round& round) const {
    const auto& row = state_.blame.in_a_row();
    for (auto id = row.rbegin(); id != row.rend(); ++id) round.push(Reopen{*id, false});
}

/// The message when the end of one attempt ends the study, because other trials would end the same way.
std::string Tuner::reason_to_end(const study::AttemptEnded& r) const {
    if (r.outcome == AttemptOutcome::stateless) return named(r.trial) + ": " + r.failure.message;
    if (r.outcome == AttemptOutcome::unreachable)
        return "a checkpoint cannot be read, and is kept: " + describe(r.failure) +
               ". When the file is there again, the same command goes on; one that is gone for good may be given up by "
               "an empty file in its place: the trial then goes on from the checkpoint before";
    return describe(r.failure);
}

std::vector<study::Command> Tuner::pending_commands() const {
    std::vector<study::Command> commands;
    if (state_.ended) {
        commands.emplace_back(study::EndStudy{state_.outcome, state_.end_reason, state_.end_message});
        return commands;
    }
    for (std::uint32_t i = 0; i < state_.trials.size(); ++i) {
        const TrialId id{i};
        const Trial& t = state_.trials[i];
        if (!t.attempt.live) continue;
        if (t.attempt.abandoned) {
            commands.emplace_back(
                study::Abandon{id, t.attempt.id, state_.incarnation, state_.placement.living(t.attempt.ranks)});
            continue;
        }
        if (t.phase == TrialPhase::running && t.attempt.iteration == start_of(t).iteration) {
            commands.emplace_back(start_command(id));
        } else if (!admission_->at_barrier(id)) {
            const Verdict told = as_told(id, t.verdict);
            const Iteration next = told.verb == Verb::go_on ? t.decision_point : 0;
            commands.emplace_back(study::Decide{id, t.attempt.id, state_.incarnation, t.attempt.iteration, told, next});
        }
        const auto interrupt = [&](Reason reason) {
            commands.emplace_back(
                study::Interrupt{id, t.attempt.id, state_.incarnation, {Verb::pause, reason, 0.0, 0.0}});
        };
        if (admission_->is_leaving(id) && !winds_down(t)) interrupt(Reason::yielded);
        if (state_.draining && t.phase == TrialPhase::running) interrupt(Reason::draining);
        if (t.on_hold && t.phase == TrialPhase::running) interrupt(Reason::paused_by_user);
        if (t.verdict.reason == Reason::cancelled)
            commands.emplace_back(study::Interrupt{id, t.attempt.id, state_.incarnation, as_told(id, t.verdict)});
    }
    for (const Ticket& ticket : state_.tickets.open())
        if (!ticket.answered) commands.emplace_back(study::Prepare{ticket.number});
    return commands;
}

} // namespace ranktune::tuner
