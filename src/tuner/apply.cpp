// SPDX-License-Identifier: Apache-2.0
// The only mutators of the state: live after every decision, and in replay.

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "ranktune/study/change.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/parse.hpp"
#include "tuner/causes.hpp"
#include "tuner/outcomes.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::tuner {

void Tuner::apply(const study::Record& record) {
    // A snapshot changes nothing: it is the state that the records before it made.
    if (std::holds_alternative<study::Snapshot>(record)) return;
    state_.retention.begin();
    std::visit(
        [this](const auto& r) {
            constexpr bool begins = std::is_same_v<decltype(r), const study::IncarnationBegan&>;
            if constexpr (requires { r.at; } && !begins) state_.now = std::max(state_.now, r.at);
            apply_one(r);
        },
        record);
    ++state_.records;
    if (learns_) observe(record);
    scheduler_->apply(record);
    searcher_->apply(record);
    // The scheduler names the next decision point after it has seen the record.
    std::visit(
        [this](const auto& r) {
            if constexpr (requires { r.verdict; }) {
                const bool waits = r.iteration >= state_.trials[r.trial].decision_point;
                const bool trains_on = r.verdict.verb == Verb::go_on || r.verdict.verb == Verb::exploit;
                if (trains_on && waits) set_decision_point(r.trial, r.iteration);
            } else if constexpr (std::is_same_v<decltype(r), const study::TrialStarted&>) {
                set_decision_point(r.trial, admission_->admitted(r.trial));
            } else if constexpr (std::is_same_v<decltype(r), const study::TrialCreated&> ||
                                 std::is_same_v<decltype(r), const study::TrialPromoted&> ||
                                 std::is_same_v<decltype(r), const study::TrialReopened&>) {
                set_decision_point(r.trial, state_.trials[r.trial].iteration);
            }
        },
        record);
    admission_->apply(record);
}

void Tuner::set_phase(TrialId id, TrialPhase phase) {
    state_.trials.set_phase(id, phase);
    state_.retention.list(id, state_.trials[id], spec_);
}

void Tuner::set_decision_point(TrialId id, Iteration from) {
    Trial& t = trial(id);
    t.decision_point = next_decision_point(id, from);
    t.target = scheduler_->next_decision_point(id, from);
}

void Tuner::choose_workers(Trial& t) const {
    t.wanted_ranks = spec_.ranks_for(t.configuration);
    t.workers = spec_.workers_for(t.configuration);
}

/// The ranks of its attempt are back. What the trial was judged stands: it trains what was not saved again when it goes
/// on. One that ran waits for ranks, or for the others at its barrier.
void Tuner::end_attempt(TrialId id) {
    state_.trials.end_attempt(id);
    const TrialPhase phase = trial(id).phase;
    if (phase != TrialPhase::running) return set_phase(id, phase);
    set_phase(id, admission_->at_barrier(id) ? TrialPhase::paused : TrialPhase::waiting);
}

void Tuner::apply_one(const study::StudyCreated& r) {
    if (!state_.uuid.empty()) impossible("the study is created twice");
    state_.uuid = r.uuid;
    state_.version = r.version;
    state_.simulation = r.simulation;
    if (!spec_.checkpoint.supported) state_.pace.set_stretch(trained_up_to(nullptr));
}

/// The results are for the searcher alone; `observe` writes them into its table.
void Tuner::apply_one(const study::WarmStarted& r) {
    if (state_.trials.size() > 0 || state_.incarnation > Incarnation{})
        impossible("earlier results come after the beginning");
    if (!r.trials.empty() && !learns_) impossible("earlier results come to a searcher that does not learn");
}

