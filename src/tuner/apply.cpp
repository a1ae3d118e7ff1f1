// SPDX-License-Identifier: Apache-2.0
// The only mutators of the state: live after every decision, and in replay.

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/change.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/parse.hpp"
#include "tuner/core.hpp"

namespace ranktune::tuner {

void impossible(const std::string& what) {
    throw base::FormatError(
        "the journal contradicts itself: " + what +
        ". It was written by another version or is damaged; `ranktune status` shows the last good state");
}

std::string_view without_place(std::string_view message) {
    const std::size_t colon = message.starts_with("rank ") ? message.find(": ") : std::string_view::npos;
    return message.substr(colon == std::string_view::npos ? 0 : colon + 2);
}

std::uint64_t digest_of_failure(const std::string& message) { return base::digest_of(without_place(message)); }

void never_created(TrialId id) { impossible("trial #" + std::to_string(id.value()) + " was never created"); }

void Tuner::Impl::set_phase(TrialId id, TrialPhase phase) {
    TrialState& t = trial(id);
    --state.count[static_cast<std::size_t>(t.phase)];
    ++state.count[static_cast<std::size_t>(phase)];
    if (t.phase == TrialPhase::waiting) waiting.erase(id);
    if (phase == TrialPhase::waiting) waiting.insert(id);
    t.phase = phase;
    list_if_evictable(id);
}

void Tuner::Impl::free_ranks(TrialId id) {
    for (const Rank rank : trial(id).ranks) {
        WorkerState& worker = state.workers[rank.value() - 1];
        if (!worker.alive || worker.trial != id) continue;
        worker.trial.reset();
        if (serves(worker)) ledger.release(rank);
    }
}

void Tuner::Impl::apply(const study::Record& record) {
    // A snapshot changes nothing: it *is* the state that the records before it made.
    if (std::holds_alternative<study::Snapshot>(record)) return;
    std::visit([this](const auto& r) { apply_one(r); }, record);
    ++state.records;
    scheduler->apply(record);
    searcher->apply(record);
    // What a trial waits for next is the scheduler's word after it has seen the record.
    if (spec.deterministic) {
        apply_turn(record);
    } else if (const auto* report = std::get_if<study::Reported>(&record)) {
        TrialState& t = trial(report->trial);
        if (report->verdict.verb == Verb::go_on && report->iteration >= t.decision_point) {
            t.decision_point = next_decision_point(report->trial, report->iteration);
            t.target = scheduler->next_decision_point(report->trial, report->iteration);
        }
    } else if (const auto* start = std::get_if<study::TrialStarted>(&record)) {
        TrialState& t = trial(start->trial);
        t.decision_point = next_decision_point(start->trial, t.attempt_iteration);
        t.target = scheduler->next_decision_point(start->trial, t.attempt_iteration);
    }
}

void Tuner::Impl::apply_one(const study::StudyCreated& r) {
    if (!state.uuid.empty()) impossible("the study is created twice");
    state.uuid = r.uuid;
    state.version = r.version;
    if (!spec.checkpoint.supported) state.stretch = whole(nullptr);
}

void Tuner::Impl::apply_one(const study::IncarnationBegan& r) {
    if (r.incarnation <= state.incarnation) impossible("incarnations do not grow");
    for (std::uint32_t rank = 0; rank < r.workers.size(); ++rank) {
        if (r.workers[rank].rank.value() != rank + 1) impossible("worker ranks are not 1, 2, 3, ...");
    }
    state.incarnation = r.incarnation;
    if (std::any_of(state.trials.begin(), state.trials.end(), holds_ranks)) ++state.interruptions;
    const StudyTime before = state.now;
    state.now = state.began = r.at;
    state.wall_time = r.wall_time;
    state.draining = state.ended = false;
    state.drain_reason = state.end_reason = Reason::none;
    state.drain_message.clear();
    state.end_message.clear();
    state.workers.clear();
    state.hosts.clear();
    state.words.clear();
    std::map<std::string, std::uint32_t> hosts;
    for (const auto& info : r.workers) {
        const auto [host, added] = hosts.try_emplace(info.host, static_cast<std::uint32_t>(state.hosts.size()));
        if (added) state.hosts.push_back({info.host, false, false, {}});
        state.workers.push_back({info, true, std::nullopt, host->second});
    }
    ledger.reset(r.workers);
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const TrialId id{i};
        TrialState& t = state.trials[i];
        if (t.phase == TrialPhase::running || t.phase == TrialPhase::ending) {
            learn_from_loss(t, before);
            after_lost_attempt(id);
        }
        t.winding = false;
        // A stop in between two rungs was nobody's verdict on the trial: it simply goes on.
        if (t.phase == TrialPhase::paused && t.verdict.reason == Reason::draining) set_phase(id, TrialPhase::waiting);
    }
}

