// SPDX-License-Identifier: Apache-2.0
// The only mutators of the state: live after every decision, and in replay.

#include <algorithm>
#include <cmath>
#include <tuple>

#include "ranktune/study/change.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/parse.hpp"
#include "searchers/built_in.hpp"
#include "study/printed_values.hpp"
#include "tuner/apply.hpp"
#include "tuner/decide.hpp"
#include "tuner/rules/causes.hpp"
#include "tuner/rules/outcomes.hpp"

namespace ranktune::tuner {
namespace {

void set_phase(Core& core, TrialId id, TrialPhase phase) {
    core.state.trials.set_phase(id, phase);
    core.state.retention.list(id, core.state.trials[id], core.spec);
}

void set_decision_point(Core& core, TrialId id, Iteration from) {
    Trial& t = trial(core, id);
    t.decision_point = next_decision_point(core, id, from);
    t.target = core.scheduler->next_decision_point(id, from);
}

/// The ranks of its attempt are back. What the trial was judged stands: it trains what was not saved again when it goes
/// on. One that ran waits for ranks, or for the others at its barrier.
void end_attempt(Core& core, TrialId id) {
    core.state.trials.end_attempt(id);
    const TrialPhase phase = trial(core, id).phase;
    if (phase != TrialPhase::running) return set_phase(core, id, phase);
    set_phase(core, id, core.admission->at_barrier(id) ? TrialPhase::paused : TrialPhase::waiting);
}

void apply_one(Core& core, const study::StudyCreated& r) {
    if (!core.state.uuid.empty()) impossible("the study is created twice");
    core.state.uuid = r.uuid;
    core.state.version = r.version;
    core.state.simulation = r.simulation;
    core.state.side.plan(core.spec, false, core.state.now);
    if (!core.spec.checkpoint.supported) core.state.pace.set_stretch(trained_up_to(core, nullptr));
}

/// The results are for the searcher alone; `observe` writes them into its table.
void apply_one(Core& core, const study::WarmStarted& r) {
    if (core.state.trials.size() > 0 || core.state.incarnation > Incarnation{})
        impossible("earlier results come after the beginning");
    if (!r.trials.empty() && !core.learns) impossible("earlier results come to a searcher that does not learn");
}

void apply_one(Core& core, const study::IncarnationBegan& r) {
    if (r.incarnation <= core.state.incarnation) impossible("incarnations do not grow");
    core.state.incarnation = r.incarnation;
    if (core.state.trials.live_attempts() > 0) ++core.state.interruptions;
    const StudyTime before = std::exchange(core.state.now, r.at);
    core.state.began = r.at;
    core.state.wall_time = r.wall_time;
    core.state.draining = core.state.ended = false;
    core.state.drain_reason = core.state.end_reason = Reason::none;
    core.state.drain_message.clear();
    core.state.end_message.clear();
    core.state.placement.begin(r.workers, core.spec.output.spares, core.spec.resources.helpers);
    core.state.side.begin_incarnation(core.spec.failure.max_losses);
    core.state.tickets.begin();
    core.state.blame.begin(core.state.placement.hosts().size(), core.state.placement.devices().size());
    for (std::uint32_t i = 0; i < core.state.trials.size(); ++i) {
        const TrialId id{i};
        Trial& t = trial(core, id);
        if (!t.attempt.live) continue;
        core.state.pace.learn_from_loss(t, before, core.state.reports == 0);
        end_attempt(core, id);
    }
    core.slowest = 0.0;
    core.holders.clear(); // new processes
}

void apply_one(Core& core, const study::MetricDefined& r) {
    if (r.id.value() != core.state.metrics.size()) impossible("metric numbers are not 0, 1, 2, ...");
    core.state.metrics.push_back(r.name);
    core.metric_ids.emplace(r.name, r.id);
    core.objective.apply(r);
}

void apply_one(Core& core, const study::TrialCreated& r) {
    if (r.trial.value() != core.state.trials.size()) impossible("trial numbers are not 0, 1, 2, ...");
    Trial t;
    t.created = r.at;
    t.wanted_ranks = r.ranks;
    t.bracket = r.bracket;
    t.last = t.best = not_a_number;
    t.origin = r.origin;
    t.configuration = r.configuration;
    t.workers = core.spec.workers_for(t.configuration);
    core.state.trials.add(std::move(t));
    core.state.side.study_goes_on();
    if (r.origin.kind == Origin::Kind::searcher || r.origin.kind == Origin::Kind::stopgap) ++core.state.suggested;
    if (r.origin.kind == Origin::Kind::user) core.state.requests.point_created();
    if (r.origin.kind == Origin::Kind::ticket) core.state.tickets.take(r.origin.index);
    // In a deterministic study the trial that takes a stopgap uses up the ticket that failed.
    if (r.origin.kind == Origin::Kind::stopgap && core.admission->waits_for_tickets()) core.state.tickets.drop_oldest();
}

/// A trial that trains is known to need `after` seconds for an iteration, in place of `before`; 0: it does not train.
/// Only a deadline asks for the slowest one.
void note_pace(Core& core, double before, double after) {
    if (!core.state.pace.deadline()) return;
    if (after > core.slowest)
        core.slowest = after;
    else if (before >= core.slowest && after < before)
        core.slowest = slowest_running(core);
}

void apply_one(Core& core, const study::TrialStarted& r) {
    Trial& t = trial(core, r.trial);
    if (t.phase != TrialPhase::waiting || t.attempt.live)
        impossible(named(r.trial) + " is started while it does not wait");
    if (r.attempt != t.attempt.id.next()) impossible("attempts are not 1, 2, 3, ...");
    if (r.ranks.empty()) impossible("a trial is started on no rank");
    std::uint64_t of_roles = 0;
    for (const study::Role& role : r.roles) of_roles += role.size;
    if (!r.roles.empty() && of_roles != r.ranks.size()) impossible("the roles of a trial have other ranks than it has");
    if (t.attempt.id == AttemptId{}) t.started = r.at;
    const std::uint32_t takeover = takeover_of(t, t.generation());
    if (takeover != takeover_in(t, r.attempt)) t.changes.push_back({r.attempt, takeover});
    t.overtaken = 0;
    const Iteration from = start_of(t).iteration;
    if (core.admission->attempts_count()) {
        Blame::begin_silence(t);
        if (from < t.iteration) t.window.clear(); // these results will be reported again
    }
    core.state.placement.take(r.trial, r.ranks);
    core.state.trials.begin_attempt(r, from);
    core.state.retention.list(r.trial, t, core.spec);
    note_pace(core, 0.0, t.pace);
    if (core.admission->keeps_the_line()) return;
    const auto& waiting = core.state.trials.waiting();
    for (auto earlier = waiting.begin(); earlier != waiting.end() && *earlier < r.trial; ++earlier)
        if (Trial& before = trial(core, *earlier); before.workers == t.workers) ++before.overtaken;
}

/// A report has arrived: the trial makes progress, whether the report takes effect now or later.
void receive(Core& core, TrialId id, StudyTime at, Iteration iteration, double seconds, double before) {
    Trial& t = trial(core, id);
    const double pace = t.pace;
    core.state.pace.learn_from_report(t, at, iteration, seconds, before, core.state.reports <= 1);
    if (iteration > t.attempt.iteration) core.state.iterations += iteration - t.attempt.iteration;
    t.attempt.iteration = iteration;
    core.state.blame.got_on(id, t, iteration, core.state.placement);
    note_pace(core, pace, t.pace);
}

/// The objectives in a report that takes effect. What violates a constraint is never a best value.
void take_value(Core& core, TrialId id, Iteration iteration, const schedulers::ObjectiveReader::Reading& reading) {
    Trial& t = trial(core, id);
    core.state.scored = true;
    t.last = reading.value;
    const study::Score now = core.objective.score(reading);
    if (now.trouble() > 0.0) return;
    const study::Score before = standing_of(t, core.spec.objective);
    const bool several = core.spec.objective.several();
    const bool better = several ? !beats(before, now) : std::isnan(t.best) || now.rank() > before.rank();
    if (!better) return;
    t.best = reading.value;
    t.best_iteration = iteration;
    t.best_takeover = t.newest_takeover;
    if (core.spec.searcher.repeats > 1) return; // take_mean
    if (study::compares_nothing(core.spec)) return;
    if (several) {
        t.others.clear();
        for (std::size_t i = 0; i < core.spec.objective.others.size(); ++i) t.others.push_back(reading.others.at(i));
        const std::vector<TrialId> front = core.state.front.trials();
        core.state.front.moved(id, before, core.state.trials, core.spec.objective);
        for (const TrialId each : front)
            if (!core.state.front.contains(each)) core.state.retention.doubt(each);
    }
    if (core.state.best == id && now.rank() < before.rank()) {
        core.state.best = best_of_all(core);
    } else if (!core.state.best || study::better({now.rank(), id}, ranked(core, *core.state.best))) {
        core.state.best = id;
    }
    if (core.state.best == id && !t.checkpoints.empty()) core.state.retention.keep(id);
}

/// NaN: there is none.
double best_value(const Core& core) {
    return core.state.best ? core.state.trials[*core.state.best].best : not_a_number;
}

/// While no report keeps the constraints, users want to know which one was nearest.
void take_nearest(Core& core, const study::Reported& r, const schedulers::ObjectiveReader::Reading& reading) {
    const study::Score now = core.objective.score(reading);
    if (core.state.best || now.feasible || !std::isfinite(now.trouble())) return;
    if (core.state.nearest) {
        const study::Score& before = core.state.nearest->score;
        const auto key = [](const study::Score& score, TrialId id) {
            return std::tuple(score.violation, -score.values()[0], id);
        };
        if (key(before, core.state.nearest->trial) <= key(now, r.trial)) return;
    }
    std::vector<double> values{reading.value};
    values.insert(values.end(), reading.others.begin(),
                  reading.others.begin() + std::ssize(core.spec.objective.others));
    core.state.nearest = Nearest{r.trial, r.iteration, now, std::move(values), core.objective.distances(r.metrics)};
}

void apply_one(Core& core, const study::Reported& r) {
    Trial& t = trial(core, r.trial);
    ++core.state.reports;
    if (t.unheard) // before its times change
        core.state.blame.heard(t, core.state.trials,
                               [&](TrialId other) { return core.admission->began_before(other, r.trial); });
    const auto* held = core.admission->held(r.trial);
    if (held == nullptr || held->empty()) receive(core, r.trial, r.at, r.iteration, r.seconds, t.seconds);
    if (r.iteration >= t.decision_point) t.attempt.decided = r.iteration;
    t.iteration = std::max(t.iteration, r.iteration);
    t.newest_iteration = r.iteration;
    t.newest_takeover = takeover_in(t, r.attempt);
    t.seconds = r.seconds;
    t.verdict = r.verdict;
    t.reported = true;
    if (const auto reading = core.objective.read(r.metrics); reading.complete) {
        take_nearest(core, r, reading);
        const double before = best_value(core);
        take_value(core, r.trial, r.iteration, reading);
        const bool leads = t.best_iteration == r.iteration && core.state.leads(r.trial);
        if (leads && (core.spec.objective.several() || best_value(core) != before)) core.state.since_better = 0;
    }
    for (const auto& metric : r.metrics) {
        if (core.spec.stop.plateau && core.state.metrics[metric.id.value()] == core.spec.stop.plateau->metric) {
            if (t.window.size() == core.spec.stop.plateau->results) t.window.pop_front();
            t.window.push_back(metric.value);
        }
    }
    if (t.phase == TrialPhase::paused) core.state.retention.list(r.trial, t, core.spec); // its report was held
    // (A trial that is told to stop is closed by the next record.)
    if (r.verdict.verb == Verb::pause) set_phase(core, r.trial, TrialPhase::paused);
    if (r.verdict.verb == Verb::exploit) set_phase(core, r.trial, TrialPhase::waiting);
    if (r.verdict.verb == Verb::go_on && t.phase == TrialPhase::paused) // it had given its ranks back at a barrier
        set_phase(core, r.trial, TrialPhase::waiting);
}

void apply_one(Core& core, const study::ReportHeld& r) {
    const auto* held = core.admission->held(r.trial);
    if (held == nullptr) impossible("a report of " + named(r.trial) + " waits for no turn");
    receive(core, r.trial, r.at, r.iteration, r.seconds,
            held->empty() ? trial(core, r.trial).seconds : held->back().seconds);
}

void apply_one(Core& core, const study::CheckpointCommitted& r) {
    Trial& t = trial(core, r.trial);
    const bool told_to_end = core.state.draining && t.attempt.since >= core.state.drain_began;
    core.state.pace.learn_from_checkpoint(t, r.at, r.checkpoint.iteration, winds_down(t) || told_to_end);
    core.state.retention.committed(t, r.checkpoint);
    t.has_saved = true;
    if (core.exploits) core.holders[r.trial] = t.attempt.ranks;
    const auto own = std::ranges::count(t.checkpoints, t.generation(), &CheckpointRef::generation);
    if (own >= 2) t.unsettled = 0;
    core.state.retention.list(r.trial, t, core.spec);
    if (core.state.best == r.trial) core.state.retention.keep(r.trial);
}

void apply_one(Core& core, const study::CheckpointReleased& r) {
    Trial& t = trial(core, r.trial);
    if (r.stays && core.exploits) lose_determinism(core); // others might have taken it over
    core.state.retention.released(t, r.path);
    core.state.retention.list(r.trial, t, core.spec);
}

/// A trial with repeats is over. If it was the last one of its configuration, the mean counts.
void take_mean(Core& core, TrialId id) {
    const Repetitions all = repetitions_of(id, core.state.trials, core.spec);
    if (!all.complete) return;
    const auto before = core.state.best;
    const auto own = [&] { return first_repeat(*before, core.spec.searcher.repeats) == all.first; };
    if (before && own())
        core.state.best =
            best_by_mean(core.state.trials, core.spec); // one of them was reopened: the mean may be worse now
    else if (!std::isnan(all.mean) && (!before || is_better(all, repetitions_of(*before, core.state.trials, core.spec),
                                                            core.spec.objective.mode)))
        core.state.best = all.best;
    if (core.state.best && core.state.best != before && !core.state.trials[*core.state.best].checkpoints.empty())
        core.state.retention.keep(*core.state.best);
}

void close(Core& core, TrialId id, TrialPhase phase, Reason reason, double a, double b) {
    Trial& t = trial(core, id);
    t.closed_by = reason;
    t.closed_a = a;
    t.closed_b = b;
    set_phase(core, id, phase);
    if (phase == TrialPhase::failed)
        core.state.side.forget_after(id);
    else if (is_evaluated(core, id, reason))
        core.state.side.add_after(id, core.state.now);
    if (core.spec.searcher.repeats > 1) take_mean(core, id);
}

/// The ranks of a trial that has its result failed when they were to save and to stop: it has failed after all. Nobody
/// decides anew: schedulers and searchers keep the result. When that happens depends on the machine.
void spoil(Core& core, TrialId id, StudyTime at) {
    if (!is_final(trial(core, id).phase)) return;
    lose_determinism(core);
    trial(core, id).ended = at;
    close(core, id, TrialPhase::failed, Reason::exception, 0.0, 0.0);
}

void close_as_told(Core& core, TrialId id) {
    const Verdict& verdict = trial(core, id).verdict;
    close(core, id, phase_after(verdict.reason), verdict.reason, verdict.a, verdict.b);
}

void apply_one(Core& core, const study::AttemptEnded& r) {
    Trial& t = trial(core, r.trial);
    const bool ran = t.phase == TrialPhase::running;
    const Told had_been = told(core, r.trial);
    core.state.placement.release(r.trial, t.attempt.ranks);
    note_pace(core, t.pace, 0.0);
    if (r.outcome == AttemptOutcome::paused && core.state.draining && ran && core.spec.checkpoint.supported)
        core.state.pace.learn_from_pause(t, core.spec.trainable.program.has_value(), trained_up_to(core, nullptr));
    core.state.blame.attempt_ended(r.trial, t, r.outcome, r.failure, core.state.placement);
    if (r.outcome == AttemptOutcome::unsaved && had_been == Told::go_on) t.dies_saving = true;
    t.failure = r.failure;
    if (had_been == Told::out) {
        end_attempt(core, r.trial);
        if (ending_of(r.outcome, had_been).then == Then::spoils) spoil(core, r.trial, r.at);
        return;
    }
    if (r.outcome == AttemptOutcome::lost) core.state.pace.learn_from_loss(t, r.at, core.state.reports == 0);
    Costs costs = saying_of(r.outcome).costs;
    if (r.outcome == AttemptOutcome::disturbed && core.admission->disturbance_is_a_loss()) costs = Costs::loss;
    // (When a checkpoint was unreachable too often, the study ends and the next start tries again.)
    if (costs == Costs::loss) t.losses = r.outcome == AttemptOutcome::unreachable && !r.retry ? 0 : t.losses + 1;
    if (costs == Costs::failure) core.state.blame.note_failure(t, core.admission->received(r.trial), r.failure.message);
    end_attempt(core, r.trial);
    if (!r.retry && ends_trial(r.outcome)) core.admission->end({r.trial, r.outcome, r.failure});
}

void apply_one(Core& core, const study::TrialPromoted& r) {
    Trial& t = trial(core, r.trial);
    if (t.phase != TrialPhase::paused) impossible(named(r.trial) + " is promoted while it is not paused");
    Blame::begin_silence(t);
    set_phase(core, r.trial, TrialPhase::waiting);
}

void apply_one(Core& core, const study::TrialClosed& r) {
    Trial& t = trial(core, r.trial);
    if (is_final(t.phase)) impossible(named(r.trial) + " is closed twice");
    if (r.reason == Reason::lost) lose_determinism(core);
    t.ended = r.at;
    if (!r.failure.empty()) t.failure = r.failure;
    core.state.blame.closed(r.trial, t, r.phase, r.reason, core.state.reports > 0);
    const std::optional<TrialId> best = core.state.best;
    close(core, r.trial, r.phase, r.reason, r.a, r.b);
    if (core.state.best != best) core.state.since_better = 0; // by the mean of repetitions
    // (What the end of the study closes has not ended by itself.)
    if (r.phase == TrialPhase::failed || core.state.draining || r.reason == Reason::not_promoted) return;
    ++core.state.ended_well;
    if (!core.state.leads(r.trial)) ++core.state.since_better;
}

void apply_one(Core& core, const study::RankLost& r) {
    const auto& placement = core.state.placement;
    if (!placement.knows(r.rank)) impossible("an unknown rank is lost");
    // A node that dies loses its ranks one after the other: count it once.
    const std::uint32_t host = placement.worker(r.rank).host;
    const auto gone = [&](const WorkerState& other) { return other.host == host && !other.alive; };
    if (std::ranges::none_of(placement.workers(), gone)) ++core.state.interruptions;
    const auto holder = core.state.placement.lose(r);
    if (!holder) return;
    Trial& t = trial(core, *holder);
    t.attempt.abandoned = true;
    t.attempt.at_fault = t.attempt.at_fault || r.guilty;
    if (r.guilty) t.failure = {r.why};
    note_pace(core, t.pace, 0.0);
}

void apply_one(Core& core, const study::DrainBegan& r) {
    if (!core.state.draining) core.state.drain_began = r.at;
    core.state.draining = true;
    core.state.drain_reason = r.reason;
    core.state.drain_message = r.why;
    core.state.drain_by = r.by;
}

void apply_one(Core& core, const study::StudyEnded& r) {
    core.state.ended = true;
    core.state.outcome = r.outcome;
    core.state.end_reason = r.reason;
    core.state.end_message = r.message;
}

/// What was learned so far stays, in the coordinates of the new space; the searcher begins anew with it.
void take_space(Core& core, const space::SearchSpace& before) {
    core.state.observations = core.state.observations.moved(before, core.spec.space);
    core.state.tickets.drop_all();
    core.searcher = Owned(searchers::make_searcher(core.spec));
    core.searcher->begin_after(core.state.suggested);
    for (std::uint32_t i = 0; i < core.state.trials.size(); ++i) {
        const Trial& t = trial(core, TrialId{i});
        if (t.origin.kind == Origin::Kind::repeat) continue;
        core.searcher->apply(study::TrialCreated{TrialId{i}, core.state.now, t.wanted_ranks, t.bracket, t.target,
                                                 Origin{Origin::Kind::start, i, 0}, t.configuration});
    }
}

void apply_one(Core& core, const study::StudyChanged& r) {
    // A study keeps its algorithms.
    const study::StudySpec later = study::parse_resolved_study(
        r.spec, "the journal", {{core.spec.scheduler.algorithm}, {core.spec.searcher.algorithm}});
    const auto changes = study::differences(core.spec, later);
    const bool decides = study::changes_what_is_decided(changes);
    for (const auto& change : changes) core.state.requests.forget(change.key); // the study file has the last word
    if (decides) lose_determinism(core);
    const space::SearchSpace before = core.spec.space;
    study::take_over(core.spec, later);
    const SideTasks side = core.state.side;
    core.state.side.plan(core.spec, !core.state.trials.empty(), core.state.now);
    for (const TrialId unit : side.running()) // of the start before
        if (!core.state.side.running().contains(unit)) core.state.placement.release_aside(side.all().at(unit).rank);
    if (!(before == core.spec.space)) take_space(core, before);
    // Journals of earlier versions do not say so.
    if (!core.spec.checkpoint.supported) core.state.pace.set_stretch(trained_up_to(core, nullptr));
    core.scheduler->study_changed(core.spec);
    core.state.retention.list_all(core.state.trials, core.spec);
    core.state.blame.forget_row();
    if (!decides) return; // only places of files or intervals changed: no effect on trials
    // Results of the old rule say nothing about the new one. (No trial runs at this point.)
    for (std::uint32_t i = 0; i < core.state.trials.size(); ++i) trial(core, TrialId{i}).window.clear();
}

void apply_one(Core& core, const study::TrialReopened& r) {
    Trial& t = trial(core, r.trial);
    const bool lost = t.phase == TrialPhase::finished && r.from_scratch;
    if (t.phase != TrialPhase::failed && !lost) impossible(named(r.trial) + " is reopened but did not fail");
    core.state.blame.reopened(r.trial, t);
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
    core.state.ended = false; // there is something to do again
    core.state.side.study_goes_on();
    lose_determinism(core);
    set_phase(core, r.trial, TrialPhase::waiting);
    if (core.spec.searcher.repeats > 1 && core.state.best &&
        first_repeat(*core.state.best, core.spec.searcher.repeats) == first_repeat(r.trial, core.spec.searcher.repeats))
        core.state.best = best_by_mean(core.state.trials, core.spec); // its configuration is no longer complete
}

void apply_one(Core& core, const study::DeadlineSet& r) {
    core.state.pace.set_deadline(r.deadline);
    core.slowest = r.deadline ? slowest_running(core) : 0.0;
}

void apply_one(Core& core, const study::JobDied& r) {
    bool over = false;
    for (const auto& [note, retry] : r.notes) {
        Trial& t = trial(core, note.trial);
        if (t.attempt.id != note.attempt) impossible("a crash note is about another attempt");
        core.state.blame.note_failure(t, core.admission->received(note.trial), note.failure.message);
        t.failure = note.failure;
        over = over || !retry;
    }
    // Reports in flight were lost with the job: how far a trial that is closed now had got depends on timing.
    if (over) lose_determinism(core);
    if (!r.notes.empty()) return;
    core.state.blame.job_died(core.state.trials); // nobody knows which trial or task caused it
    core.state.side.job_died();
}

void apply_one(Core& core, const study::HostRetired& r) {
    if (r.device.empty())
        core.state.blame.retired(core.state.placement.retire(r.host));
    else
        core.state.blame.retired_device(core.state.placement.retire_device(r.host, r.device), core.state.placement);
    for (const TrialId id : r.trials) {
        Trial& t = trial(core, id);
        Blame::forgive(t);
        if (t.phase == TrialPhase::failed && t.verdict.verb == Verb::stop) close_as_told(core, id);
    }
}

void apply_one(Core& core, const study::YieldAsked& r) {
    if (!trial(core, r.trial).attempt.live) impossible(named(r.trial) + " is asked for ranks that it does not have");
}

void apply_one(Core& core, const study::Exploited& r) {
    Trial& t = trial(core, r.trial);
    if (r.generation != t.generation() + 1)
        impossible("the generations of " + named(r.trial) + " are not 1, 2, 3, ...");
    const auto number = static_cast<std::uint32_t>(t.takeovers.size() + t.undone.size() + 1);
    const std::uint32_t donor_takeover = takeover_of(trial(core, r.donor.trial), r.donor.checkpoint.generation);
    t.takeovers.push_back({r.iteration, r.donor, std::move(t.configuration), number, donor_takeover});
    ++t.unsettled;
    t.configuration = r.configuration;
    choose_workers(core, t);
    core.state.retention.list(r.trial, t, core.spec);
}

void apply_one(Core& core, const study::ExploitUndone& r) {
    Trial& t = trial(core, r.trial);
    if (t.takeovers.empty() || r.generation + 1 != t.generation())
        impossible(named(r.trial) + " takes back what it did not take over");
    lose_determinism(core);
    t.undone.push_back({std::move(t.takeovers.back()), std::move(t.configuration), r.why});
    t.configuration = t.undone.back().takeover.before;
    t.takeovers.pop_back();
    if (t.unsettled > 0) --t.unsettled;
    choose_workers(core, t);
    core.state.retention.list(r.trial, t, core.spec);
}

void apply_one(Core& core, const study::TicketOpened& r) { core.state.tickets.add(r.ticket, r.seen); }

void apply_one(Core& core, const study::TicketPrepared& r) {
    core.state.tickets.answer(r.ticket, r.configuration, core.admission->waits_for_tickets(), r.why);
}

/// The scheduler names the next decision point after it has seen the record.
template <class T>
void follow_decision_point(Core& core, const T& r) {
    if constexpr (std::is_same_v<T, study::Reported>) {
        const bool waits = r.iteration >= core.state.trials[r.trial].decision_point;
        const bool trains_on = r.verdict.verb == Verb::go_on || r.verdict.verb == Verb::exploit;
        if (trains_on && waits) set_decision_point(core, r.trial, r.iteration);
    } else if constexpr (std::is_same_v<T, study::TrialStarted>) {
        set_decision_point(core, r.trial, core.admission->admitted(r.trial));
    } else if constexpr (std::is_same_v<T, study::TrialCreated> || std::is_same_v<T, study::TrialPromoted> ||
                         std::is_same_v<T, study::TrialReopened>) {
        set_decision_point(core, r.trial, core.state.trials[r.trial].iteration);
    }
}

} // namespace

void apply(Core& core, const study::Record& record) {
    std::visit(
        [&]<class T>(const T& r) {
            // A snapshot changes nothing: it is the state that the records before it made.
            if constexpr (std::is_same_v<T, study::Snapshot>) return;
            core.state.retention.begin();
            constexpr bool begins = std::is_same_v<T, study::IncarnationBegan>;
            if constexpr (requires { r.at; } && !begins) core.state.now = std::max(core.state.now, r.at);
            if constexpr (!std::is_same_v<T, study::Snapshot>) apply_one(core, r);
            ++core.state.records;
            if constexpr (!requires { r.task; }) { // side tasks decide nothing about trials
                if (core.learns) observe(core, record);
                core.scheduler->apply(record);
                core.searcher->apply(record);
                follow_decision_point(core, r);
                core.admission->apply(record);
            }
        },
        record);
}

void choose_workers(const Core& core, Trial& t) {
    t.wanted_ranks = core.spec.ranks_for(t.configuration);
    t.workers = core.spec.workers_for(t.configuration);
}

study::Ranked ranked(const Core& core, TrialId id) {
    return {study::score(core.state.trials[id].best, core.spec.objective.mode), id};
}

/// By the first objective; nullopt: no trial has a finite one, or nothing is compared.
std::optional<TrialId> best_of_all(const Core& core) {
    std::optional<TrialId> best;
    if (study::compares_nothing(core.spec)) return best;
    for (std::uint32_t i = 0; i < core.state.trials.size(); ++i) {
        const TrialId id{i};
        if (std::isnan(core.state.trials[id].best)) continue;
        if (!best || study::better(ranked(core, id), ranked(core, *best))) best = id;
    }
    return best;
}

void lose_determinism(Core& core) {
    if (core.admission->decisions_repeat() && !core.state.deterministic_until)
        core.state.deterministic_until = core.state.records;
}

} // namespace ranktune::tuner