void Tuner::apply_one(const study::IncarnationBegan& r) {
    if (r.incarnation <= state_.incarnation) impossible("incarnations do not grow");
    state_.incarnation = r.incarnation;
    if (state_.trials.live_attempts() > 0) ++state_.interruptions;
    const StudyTime before = std::exchange(state_.now, r.at);
    state_.began = r.at;
    state_.wall_time = r.wall_time;
    state_.draining = state_.ended = false;
    state_.drain_reason = state_.end_reason = Reason::none;
    state_.drain_message.clear();
    state_.end_message.clear();
    state_.placement.begin(r.workers, spec_.output.spares);
    state_.tickets.begin();
    state_.blame.begin(state_.placement.hosts().size(), state_.placement.devices().size());
    for (std::uint32_t i = 0; i < state_.trials.size(); ++i) {
        const TrialId id{i};
        Trial& t = trial(id);
        if (!t.attempt.live) continue;
        state_.pace.learn_from_loss(t, before, state_.reports == 0);
        end_attempt(id);
    }
    slowest_ = 0.0;
    holders_.clear(); // new processes
}

void Tuner::apply_one(const study::MetricDefined& r) {
    if (r.id.value() != state_.metrics.size()) impossible("metric numbers are not 0, 1, 2, ...");
    state_.metrics.push_back(r.name);
    metric_ids_.emplace(r.name, r.id);
    objective_.apply(r);
}

void Tuner::apply_one(const study::TrialCreated& r) {
    if (r.trial.value() != state_.trials.size()) impossible("trial numbers are not 0, 1, 2, ...");
    Trial t;
    t.created = r.at;
    t.wanted_ranks = r.ranks;
    t.bracket = r.bracket;
    t.last = t.best = not_a_number;
    t.origin = r.origin;
    t.configuration = r.configuration;
    t.workers = spec_.workers_for(t.configuration);
    state_.trials.add(std::move(t));
    if (r.origin.kind == Origin::Kind::searcher || r.origin.kind == Origin::Kind::stopgap) ++state_.suggested;
    if (r.origin.kind == Origin::Kind::user) state_.requests.point_created();
    if (r.origin.kind == Origin::Kind::ticket) state_.tickets.take(r.origin.index);
    // In a deterministic study the trial that takes a stopgap uses up the ticket that failed.
    if (r.origin.kind == Origin::Kind::stopgap && admission_->waits_for_tickets()) state_.tickets.drop_oldest();
}

void Tuner::apply_one(const study::TrialStarted& r) {
    Trial& t = trial(r.trial);
    if (t.phase != TrialPhase::waiting) impossible(named(r.trial) + " is started while it does not wait");
    if (r.attempt != t.attempt.id.next()) impossible("attempts are not 1, 2, 3, ...");
    if (r.ranks.empty()) impossible("a trial is started on no rank");
    if (t.attempt.id == AttemptId{}) t.started = r.at;
    const std::uint32_t takeover = takeover_of(t, t.generation());
    if (takeover != takeover_in(t, r.attempt)) t.changes.push_back({r.attempt, takeover});
    t.overtaken = 0;
    const Iteration from = start_of(t).iteration;
    if (admission_->attempts_count()) {
        Blame::begin_silence(t);
        if (from < t.iteration) t.window.clear(); // these results will be reported again
    }
    state_.placement.take(r.trial, r.ranks);
    state_.trials.begin_attempt(r.trial, r.attempt, r.ranks, r.at, from);
    state_.retention.list(r.trial, t, spec_);
    note_pace(0.0, t.pace);
    if (admission_->keeps_the_line()) return;
    const auto& waiting = state_.trials.waiting();
    for (auto earlier = waiting.begin(); earlier != waiting.end() && *earlier < r.trial; ++earlier)
        if (Trial& before = trial(*earlier); before.workers == t.workers) ++before.overtaken;
}

/// A report has arrived: the trial makes progress, whether the report takes effect now or later.
void Tuner::receive(TrialId id, StudyTime at, Iteration iteration, double seconds, double before) {
    Trial& t = trial(id);
    const double pace = t.pace;
    state_.pace.learn_from_report(t, at, iteration, seconds, before, state_.reports <= 1);
    if (iteration > t.attempt.iteration) state_.iterations += iteration - t.attempt.iteration;
    t.attempt.iteration = iteration;
    state_.blame.got_on(id, t, iteration, state_.placement);
    note_pace(pace, t.pace);
}