/// The attempt is over without having said so. What was decided before stands: told to pause, it is paused (and trains
/// the gap since its checkpoint again if it goes on); told to stop, it stays `ending` until it is closed.
void Tuner::Impl::after_lost_attempt(TrialId id) {
    TrialState& t = trial(id);
    t.abandoned = t.at_fault = false;
    if (t.phase == TrialPhase::ending && t.verdict.verb == Verb::stop) return;
    const bool told_to_pause = t.phase == TrialPhase::ending && t.verdict.verb == Verb::pause;
    set_phase(id, told_to_pause ? TrialPhase::paused : TrialPhase::waiting);
}

void Tuner::Impl::apply_one(const study::MetricDefined& r) {
    if (r.id.value() != state.metrics.size()) impossible("metric numbers are not 0, 1, 2, ...");
    state.metrics.push_back(r.name);
    if (r.name == spec.objective.metric) objective = r.id;
}

void Tuner::Impl::apply_one(const study::TrialCreated& r) {
    if (r.trial.value() != state.trials.size()) impossible("trial numbers are not 0, 1, 2, ...");
    state.now = std::max(state.now, r.at);
    TrialState t;
    t.created = r.at;
    t.wanted_ranks = r.ranks;
    t.bracket = r.bracket;
    t.last = t.best = not_a_number;
    t.configuration = r.configuration;
    if (!state.trials.empty()) t.configuration.share_names(state.trials.back().configuration);
    state.trials.push_back(std::move(t));
    ++state.count[static_cast<std::size_t>(TrialPhase::waiting)];
    waiting.insert(r.trial);
}

void Tuner::Impl::apply_one(const study::TrialStarted& r) {
    TrialState& t = trial(r.trial);
    if (t.phase != TrialPhase::waiting)
        impossible("trial #" + std::to_string(r.trial.value()) + " is started while it does not wait");
    if (r.attempt != t.attempt.next()) impossible("attempts are not 1, 2, 3, ...");
    if (r.ranks.empty()) impossible("a trial is started on no rank");
    state.now = std::max(state.now, r.at);
    if (t.attempt == Attempt{}) t.started = r.at;
    t.attempt = r.attempt;
    t.abandoned = t.at_fault = false;
    t.ranks = r.ranks;
    t.overtaken = 0;
    t.silent = true;
    if (!spec.deterministic) begin_silence(r.trial); // there, attempts are no part of the logic
    t.since = r.at;
    const auto* checkpoint = std::get_if<CheckpointRef>(&r.from);
    t.attempt_iteration = checkpoint != nullptr ? checkpoint->iteration : 0;
    // The results are about to come again. (In deterministic mode they are not taken a second time.)
    if (t.attempt_iteration < t.iteration && !spec.deterministic) t.window.clear();
    for (const Rank rank : r.ranks) {
        if (rank.value() == 0 || rank.value() > state.workers.size() || !ledger.is_free(rank)) {
            impossible("rank " + std::to_string(rank.value()) + " is given away but not free");
        }
        state.workers[rank.value() - 1].trial = r.trial;
        ledger.take(rank);
    }
    set_phase(r.trial, TrialPhase::running);
    if (spec.deterministic) return; // in the order of turns nobody is overtaken
    for (auto earlier = waiting.begin(); earlier != waiting.end() && *earlier < r.trial; ++earlier)
        ++trial(*earlier).overtaken;
}

