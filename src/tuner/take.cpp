// SPDX-License-Identifier: Apache-2.0
// Turns events into the records that say what happened. Pure.

#include <algorithm>

#include "ranktune/base/error.hpp"
#include "study/printed_values.hpp"
#include "tuner/decide.hpp"
#include "tuner/rules/causes.hpp"
#include "tuner/rules/limits.hpp"
#include "tuner/rules/outcomes.hpp"
#include "tuner/rules/words.hpp"

namespace ranktune::tuner {
namespace {

/// By the type of MetricId.
constexpr std::size_t most_metrics = 65'535;

/// An error that repeats at the same iteration with the same message would repeat a third time.
bool may_retry(const Core& core, TrialId id, const std::string& message) {
    const Trial& t = core.state.trials[id];
    if (t.failures >= core.spec.failure.max_failures) return false;
    // Of a task there is an exit code, which does not tell one cause from another; a user has listed those to retry.
    const bool may_pass = study::has_tasks(core.spec) || !core.spec.failure.retry_on.empty();
    return may_pass || !Blame::is_the_same(t, core.admission->received(id), message);
}

study::JobDied death_of_job(const Core& core, const study::JobDeath& death, StudyTime now) {
    study::JobDied record{now, {}};
    for (const auto& note : death.notes) {
        if (!is_current(core, note.trial, note.attempt, core.state.incarnation)) continue;
        const auto same = [&](const study::JobDied::Note& entry) { return entry.note.trial == note.trial; };
        if (std::ranges::any_of(record.notes, same)) continue; // two ranks of one trial
        // (A trial that has its result is not charged.)
        record.notes.push_back(
            {note, told(core, note.trial) == Told::out || may_retry(core, note.trial, note.failure.message)});
    }
    return record;
}

} // namespace

bool is_current(const Core& core, TrialId id, AttemptId attempt, Incarnation incarnation) {
    if (incarnation != core.state.incarnation || id.value() >= core.state.trials.size()) return false;
    const Trial& t = core.state.trials[id];
    return t.attempt.id == attempt && t.attempt.live;
}

Next take(const Core& core, const study::Began& event, Round& round) {
    if (event.death && !round.death_told) {
        round.death_told = true;
        study::JobDied died = death_of_job(core, *event.death, round.now);
        // All notes concern closed attempts: blame nobody.
        if (!died.notes.empty() || event.death->notes.empty()) return died;
    }
    return study::IncarnationBegan{event.incarnation, round.now, event.wall_time, event.workers};
}

/// A metric with a new name gets the next number first.
Next take(const Core& core, const study::ReportArrived& event, Round& round) {
    if (study::side_task_of(event.trial)) return take_side(core, event, round);
    // What an attempt reports while it winds down comes too late.
    round.stale = !is_current(core, event.trial, event.attempt, event.incarnation) ||
                  core.state.trials[event.trial].attempt.abandoned || winds_down(core.state.trials[event.trial]);
    if (round.stale) return {};
    const Standing standing = core.admission->standing(event.trial, event.iteration);
    round.stale = standing == Standing::foreign;
    if (standing == Standing::foreign || standing == Standing::known) return {};
    round.metrics.reserve(event.metrics.size());
    // Goes on where the last new name was: a first report may have tens of thousands.
    for (std::size_t i = round.metrics.size(); i < event.metrics.size(); ++i) {
        const std::string& name = event.metrics[i].name;
        // Trials mostly report the same metrics in the same order: look at that place first.
        const bool in_place = i < core.state.metrics.size() && core.state.metrics[i] == name;
        const auto known = in_place ? core.metric_ids.end() : core.metric_ids.find(name);
        if (!in_place && known == core.metric_ids.end() && core.state.metrics.size() >= most_metrics)
            throw base::UsageError(words::too_many_metrics(event.trial, name, most_metrics));
        if (!in_place && known == core.metric_ids.end())
            return study::MetricDefined{MetricId{static_cast<std::uint16_t>(core.state.metrics.size())}, name};
        const MetricId metric = in_place ? MetricId{static_cast<std::uint16_t>(i)} : known->second;
        round.metrics.push_back({metric, event.metrics[i].value});
    }
    ReportFact fact{event.trial, event.attempt, event.iteration, event.seconds, std::move(round.metrics)};
    if (standing == Standing::next && !waits_for_ticket(core)) return judged(core, std::move(fact), round);
    return study::ReportHeld{fact.trial,     fact.attempt, round.now,
                             fact.iteration, fact.seconds, std::move(fact.metrics)};
}

Next take(const Core& core, const study::CheckpointSaved& event, Round& round) {
    const bool current = is_current(core, event.trial, event.attempt, event.incarnation);
    const auto known = [&](const CheckpointRef& checkpoint) { return checkpoint.path == event.checkpoint.path; };
    round.stale = !current || std::ranges::any_of(core.state.trials[event.trial].checkpoints, known);
    if (round.stale) return {};
    return study::CheckpointCommitted{event.trial, event.attempt, round.now, event.checkpoint};
}

Next take(const Core& core, const study::Prepared& event, Round& round) {
    round.stale = core.state.tickets.unanswered(event.ticket) == nullptr;
    if (round.stale) return {};
    return study::TicketPrepared{event.ticket, round.now, event.configuration, event.why, event.basis};
}

Next take(const Core& core, const study::AttemptOver& event, Round& round) {
    if (study::side_task_of(event.trial)) return take_side(core, event, round);
    round.stale = !is_current(core, event.trial, event.attempt, event.incarnation);
    if (round.stale) return {};
    return end_of(core, event.trial, event.outcome, event.failure, round.now);
}

Next take(const Core& core, const study::RankGone& event, Round& round) {
    round.stale = !core.state.placement.knows(event.rank) || !core.state.placement.worker(event.rank).alive;
    if (round.stale) return {};
    return study::RankLost{event.rank, round.now, event.why, event.guilty};
}

Next take(const Core& core, const study::TimerFired&, Round& round) {
    if (core.state.ended || (core.state.draining && !goes_on_beside(core.state))) return {};
    if (auto limit = limit_reached(core.state, core.spec, round.now); limit && !core.state.draining)
        return study::DrainBegan{round.now, limit->reason, std::move(limit->why)};
    const auto due = core.state.pace.time_to_tell(core.slowest);
    if (due && round.now >= *due) return for_want_of_time(core, round.now);
    return {};
}

Next take(const Core& core, const study::StopRequested& event, Round& round) {
    if (core.state.ended) return {};
    const bool heard = is_person(event.by) && would_be_started_again(core.state) && event.by != core.state.drain_by;
    if (core.state.draining && !heard && !goes_on_beside(core.state)) return {};
    return study::DrainBegan{round.now, event.reason, event.why, event.by};
}

Next take(const Core& core, const study::DeadlineKnown& event, Round& round) {
    // Slurm rounds to whole seconds, and answers are delayed.
    constexpr Duration same = std::chrono::seconds(3);
    const auto& known = core.state.pace.deadline();
    if (known == event.at || (known && event.at && *event.at - *known <= same && *known - *event.at <= same)) return {};
    return study::DeadlineSet{round.now, event.at};
}

/// What the group of its attempt was told.
Told told(const Core& core, TrialId id) {
    const Trial& t = core.state.trials[id];
    const bool pauses = t.verdict.verb == Verb::pause && !is_final(t.phase) && core.admission->charges_paused();
    if (winds_down(t)) return pauses ? Told::pause : Told::out;
    if (core.state.draining) return Told::pause;
    return core.admission->is_leaving(id) || t.on_hold ? Told::yield : Told::go_on;
}

/// The end of an attempt, by the table of outcomes.
study::AttemptEnded end_of(const Core& core, TrialId id, AttemptOutcome outcome, const Failure& failure,
                           StudyTime now) {
    const Trial& t = core.state.trials[id];
    const Told had_been = tuner::told(core, id);
    study::AttemptEnded end{id, t.attempt.id, now, outcome, false, failure};
    // Other trials could save, so this one is at fault.
    if (outcome == AttemptOutcome::stateless && core.state.retention.ever_saved()) end.outcome = AttemptOutcome::failed;
    if (t.attempt.abandoned || outcome == AttemptOutcome::lost) {
        const bool at_fault = t.attempt.at_fault && had_been != Told::out;
        const auto fault = core.admission->disturbance_is_a_loss() ? AttemptOutcome::disturbed : AttemptOutcome::failed;
        end.outcome = at_fault ? fault : AttemptOutcome::lost;
        end.failure = at_fault ? t.failure : t.attempt.abandoned ? Failure{} : failure;
    }
    Then then = ending_of(end.outcome, had_been).then;
    if (end.outcome == AttemptOutcome::disturbed && core.admission->disturbance_is_a_loss() && then == Then::may_fail)
        then = Then::may_be_lost;
    end.outcome = ending_of(end.outcome, had_been).recorded;
    const auto* held = core.admission->held(id);
    switch (then) {
        case Then::nothing:
        case Then::spoils:
        case Then::fails:
            break;
        case Then::is_over:
            if (t.reported || (held != nullptr && !held->empty()) || core.spec.may_be_silent) break;
            end.outcome = AttemptOutcome::failed;
            end.failure = {"the trainable ended without a single report"};
            end.retry = may_retry(core, id, end.failure.message);
            break;
        case Then::pauses:
            end.retry = end.outcome != AttemptOutcome::paused;
            break;
        case Then::waits:
            end.retry = true;
            break;
        case Then::may_fail:
            end.retry = may_retry(core, id, end.failure.message);
            break;
        case Then::may_be_lost:
            end.retry = t.losses < core.spec.failure.max_losses;
            break;
        case Then::falls_back:
            end.retry = !std::holds_alternative<Fresh>(start_of(t).from);
            break;
    }
    // While the study ends for a cause outside its trials, no trial fails for that cause.
    const bool fails = is_failure(end.outcome);
    const bool taken_back = !core.admission->failures_are_taken_back() && had_been != Told::out && t.unheard;
    if (fails && taken_back && core.state.draining && blames_surroundings(core.state.drain_reason)) end.retry = true;
    return end;
}

study::DrainBegan for_want_of_time(const Core& core, StudyTime now) {
    const Pace& pace = core.state.pace;
    double slowest = std::max(core.slowest, pace.iteration());
    Iteration stretch = pace.stretch();
    for (const TrialId id : core.state.trials.waiting()) {
        const Trial& t = core.state.trials[id];
        slowest = std::max(slowest, t.pace);
        stretch = std::max(stretch, stretch_of(core, id));
    }
    return {now, Reason::deadline,
            words::no_time_left({.left = std::max(0.0, pace.left(now)),
                                 .iteration = slowest,
                                 .saving = pace.saving(),
                                 .stretch = stretch,
                                 .can_save = core.spec.checkpoint.supported})};
}

} // namespace ranktune::tuner