/// A trial that trains is known to need `after` seconds for an iteration, in place of `before`; 0: it does not train.
/// Only a deadline asks for the slowest one.
void Tuner::note_pace(double before, double after) {
    if (!state_.pace.deadline()) return;
    if (after > slowest_)
        slowest_ = after;
    else if (before >= slowest_ && after < before)
        slowest_ = slowest_running();
}

/// The objectives in a report that takes effect. What violates a constraint is never a best value.
void Tuner::take_value(TrialId id, Iteration iteration, const schedulers::ObjectiveReader::Reading& reading) {
    Trial& t = trial(id);
    state_.scored = true;
    t.last = reading.value;
    const study::Score now = objective_.score(reading);
    if (now.trouble() > 0.0) return;
    const study::Score before = standing_of(t, spec_.objective);
    const bool several = spec_.objective.several();
    const bool better = several ? !beats(before, now) : std::isnan(t.best) || now.rank() > before.rank();
    if (!better) return;
    t.best = reading.value;
    t.best_iteration = iteration;
    t.best_takeover = t.newest_takeover;
    if (spec_.searcher.repeats > 1) return; // take_mean
    if (several) {
        t.others.assign(reading.others.begin(), reading.others.begin() + std::ssize(spec_.objective.others));
        const std::vector<TrialId> front = state_.front.trials();
        state_.front.moved(id, before, state_.trials, spec_.objective);
        for (const TrialId each : front)
            if (!state_.front.contains(each)) state_.retention.doubt(each);
    }
    if (state_.best == id && now.rank() < before.rank()) {
        state_.best = best_of_all();
    } else if (!state_.best || study::better({now.rank(), id}, ranked(*state_.best))) {
        state_.best = id;
    }
    if (state_.best == id && !t.checkpoints.empty()) state_.retention.keep(id);
}

/// While no report keeps the constraints, users want to know which one was nearest.
void Tuner::take_nearest(const study::Reported& r, const schedulers::ObjectiveReader::Reading& reading) {
    const study::Score now = objective_.score(reading);
    if (state_.best || now.feasible || !std::isfinite(now.trouble())) return;
    if (state_.nearest) {
        const study::Score& before = state_.nearest->score;
        const auto key = [](const study::Score& score, TrialId id) {
            return std::tuple(score.violation, -score.values()[0], id);
        };
        if (key(before, state_.nearest->trial) <= key(now, r.trial)) return;
    }
    std::vector<double> values{reading.value};
    values.insert(values.end(), reading.others.begin(), reading.others.begin() + std::ssize(spec_.objective.others));
    state_.nearest = Nearest{r.trial, r.iteration, now, std::move(values), objective_.distances(r.metrics)};
}

study::Ranked Tuner::ranked(TrialId id) const {
    return {study::score(state_.trials[id].best, spec_.objective.mode), id};
}

/// By the first objective; nullopt: no trial has a finite one.
std::optional<TrialId> Tuner::best_of_all() const {
    std::optional<TrialId> best;
    for (std::uint32_t i = 0; i < state_.trials.size(); ++i) {
        const TrialId id{i};
        if (std::isnan(state_.trials[id].best)) continue;
        if (!best || study::better(ranked(id), ranked(*best))) best = id;
    }
    return best;
}