/// A trial that runs has got on.
void Tuner::Impl::note_progress(TrialId id, Iteration iteration) {
    TrialState& t = trial(id);
    if (iteration > t.attempt_iteration) state.iterations += iteration - t.attempt_iteration;
    t.attempt_iteration = iteration;
    state.hosts[state.workers[t.ranks.front().value() - 1].host].well = true;
    if (t.deaths > 0 && iteration > t.died_at) clear_of_suspicion(id); // it got past the place
}

void Tuner::Impl::apply_one(const study::Reported& r) {
    TrialState& t = trial(r.trial);
    state.now = std::max(state.now, r.at);
    ++state.reports;
    end_silence(r.trial); // before its times change
    const bool was_held = t.slot != no_slot && !state.logical.slots()[t.slot].held.empty();
    if (!was_held) {
        learn_from_report(t, r.at, r.iteration, r.seconds, t.seconds);
        note_progress(r.trial, r.iteration);
    }
    t.iteration = std::max(t.iteration, r.iteration);
    t.seconds = r.seconds;
    t.verdict = r.verdict;
    if (!t.reported) {
        t.reported = true;
        state.early_failures = 0;
    }
    for (const auto& metric : r.metrics) {
        if (objective && metric.id == *objective) {
            t.last = metric.value;
            const double score = study::score(metric.value, spec.objective.mode);
            if (std::isfinite(metric.value) &&
                (std::isnan(t.best) || score > study::score(t.best, spec.objective.mode))) {
                t.best = metric.value;
                t.best_iteration = r.iteration;
                const auto ranked = [&](TrialId id) {
                    return study::Ranked{study::score(state.trial(id).best, spec.objective.mode), id};
                };
                if (!state.best || study::better(ranked(r.trial), ranked(*state.best))) state.best = r.trial;
                if (state.best == r.trial && !t.checkpoints.empty()) state.keeper = r.trial;
            }
        }
        if (spec.stop.plateau && state.metrics[metric.id.value()] == spec.stop.plateau->metric) {
            if (t.window.size() == spec.stop.plateau->results) t.window.erase(t.window.begin());
            t.window.push_back(metric.value);
        }
    }
    if (r.verdict.verb != Verb::go_on && t.phase == TrialPhase::running && !spec.deterministic)
        set_phase(r.trial, TrialPhase::ending);
}

void Tuner::Impl::apply_one(const study::ReportHeld& r) {
    TrialState& t = trial(r.trial);
    if (t.slot == no_slot) impossible("a report of trial #" + std::to_string(r.trial.value()) + " waits for no turn");
    state.now = std::max(state.now, r.at);
    LogicalSlot& slot = state.logical.slot(t.slot);
    learn_from_report(t, r.at, r.iteration, r.seconds, slot.held.empty() ? t.seconds : slot.held.back().seconds);
    note_progress(r.trial, r.iteration);
    slot.held.push_back(r);
    slot.received = r.iteration;
}

void Tuner::Impl::apply_one(const study::CheckpointCommitted& r) {
    state.now = std::max(state.now, r.at);
    learn_from_checkpoint(trial(r.trial), r.at, r.checkpoint.iteration);
    trial(r.trial).checkpoints.push_back(r.checkpoint);
    state.checkpoint_bytes += r.checkpoint.bytes;
    state.ever_saved = true;
    list_if_evictable(r.trial);
    if (state.best == r.trial) state.keeper = r.trial;
}

void Tuner::Impl::apply_one(const study::CheckpointReleased& r) {
    auto& checkpoints = trial(r.trial).checkpoints;
    const auto found =
        std::find_if(checkpoints.begin(), checkpoints.end(), [&](const auto& c) { return c.path == r.path; });
    if (found == checkpoints.end()) impossible("checkpoint " + r.path + " is released but was never committed");
    state.checkpoint_bytes -= found->bytes;
    checkpoints.erase(found);
    if (checkpoints.empty()) checkpoints.shrink_to_fit(); // most trials of a large study end without any
    list_if_evictable(r.trial);
}

