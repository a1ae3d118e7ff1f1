// SPDX-License-Identifier: Apache-2.0
// Turns events into the records that say what happened. Pure.

#include <algorithm>

#include "ranktune/base/error.hpp"
#include "tuner/causes.hpp"
#include "tuner/outcomes.hpp"
#include "tuner/tuner.hpp"
#include "tuner/words.hpp"

namespace ranktune::tuner {

bool Tuner::is_current(TrialId id, AttemptId attempt, Incarnation incarnation) const {
    if (incarnation != state_.incarnation || id.value() >= state_.trials.size()) return false;
    const Trial& t = state_.trials[id];
    return t.attempt.id == attempt && t.attempt.live;
}

Tuner::Next Tuner::take(const study::Began& event, Round& round) const {
    if (event.death && !round.death_told) {
        round.death_told = true;
        study::JobDied died = death_of_job(*event.death, round.now);
        // All notes concern closed attempts: blame nobody.
        if (!died.notes.empty() || event.death->notes.empty()) return died;
    }
    return study::IncarnationBegan{event.incarnation, round.now, event.wall_time, event.workers};
}

study::JobDied Tuner::death_of_job(const study::JobDeath& death, StudyTime now) const {
    study::JobDied record{now, {}};
    for (const auto& note : death.notes) {
        if (!is_current(note.trial, note.attempt, state_.incarnation)) continue;
        const auto same = [&](const study::JobDied::Note& entry) { return entry.note.trial == note.trial; };
        if (std::ranges::any_of(record.notes, same)) continue; // two ranks of one trial
        // (An attempt that winds down is no longer that of the trial.)
        record.notes.push_back(
            {note, winds_down(state_.trials[note.trial]) || may_retry(note.trial, note.failure.message)});
    }
    return record;
}

/// By the type of MetricId.
constexpr std::size_t most_metrics = 65'535;

/// A metric with a new name gets the next number first.
Tuner::Next Tuner::take(const study::ReportArrived& event, Round& round) const {
    // What an attempt reports while it winds down comes too late: it is told again what was decided.
    round.stale = !is_current(event.trial, event.attempt, event.incarnation) ||
                  state_.trials[event.trial].attempt.abandoned || winds_down(state_.trials[event.trial]);
    if (round.stale) return {};
    const Standing standing = admission_->standing(event.trial, event.iteration);
    round.stale = standing == Standing::foreign;
    if (standing == Standing::foreign || standing == Standing::known) return {};
    round.metrics.reserve(event.metrics.size());
    // Goes on where the last new name was: a first report may have tens of thousands.
    for (std::size_t i = round.metrics.size(); i < event.metrics.size(); ++i) {
        const std::string& name = event.metrics[i].name;
        // Trials mostly report the same metrics in the same order: look at that place first.
        const bool in_place = i < state_.metrics.size() && state_.metrics[i] == name;
        const auto known = in_place ? metric_ids_.end() : metric_ids_.find(name);
        if (!in_place && known == metric_ids_.end() && state_.metrics.size() >= most_metrics)
            throw base::UsageError(words::too_many_metrics(event.trial, name, most_metrics));
        if (!in_place && known == metric_ids_.end())
            return study::MetricDefined{MetricId{static_cast<std::uint16_t>(state_.metrics.size())}, name};
        const MetricId metric = in_place ? MetricId{static_cast<std::uint16_t>(i)} : known->second;
        round.metrics.push_back({metric, event.metrics[i].value});
    }
    ReportFact fact{event.trial, event.attempt, event.iteration, event.seconds, std::move(round.metrics)};
    if (standing == Standing::next && !waits_for_ticket()) return judged(std::move(fact), round);
    return study::ReportHeld{fact.trial,     fact.attempt, round.now,
                             fact.iteration, fact.seconds, std::move(fact.metrics)};
}

Tuner::Next Tuner::take(const study::CheckpointSaved& event, Round& round) const {
    const bool current = is_current(event.trial, event.attempt, event.incarnation);
    const auto known = [&](const CheckpointRef& checkpoint) { return checkpoint.path == event.checkpoint.path; };
    round.stale = !current || std::ranges::any_of(state_.trials[event.trial].checkpoints, known);
    if (round.stale) return {};
    return study::CheckpointCommitted{event.trial, event.attempt, round.now, event.checkpoint};
}

Tuner::Next Tuner::take(const study::Prepared& event, Round& round) const {
    round.stale = state_.tickets.unanswered(event.ticket) == nullptr;
    if (round.stale) return {};
    return study::TicketPrepared{event.ticket, round.now, event.configuration, event.why, event.basis};
}

Tuner::Next Tuner::take(const study::AttemptOver& event, Round& round) const {
    round.stale = !is_current(event.trial, event.attempt, event.incarnation);
    if (round.stale) return {};
    return end_of(event.trial, event.outcome, event.failure, round.now);
}

Tuner::Next Tuner::take(const study::RankGone& event, Round& round) const {
    round.stale = !state_.placement.knows(event.rank) || !state_.placement.worker(event.rank).alive;
    if (round.stale) return {};
    return study::RankLost{event.rank, round.now, event.why, event.guilty};
}

Tuner::Next Tuner::take(const study::TimerFired&, Round& round) const {
    if (state_.draining || state_.ended) return {};
    if (spec_.time_budget && round.now >= StudyTime{*spec_.time_budget})
        return study::DrainBegan{round.now, Reason::study_time, words::time_budget_used_up()};
    const auto due = state_.pace.time_to_tell(slowest_);
    if (due && round.now >= *due) return for_want_of_time(round.now);
    return {};
}

Tuner::Next Tuner::take(const study::StopRequested& event, Round& round) const {
    if (state_.ended) return {};
    const bool heard = is_person(event.by) && would_be_started_again(state_) && event.by != state_.drain_by;
    if (state_.draining && !heard) return {};
    return study::DrainBegan{round.now, event.reason, event.why, event.by};
}

Tuner::Next Tuner::take(const study::DeadlineKnown& event, Round& round) const {
    // Slurm rounds to whole seconds, and answers are delayed.
    constexpr Duration same = std::chrono::seconds(3);
    const auto& known = state_.pace.deadline();
    if (known == event.at || (known && event.at && *event.at - *known <= same && *known - *event.at <= same)) return {};
    return study::DeadlineSet{round.now, event.at};
}

/// An error that repeats at the same iteration with the same message would repeat a third time.
bool Tuner::may_retry(TrialId id, const std::string& message) const {
    const Trial& t = state_.trials[id];
    return t.failures < spec_.failure.max_failures && !Blame::is_the_same(t, admission_->received(id), message);
}

/// What the group of its attempt was told.
Told Tuner::told(TrialId id) const {
    const Trial& t = state_.trials[id];
    const bool pauses = t.verdict.verb == Verb::pause && !is_final(t.phase) && admission_->charges_paused();
    if (winds_down(t)) return pauses ? Told::pause : Told::out;
    return admission_->is_leaving(id) || t.on_hold || state_.draining ? Told::yield : Told::go_on;
}

/// The end of an attempt, by the table of outcomes.
study::AttemptEnded Tuner::end_of(TrialId id, AttemptOutcome outcome, const Failure& failure, StudyTime now) const {
    const Trial& t = state_.trials[id];
    const Told told = this->told(id);
    study::AttemptEnded end{id, t.attempt.id, now, outcome, false, failure};
    // Other trials could save, so this one is at fault.
    if (outcome == AttemptOutcome::stateless && state_.retention.ever_saved()) end.outcome = AttemptOutcome::failed;
    if (t.attempt.abandoned || outcome == AttemptOutcome::lost) {
        const bool at_fault = t.attempt.at_fault;
        const auto fault = admission_->disturbance_is_a_loss() ? AttemptOutcome::disturbed : AttemptOutcome::failed;
        end.outcome = at_fault ? fault : AttemptOutcome::lost;
        end.failure = at_fault ? t.failure : t.attempt.abandoned ? Failure{} : failure;
    }
    Then then = ending_of(end.outcome, told).then;
    if (end.outcome == AttemptOutcome::disturbed && admission_->disturbance_is_a_loss() && then == Then::may_fail)
        then = Then::may_be_lost;
    end.outcome = ending_of(end.outcome, told).recorded;
    const auto* held = admission_->held(id);
    switch (then) {
        case Then::nothing:
        case Then::fails:
            break;
        case Then::is_over:
            if (t.reported || (held != nullptr && !held->empty())) break;
            end.outcome = AttemptOutcome::failed;
            end.failure = {words::no_report()};
            end.retry = may_retry(id, end.failure.message);
            break;
        case Then::pauses:
            end.retry = end.outcome != AttemptOutcome::paused;
            break;
        case Then::waits:
            end.retry = true;
            break;
        case Then::may_fail:
            end.retry = may_retry(id, end.failure.message);
            break;
        case Then::may_be_lost:
            end.retry = t.losses < spec_.failure.max_losses;
            break;
        case Then::falls_back:
            end.retry = !std::holds_alternative<Fresh>(start_of(t).from);
            break;
    }
    // While the study ends for a cause outside its trials, no trial fails for that cause.
    const bool fails = is_failure(end.outcome);
    const bool taken_back = !admission_->failures_are_taken_back() && told != Told::out && t.unheard;
    if (fails && taken_back && state_.draining && blames_surroundings(state_.drain_reason)) end.retry = true;
    return end;
}

study::DrainBegan Tuner::for_want_of_time(StudyTime now) const {
    const Pace& pace = state_.pace;
    double slowest = std::max(slowest_, pace.iteration());
    Iteration stretch = pace.stretch();
    for (const TrialId id : state_.trials.waiting()) {
        const Trial& t = state_.trials[id];
        slowest = std::max(slowest, t.pace);
        stretch = std::max(stretch, stretch_of(id));
    }
    return {now, Reason::deadline,
            words::no_time_left({.left = std::max(0.0, pace.left(now)),
                                 .iteration = slowest,
                                 .saving = pace.saving(),
                                 .stretch = stretch,
                                 .can_save = spec_.checkpoint.supported})};
}

} // namespace ranktune::tuner