void Tuner::apply_one(const study::Reported& r) {
    Trial& t = trial(r.trial);
    ++state_.reports;
    if (t.unheard) // before its times change
        state_.blame.heard(t, state_.trials, [&](TrialId other) { return admission_->began_before(other, r.trial); });
    const auto* held = admission_->held(r.trial);
    if (held == nullptr || held->empty()) receive(r.trial, r.at, r.iteration, r.seconds, t.seconds);
    if (r.iteration >= t.decision_point) t.attempt.decided = r.iteration;
    t.iteration = std::max(t.iteration, r.iteration);
    t.newest_iteration = r.iteration;
    t.newest_takeover = takeover_in(t, r.attempt);
    t.seconds = r.seconds;
    t.verdict = r.verdict;
    t.reported = true;
    if (const auto reading = objective_.read(r.metrics); reading.complete) {
        take_nearest(r, reading);
        take_value(r.trial, r.iteration, reading);
    }
    for (const auto& metric : r.metrics) {
        if (spec_.stop.plateau && state_.metrics[metric.id.value()] == spec_.stop.plateau->metric) {
            if (t.window.size() == spec_.stop.plateau->results) t.window.erase(t.window.begin());
            t.window.push_back(metric.value);
        }
    }
    if (t.phase == TrialPhase::paused) state_.retention.list(r.trial, t, spec_); // its report was held
    // (A trial that is told to stop is closed by the next record.)
    if (r.verdict.verb == Verb::pause) set_phase(r.trial, TrialPhase::paused);
    if (r.verdict.verb == Verb::exploit) set_phase(r.trial, TrialPhase::waiting);
    if (r.verdict.verb == Verb::go_on && t.phase == TrialPhase::paused) // it had given its ranks back at a barrier
        set_phase(r.trial, TrialPhase::waiting);
}

void Tuner::apply_one(const study::ReportHeld& r) {
    const auto* held = admission_->held(r.trial);
    if (held == nullptr) impossible("a report of " + named(r.trial) + " waits for no turn");
    receive(r.trial, r.at, r.iteration, r.seconds, held->empty() ? trial(r.trial).seconds : held->back().seconds);
}

void Tuner::apply_one(const study::CheckpointCommitted& r) {
    Trial& t = trial(r.trial);
    const bool told_to_end = state_.draining && t.attempt.since >= state_.drain_began;
    state_.pace.learn_from_checkpoint(t, r.at, r.checkpoint.iteration, winds_down(t) || told_to_end);
    state_.retention.committed(t, r.checkpoint);
    t.has_saved = true;
    if (exploits_) holders_[r.trial] = t.attempt.ranks;
    const auto own = std::ranges::count(t.checkpoints, t.generation(), &CheckpointRef::generation);
    if (own >= 2) t.unsettled = 0;
    state_.retention.list(r.trial, t, spec_);
    if (state_.best == r.trial) state_.retention.keep(r.trial);
}

void Tuner::apply_one(const study::CheckpointReleased& r) {
    Trial& t = trial(r.trial);
    if (r.stays && exploits_) lose_determinism(); // others might have taken it over
    state_.retention.released(t, r.path);
    state_.retention.list(r.trial, t, spec_);
}

void Tuner::apply_one(const study::AttemptEnded& r) {
    Trial& t = trial(r.trial);
    const bool ran = t.phase == TrialPhase::running;
    const Told had_been = told(r.trial);
    state_.placement.release(r.trial, t.attempt.ranks);
    note_pace(t.pace, 0.0);
    if (r.outcome == AttemptOutcome::paused && state_.draining && ran && spec_.checkpoint.supported)
        state_.pace.learn_from_pause(t, spec_.trainable.program.has_value(), trained_up_to(nullptr));
    state_.blame.attempt_ended(r.trial, t, r.outcome, r.failure, state_.placement);
    const bool unsaved = r.outcome == AttemptOutcome::unsaved;
    // (While the study drains, its program may have been told to save and to end.)
    if (unsaved && had_been == Told::go_on) t.dies_saving = true;
    t.failure = r.failure;
    if (had_been == Told::out) return end_attempt(r.trial);
    if (r.outcome == AttemptOutcome::lost) state_.pace.learn_from_loss(t, r.at, state_.reports == 0);
    Costs costs = saying_of(r.outcome).costs;
    if (r.outcome == AttemptOutcome::disturbed && admission_->disturbance_is_a_loss()) costs = Costs::loss;
    // (When a checkpoint was unreachable too often, the study ends and the next start tries again.)
    if (costs == Costs::loss) t.losses = r.outcome == AttemptOutcome::unreachable && !r.retry ? 0 : t.losses + 1;
    if (costs == Costs::failure) state_.blame.note_failure(t, admission_->received(r.trial), r.failure.message);
    end_attempt(r.trial);
    if (!r.retry && ends_trial(r.outcome)) admission_->end({r.trial, r.outcome, r.failure});
}