void Tuner::Impl::apply_one(const study::AttemptEnded& r) {
    TrialState& t = trial(r.trial);
    state.now = std::max(state.now, r.at);
    free_ranks(r.trial);
    if (r.outcome == AttemptOutcome::paused) learn_from_pause(t);
    note_on_hosts(r.trial, r.outcome, r.message);
    // What can save its state, or throws, does not kill.
    if (r.outcome == AttemptOutcome::paused || r.outcome == AttemptOutcome::failed ||
        r.outcome == AttemptOutcome::disturbed)
        clear_of_suspicion(r.trial);
    if (spec.deterministic) return end_attempt_of_turn(r);
    t.message = r.message;
    switch (r.outcome) {
        case AttemptOutcome::paused:
            // The word to pause overtook the answer to its last report: it goes on like any other that the end of a job
            // has paused.
            if (t.verdict.verb == Verb::go_on) t.verdict = {Verb::pause, Reason::draining, 0.0, 0.0};
            set_phase(r.trial, TrialPhase::paused);
            break;
        case AttemptOutcome::lost:
            learn_from_loss(t, r.at);
            ++t.losses;
            after_lost_attempt(r.trial);
            break;
        case AttemptOutcome::unreachable:
            t.losses = r.retry ? t.losses + 1 : 0; // the study ends with it, and the next start tries again
            after_lost_attempt(r.trial);
            break;
        case AttemptOutcome::unreadable:
        case AttemptOutcome::unsaved:
        case AttemptOutcome::unstarted:
        case AttemptOutcome::stateless:
            after_lost_attempt(r.trial);
            break;
        case AttemptOutcome::disturbed:
        case AttemptOutcome::failed:
            ++t.failures;
            t.failed_at = t.attempt_iteration;
            t.failure = digest_of_failure(r.message);
            if (r.retry) {
                after_lost_attempt(r.trial);
                break;
            }
            [[fallthrough]];
        // Closed by the record that follows.
        case AttemptOutcome::stopped:
        case AttemptOutcome::finished:
            set_phase(r.trial, TrialPhase::ending);
            break;
    }
}

void Tuner::Impl::apply_one(const study::TrialPromoted& r) {
    state.now = std::max(state.now, r.at);
    TrialState& t = trial(r.trial);
    if (t.phase != TrialPhase::paused)
        impossible("trial #" + std::to_string(r.trial.value()) + " is promoted while it is not paused");
    t.target = r.target;
    begin_silence(r.trial);
    set_phase(r.trial, TrialPhase::waiting);
}

void Tuner::Impl::apply_one(const study::TrialClosed& r) {
    TrialState& t = trial(r.trial);
    if (is_final(t.phase)) impossible("trial #" + std::to_string(r.trial.value()) + " is closed twice");
    if (t.phase == TrialPhase::running && spec.deterministic) wind(r.trial);
    if (spec.deterministic && r.reason == Reason::lost) mark_nondeterministic();
    state.now = std::max(state.now, r.at);
    t.ended = r.at;
    t.closed_by = r.reason;
    t.closed_a = r.a;
    t.closed_b = r.b;
    if (!r.message.empty()) t.message = r.message;
    if (r.phase == TrialPhase::failed && !t.reported && state.reports == 0) ++state.early_failures;
    if (r.phase == TrialPhase::failed && t.unheard) state.in_a_row.push_back(r.trial);
    suspects.erase(r.trial);
    set_phase(r.trial, r.phase);
}

void Tuner::Impl::apply_one(const study::RankLost& r) {
    state.now = std::max(state.now, r.at);
    if (r.rank.value() == 0 || r.rank.value() > state.workers.size()) impossible("an unknown rank is lost");
    WorkerState& worker = state.workers[r.rank.value() - 1];
    if (!worker.alive) impossible("rank " + std::to_string(r.rank.value()) + " is lost twice");
    // A node that dies takes all its ranks with it, one after the other.
    const auto gone = [&](const WorkerState& other) { return other.host == worker.host && !other.alive; };
    if (std::none_of(state.workers.begin(), state.workers.end(), gone)) ++state.interruptions;
    worker.alive = false;
    if (!state.hosts[worker.host].retired) ledger.lose(r.rank, !worker.trial.has_value());
    if (worker.trial) {
        TrialState& t = trial(*worker.trial);
        t.abandoned = true;
        t.at_fault = t.at_fault || r.guilty;
        if (r.guilty) t.message = r.why;
        if (spec.deterministic) refresh_turn(*worker.trial);
    }
    worker.trial.reset();
}