void Tuner::apply_one(const study::TrialPromoted& r) {
    Trial& t = trial(r.trial);
    if (t.phase != TrialPhase::paused) impossible(named(r.trial) + " is promoted while it is not paused");
    Blame::begin_silence(t);
    set_phase(r.trial, TrialPhase::waiting);
}

void Tuner::apply_one(const study::TrialClosed& r) {
    Trial& t = trial(r.trial);
    if (is_final(t.phase)) impossible(named(r.trial) + " is closed twice");
    if (r.reason == Reason::lost) lose_determinism();
    t.ended = r.at;
    t.closed_by = r.reason;
    t.closed_a = r.a;
    t.closed_b = r.b;
    if (!r.failure.empty()) t.failure = r.failure;
    state_.blame.closed(r.trial, t, r.phase, state_.reports > 0);
    set_phase(r.trial, r.phase);
    if (spec_.searcher.repeats > 1) take_mean(r.trial);
}

/// A trial with repeats is over. If it was the last one of its configuration, the mean counts.
void Tuner::take_mean(TrialId id) {
    const Repetitions all = repetitions_of(id, state_.trials, spec_);
    if (!all.complete) return;
    const auto before = state_.best;
    const auto own = [&] { return first_repeat(*before, spec_.searcher.repeats) == all.first; };
    if (before && own())
        state_.best = best_by_mean(state_.trials, spec_); // one of them was reopened: the mean may be worse now
    else if (!std::isnan(all.mean) &&
             (!before || is_better(all, repetitions_of(*before, state_.trials, spec_), spec_.objective.mode)))
        state_.best = all.best;
    if (state_.best && state_.best != before && !state_.trials[*state_.best].checkpoints.empty())
        state_.retention.keep(*state_.best);
}

void Tuner::apply_one(const study::RankLost& r) {
    const auto& placement = state_.placement;
    if (!placement.knows(r.rank)) impossible("an unknown rank is lost");
    // A node that dies loses its ranks one after the other: count it once.
    const std::uint32_t host = placement.worker(r.rank).host;
    const auto gone = [&](const WorkerState& other) { return other.host == host && !other.alive; };
    if (std::ranges::none_of(placement.workers(), gone)) ++state_.interruptions;
    const auto holder = state_.placement.lose(r);
    if (!holder) return;
    Trial& t = trial(*holder);
    t.attempt.abandoned = true;
    t.attempt.at_fault = t.attempt.at_fault || r.guilty;
    if (r.guilty) t.failure = {r.why};
    note_pace(t.pace, 0.0);
}

void Tuner::apply_one(const study::DrainBegan& r) {
    if (!state_.draining) state_.drain_began = r.at;
    state_.draining = true;
    state_.drain_reason = r.reason;
    state_.drain_message = r.why;
    state_.drain_by = r.by;
}

void Tuner::apply_one(const study::StudyEnded& r) {
    state_.ended = true;
    state_.outcome = r.outcome;
    state_.end_reason = r.reason;
    state_.end_message = r.message;
}

void Tuner::apply_one(const study::StudyChanged& r) {
    // A study keeps its algorithms.
    const study::StudySpec later =
        study::parse_resolved_study(r.spec, "the journal", {{spec_.scheduler.algorithm}, {spec_.searcher.algorithm}});
    const auto changes = study::differences(spec_, later);
    const bool decides = study::changes_what_is_decided(changes);
    for (const auto& change : changes) state_.requests.forget(change.key); // the study file has the last word
    if (decides) lose_determinism();
    study::take_over(spec_, later);
    // Journals of earlier versions do not say so.
    if (!spec_.checkpoint.supported) state_.pace.set_stretch(trained_up_to(nullptr));
    scheduler_->set_num_trials(spec_.num_trials);
    state_.retention.list_all(state_.trials, spec_);
    state_.blame.forget_row();
    if (!decides) return; // only places of files or intervals changed: no effect on trials
    // Results of the old rule say nothing about the new one. (No trial runs at this point.)
    for (std::uint32_t i = 0; i < state_.trials.size(); ++i) trial(TrialId{i}).window.clear();
}

void Tuner::apply_one(const study::TrialReopened& r) {
    Trial& t = trial(r.trial);
    if (t.phase != TrialPhase::failed) impossible(named(r.trial) + " is reopened but did not fail");
    state_.blame.reopened(r.trial, t);
    if (t.closed_by == Reason::missing_metric) t.reported = false; // its next report is checked like a first one
    t.closed_by = Reason::none;
    t.closed_a = t.closed_b = 0.0;
    t.ended = {};
    t.failure = {};
    t.dies_saving = false;
    t.overtaken = 0;
    t.verdict = {};
    if (r.from_scratch) {
        t.seconds = 0.0;
        t.has_saved = false;
        t.of_earlier_life = static_cast<std::uint32_t>(t.checkpoints.size());
    }
    state_.ended = false; // there is something to do again
    lose_determinism();
    set_phase(r.trial, TrialPhase::waiting);
    if (spec_.searcher.repeats > 1 && state_.best &&
        first_repeat(*state_.best, spec_.searcher.repeats) == first_repeat(r.trial, spec_.searcher.repeats))
        state_.best = best_by_mean(state_.trials, spec_); // its configuration is no longer complete
}

void Tuner::apply_one(const study::DeadlineSet& r) {
    state_.pace.set_deadline(r.deadline);
    slowest_ = r.deadline ? slowest_running() : 0.0;
}

void Tuner::apply_one(const study::JobDied& r) {
    bool over = false;
    for (const auto& [note, retry] : r.notes) {
        Trial& t = trial(note.trial);
        if (t.attempt.id != note.attempt) impossible("a crash note is about another attempt");
        state_.blame.note_failure(t, admission_->received(note.trial), note.failure.message);
        t.failure = note.failure;
        over = over || !retry;
    }
    // Reports in flight were lost with the job: how far a trial that is closed now had got depends on timing.
    if (over) lose_determinism();
    if (r.notes.empty()) state_.blame.job_died(state_.trials); // nobody knows which trial caused it
}

void Tuner::apply_one(const study::HostRetired& r) {
    if (r.device.empty())
        state_.blame.retired(state_.placement.retire(r.host));
    else
        state_.blame.retired_device(state_.placement.retire_device(r.host, r.device), state_.placement);
    for (const TrialId id : r.trials) Blame::forgive(trial(id));
}

void Tuner::apply_one(const study::YieldAsked& r) {
    if (!trial(r.trial).attempt.live) impossible(named(r.trial) + " is asked for ranks that it does not have");
}

void Tuner::apply_one(const study::Exploited& r) {
    Trial& t = trial(r.trial);
    if (r.generation != t.generation() + 1)
        impossible("the generations of " + named(r.trial) + " are not 1, 2, 3, ...");
    const auto number = static_cast<std::uint32_t>(t.takeovers.size() + t.undone.size() + 1);
    const std::uint32_t donor_takeover = takeover_of(trial(r.donor.trial), r.donor.checkpoint.generation);
    t.takeovers.push_back({r.iteration, r.donor, std::move(t.configuration), number, donor_takeover});
    ++t.unsettled;
    t.configuration = r.configuration;
    choose_workers(t);
    state_.retention.list(r.trial, t, spec_);
}