void Tuner::Impl::apply_one(const study::DrainBegan& r) {
    state.now = std::max(state.now, r.at);
    if (!state.draining) state.drain_began = r.at;
    state.draining = true;
    state.drain_reason = r.reason;
    state.drain_message = r.why;
}

void Tuner::Impl::apply_one(const study::StudyEnded& r) {
    state.now = std::max(state.now, r.at);
    state.ended = true;
    state.outcome = r.outcome;
    state.end_reason = r.reason;
    state.end_message = r.message;
}

void Tuner::Impl::apply_one(const study::Snapshot&) {}

void Tuner::Impl::apply_one(const study::StudyChanged& r) {
    const study::StudySpec later = study::parse_resolved_study(r.spec, "the journal");
    state.now = std::max(state.now, r.at);
    const bool decides = study::changes_what_is_decided(study::differences(spec, later));
    if (spec.deterministic && decides) mark_nondeterministic();
    study::take_over(spec, later);
    if (!spec.checkpoint.supported) state.stretch = whole(nullptr); // a version before this one could not say so
    scheduler->set_num_trials(spec.num_trials);
    list_evictable();
    state.early_failures = 0;
    state.in_a_row.clear();
    if (!decides) return; // files lie elsewhere, or are written more often: no trial can tell
    // Results of the old rule say nothing about the new one. (Trials that run have none: they are yet to be started.)
    for (TrialState& t : state.trials) t.window.clear();
}

void Tuner::Impl::apply_one(const study::TrialReopened& r) {
    TrialState& t = trial(r.trial);
    if (t.phase != TrialPhase::failed)
        impossible("trial #" + std::to_string(r.trial.value()) + " is reopened but did not fail");
    state.now = std::max(state.now, r.at);
    state.early_failures = 0;
    state.in_a_row.clear();
    begin_silence(r.trial);
    if (t.closed_by == Reason::missing_metric) t.reported = false; // its next report is looked at as its first one was
    t.closed_by = Reason::none;
    t.closed_a = t.closed_b = 0.0;
    t.ended = {};
    t.message.clear();
    t.losses = t.failures = t.overtaken = 0;
    clear_of_suspicion(r.trial);
    t.failed_at = 0;
    t.failure = 0;
    t.verdict = {};
    if (r.from_scratch) t.seconds = 0.0;
    state.ended = false; // there is something to do again
    if (spec.deterministic) mark_nondeterministic();
    set_phase(r.trial, TrialPhase::waiting);
}

void Tuner::Impl::apply_one(const study::DeadlineSet& r) {
    state.now = std::max(state.now, r.at);
    state.deadline = r.deadline;
}

void Tuner::Impl::rebuild_derived() {
    waiting.clear();
    suspects.clear();
    objective.reset();
    std::vector<study::RankInfo> infos;
    for (const auto& worker : state.workers) infos.push_back(worker.info);
    ledger.reset(infos);
    for (const auto& worker : state.workers) {
        if (!serves(worker)) {
            ledger.lose(worker.info.rank, true);
        } else if (worker.trial) {
            ledger.take(worker.info.rank);
        }
    }
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const TrialState& t = state.trials[i];
        if (t.phase == TrialPhase::waiting) waiting.insert(TrialId{i});
        if (t.deaths >= deaths_to_suspect && !is_final(t.phase)) suspects.insert(TrialId{i});
    }
    for (std::size_t i = 0; i < state.metrics.size(); ++i) {
        if (state.metrics[i] == spec.objective.metric) objective = MetricId{static_cast<std::uint16_t>(i)};
    }
    list_evictable();
    if (!spec.deterministic) return;
    unslotted.clear();
    leaving.clear();
    returning = 0;
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const TrialState& t = state.trials[i];
        if (t.phase == TrialPhase::waiting && t.slot == no_slot) unslotted.insert(TrialId{i});
        if (t.winding) set_leaving(TrialId{i}, true);
        refresh_turn(TrialId{i});
    }
}

} // namespace ranktune::tuner