void Tuner::apply_one(const study::ExploitUndone& r) {
    Trial& t = trial(r.trial);
    if (t.takeovers.empty() || r.generation + 1 != t.generation())
        impossible(named(r.trial) + " takes back what it did not take over");
    lose_determinism();
    t.undone.push_back({std::move(t.takeovers.back()), std::move(t.configuration), r.why});
    t.configuration = t.undone.back().takeover.before;
    t.takeovers.pop_back();
    if (t.unsettled > 0) --t.unsettled;
    choose_workers(t);
    state_.retention.list(r.trial, t, spec_);
}

void Tuner::apply_one(const study::TicketOpened& r) { state_.tickets.add(r.ticket, r.seen); }

void Tuner::apply_one(const study::TicketPrepared& r) {
    state_.tickets.answer(r.ticket, r.configuration, admission_->waits_for_tickets(), r.why);
}

/// Writes what takes effect into the table that searchers learn from.
void Tuner::observe(const study::Record& record) {
    auto& table = state_.observations;
    const auto asked = [&](TrialId id, Iteration iteration) {
        table.asked(id, iteration, spec_.space, state_.trials[id].configuration);
    };
    if (const auto* warm = std::get_if<study::WarmStarted>(&record))
        for (const study::EarlierTrial& trial : warm->trials) table.earlier(trial, spec_.space, spec_.objective.mode);
    const bool repeats = spec_.searcher.repeats > 1;
    if (const auto* created = std::get_if<study::TrialCreated>(&record);
        created != nullptr && created->origin.kind != Origin::Kind::repeat)
        asked(created->trial, 0);
    if (const auto* exploited = std::get_if<study::Exploited>(&record)) asked(exploited->trial, exploited->iteration);
    if (const auto* undone = std::get_if<study::ExploitUndone>(&record))
        asked(undone->trial, start_of(state_.trials[undone->trial]).iteration);
    if (const auto* closed = std::get_if<study::TrialClosed>(&record)) {
        if (repeats) return observe_repeats(closed->trial);
        table.over(closed->trial, state_.trials[closed->trial].iteration, closed->phase);
    }
    if (const auto* report = std::get_if<study::Reported>(&record)) {
        const auto reading = objective_.read(report->metrics);
        if (reading.complete && repeats)
            state_.last_results.note(report->trial, {objective_.score(reading), objective_.distances(report->metrics)});
        else if (reading.complete)
            table.reported(report->trial, report->iteration, objective_.score(reading),
                           objective_.distances(report->metrics));
        // Not a pause for the core's own reasons: the trial goes on by itself then.
        const Reason reason = report->verdict.reason;
        if (report->verdict.verb == Verb::pause && reason != Reason::draining && reason != Reason::yielded)
            table.paused(report->trial, report->iteration);
    }
}

/// Searchers see a configuration as one trial, the first one, with one result: the mean of the last values, once all
/// are over. A trial that is reopened later does not change a mean that they have seen.
void Tuner::observe_repeats(TrialId id) {
    const Repetitions all = repetitions_of(id, state_.trials, spec_);
    if (!all.complete) return;
    Iteration iteration = state_.trials[all.first].iteration;
    TrialPhase phase = TrialPhase::failed;
    for (std::uint32_t i = all.first.value(); i < all.first.value() + all.created; ++i) {
        const Trial& t = state_.trials[i];
        if (t.phase == TrialPhase::failed) continue;
        iteration = phase == TrialPhase::failed ? t.iteration : std::min(iteration, t.iteration);
        phase = phase == TrialPhase::stopped ? phase : t.phase;
    }
    if (const auto mean = state_.last_results.mean_of(all, state_.trials))
        state_.observations.reported(all.first, iteration, mean->score, mean->distances);
    state_.observations.over(all.first, iteration, phase);
    state_.last_results.forget(all);
}

void Tuner::lose_determinism() {
    if (admission_->decisions_repeat() && !state_.deterministic_until) state_.deterministic_until = state_.records;
}

} // namespace ranktune::tuner
