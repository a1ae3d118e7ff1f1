// SPDX-License-Identifier: Apache-2.0
// Events into records and commands. Every change goes through commit(), that is, through apply().

#include <algorithm>
#include <utility>

#include "tuner/core.hpp"

namespace ranktune::tuner {
TrialPhase phase_after(Reason reason) {
    switch (reason) {
        case Reason::max_iterations:
        case Reason::trainable_done:
            return TrialPhase::finished;
        case Reason::missing_metric:
        case Reason::parameters_differ:
        case Reason::exception:
        case Reason::lost:
            return TrialPhase::failed;
        default:
            return TrialPhase::stopped;
    }
}

std::string kept_checkpoint_message(const std::string& message) {
    return "a checkpoint cannot be read, and is kept: " + message +
           ". When the file is there again, the same command goes on; one that is gone for good may be given up by an "
           "empty file in its place: the trial then goes on from the checkpoint before";
}

std::string stateless_message(TrialId id, const std::string& message) {
    return "trial #" + std::to_string(id.value()) + ": " + std::string(without_place(message));
}

void Tuner::Impl::commit(study::Record record, Output& out) {
    apply(record);
    out.records.push_back(std::move(record));
    if (scheduler->fell_out().empty()) return;
    const std::vector<TrialId> fell_out = scheduler->fell_out(); // the records of their release are applied, too
    for (const TrialId id : fell_out) {
        if (trial(id).phase == TrialPhase::paused) retain(id, out);
    }
}

bool Tuner::Impl::is_current(TrialId id, Attempt attempt, Incarnation incarnation) const {
    if (incarnation != state.incarnation || id.value() >= state.trials.size()) return false;
    const TrialState& t = state.trials[id.value()];
    return t.attempt == attempt && holds_ranks(t);
}

void Tuner::Impl::step(const study::Event& event, Output& out) {
    const StudyTime now = std::max(event.now, state.now);
    std::visit([&](const auto& body) { on(body, now, out); }, event.body);
}

void Tuner::Impl::on(const study::Began& event, StudyTime now, Output& out) {
    std::vector<TrialId> convicted;
    if (event.death) convicted = job_died(*event.death, now, out);
    commit(study::IncarnationBegan{event.incarnation, now, event.wall_time, event.workers}, out);
    // Trials that had been told to stop when the head before died need no ranks to be closed.
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const TrialState& t = state.trials[i];
        const bool told_to_stop = spec.deterministic && t.verdict.verb == Verb::stop && !is_final(t.phase);
        if (t.phase == TrialPhase::ending || told_to_stop)
            close(TrialId{i}, phase_after(t.verdict.reason), t.verdict, t.message, now, out);
    }
    for (const TrialId id : convicted) {
        const TrialState& t = trial(id);
        if (is_final(t.phase)) continue;
        const bool alone = t.deaths_alone >= deaths_to_convict;
        const std::string why = alone ? "the job died " + std::to_string(t.deaths) + " times while it ran, " +
                                            std::to_string(t.deaths_alone) + " times while it was tried alone"
                                      : t.message;
        close(id, TrialPhase::failed, {Verb::stop, alone ? Reason::lost : Reason::exception, 0.0, 0.0}, why, now, out);
    }
    set_timer(out);
    fill(now, out);
    end_if_over(now, out);
}

void Tuner::Impl::on(const study::ReportArrived& event, StudyTime now, Output& out) {
    if (spec.deterministic) return take_report(event, now, out);
    if (!is_current(event.trial, event.attempt, event.incarnation) || trial(event.trial).abandoned ||
        event.iteration <= trial(event.trial).attempt_iteration) {
        ++state.stale_events;
        return;
    }
    const std::optional<double> value = objective_of(event);
    const Verdict verdict = decide(event.trial, event, value);
    study::Reported report{event.trial, event.attempt, now, event.iteration, event.seconds, {}, verdict};
    report.metrics = numbered(event.metrics, out);
    const bool was_ending = trial(event.trial).phase == TrialPhase::ending;
    const bool was_suspect = suspects.contains(event.trial);
    const bool waits = event.iteration >= trial(event.trial).decision_point;
    const std::optional<TrialId> keeper = state.keeper;
    commit(std::move(report), out);
    if (keeper && keeper != state.keeper) retain(*keeper, out);
    const TrialState& t = trial(event.trial);
    const Verdict told = as_told(event.trial, verdict);
    if (waits) {
        const Iteration next = verdict.verb == Verb::go_on ? t.decision_point : 0;
        out.commands.emplace_back(
            study::Decide{event.trial, event.attempt, event.incarnation, event.iteration, told, next});
    } else if (verdict.verb != Verb::go_on && !was_ending && !state.draining) {
        out.commands.emplace_back(study::Interrupt{event.trial, event.attempt, event.incarnation, told});
    }
    if (verdict.reason == Reason::missing_metric && !objective) {
        drain(Reason::missing_metric, missing_metric_message(event), now, out);
    }
    // Slower than anything that was known: the study has to end earlier before its deadline.
    if (state.deadline && !state.draining && t.pace > slowest_known) set_timer(out);
    // A new entry in a rung can make another trial promotable, when ranks happen to be free.
    // One that gets past the place where the job died is suspected no longer: the others need not wait.
    const bool cleared = was_suspect && !suspects.contains(event.trial);
    if (ledger.free() > 0 && (verdict.reason != Reason::below_rung || cleared)) fill(now, out);
}

/// Metrics by their numbers; a new name gets the next one.
std::vector<study::MetricValue> Tuner::Impl::numbered(const std::vector<study::NamedMetric>& metrics, Output& out) {
    std::vector<study::MetricValue> values;
    values.reserve(metrics.size());
    for (std::size_t i = 0; i < metrics.size(); ++i) {
        const std::string& name = metrics[i].name;
        // Trials mostly report the same metrics in the same order: look at that place first.
        std::size_t id = i < state.metrics.size() && state.metrics[i] == name ? i : 0;
        while (id < state.metrics.size() && state.metrics[id] != name) ++id;
        const MetricId metric{static_cast<std::uint16_t>(id)};
        if (id == state.metrics.size()) commit(study::MetricDefined{metric, name}, out);
        values.push_back({metric, metrics[i].value});
    }
    return values;
}

void Tuner::Impl::on(const study::CheckpointSaved& event, StudyTime now, Output& out) {
    if (!is_current(event.trial, event.attempt, event.incarnation)) {
        ++state.stale_events;
        return;
    }
    const auto& known = trial(event.trial).checkpoints;
    if (std::any_of(known.begin(), known.end(), [&](const auto& c) { return c.path == event.checkpoint.path; })) {
        ++state.stale_events;
        return;
    }
    const std::optional<TrialId> keeper = state.keeper;
    commit(study::CheckpointCommitted{event.trial, event.attempt, now, event.checkpoint}, out);
    retain(event.trial, out);
    if (keeper && keeper != state.keeper) retain(*keeper, out);
    // One that is about to pause may be the one to go.
    if (trial(event.trial).phase == TrialPhase::running) evict(out);
}

void Tuner::Impl::on(const study::AttemptOver& event, StudyTime now, Output& out) {
    if (!is_current(event.trial, event.attempt, event.incarnation)) {
        ++state.stale_events;
        return;
    }
    attempt_ended(event.trial, event.outcome, event.message, now, out);
    fill(now, out);
    end_if_over(now, out);
}

void Tuner::Impl::attempt_ended(TrialId id, AttemptOutcome outcome, const std::string& message, StudyTime now,
                                Output& out) {
    const TrialState& t = trial(id);
    // Other trials could save: it is the fault of this one.
    if (outcome == AttemptOutcome::stateless && state.ever_saved) outcome = AttemptOutcome::failed;
    if (t.abandoned || outcome == AttemptOutcome::lost) {
        attempt_lost(id, now, out);
        return;
    }
    const Attempt attempt = t.attempt;
    const Verdict verdict = t.verdict;
    if (spec.deterministic) return take_end(id, outcome, message, now, out);
    if (outcome == AttemptOutcome::unreadable && !t.checkpoints.empty()) {
        // It goes on from the checkpoint before, or from nothing. The file stays: whoever looks for the damage needs
        // it.
        const std::string path = t.checkpoints.back().path;
        commit(study::AttemptEnded{id, attempt, now, outcome, true, message}, out);
        commit(study::CheckpointReleased{id, path}, out);
        return;
    }
    if (outcome == AttemptOutcome::unreachable) {
        const bool retry = t.losses < spec.failure.max_losses;
        commit(study::AttemptEnded{id, attempt, now, outcome, retry, message}, out);
        retire_bad_host(id, now, out); // where a file system is missing, trials fail one after the other
        if (!retry) drain(Reason::unreachable, kept_checkpoint_message(message), now, out);
        return;
    }
    if (outcome == AttemptOutcome::unstarted) {
        commit(study::AttemptEnded{id, attempt, now, outcome, true, message}, out);
        return judge_set_up(id, message, now, out);
    }
    if (outcome == AttemptOutcome::stateless) {
        // Every trial would end so at its first pause. What it was told stands, and its result counts.
        commit(study::AttemptEnded{id, attempt, now, outcome, true, message}, out);
        return drain(Reason::stateless, stateless_message(id, message), now, out);
    }
    if (outcome == AttemptOutcome::unsaved) {
        // No fault of the trial: what it was told stands, and it trains the gap again if it ever goes on. But where one
        // cannot save, the next cannot either: the study ends, and is resumed when there is room.
        commit(study::AttemptEnded{id, attempt, now, outcome, verdict.verb != Verb::stop, message}, out);
        if (verdict.verb == Verb::stop) close(id, phase_after(verdict.reason), verdict, {}, now, out);
        if (!state.draining) drain(Reason::unsaved, message, now, out);
        return;
    }
    if (outcome == AttemptOutcome::failed || outcome == AttemptOutcome::disturbed ||
        outcome == AttemptOutcome::unreadable) {
        const bool retry = outcome != AttemptOutcome::unreadable && may_retry(id, message);
        commit(study::AttemptEnded{id, attempt, now, outcome, retry, message}, out);
        if (!retry) close(id, TrialPhase::failed, {Verb::stop, Reason::exception, 0.0, 0.0}, message, now, out);
        retire_bad_host(id, now, out);
    } else if (verdict.verb == Verb::stop) {
        // The group may have been told to pause in the same moment: the recorded verdict counts.
        commit(study::AttemptEnded{id, attempt, now, AttemptOutcome::stopped, false, message}, out);
        close(id, phase_after(verdict.reason), verdict, {}, now, out);
    } else if (outcome == AttemptOutcome::paused ||
               (outcome == AttemptOutcome::stopped && verdict.verb == Verb::pause)) {
        // (Stopped: it was told to save nothing.)
        commit(study::AttemptEnded{id, attempt, now, AttemptOutcome::paused, false, message}, out);
        retain(id, out);
        evict(out);
    } else if (!t.reported) {
        const std::string why = "the trainable ended without a single report";
        commit(study::AttemptEnded{id, attempt, now, AttemptOutcome::failed, false, why}, out);
        close(id, TrialPhase::failed, {Verb::stop, Reason::exception, 0.0, 0.0}, why, now, out);
    } else {
        commit(study::AttemptEnded{id, attempt, now, AttemptOutcome::finished, false, message}, out);
        close(id, TrialPhase::finished, {Verb::stop, Reason::trainable_done, 0.0, 0.0}, {}, now, out);
    }
}

/// Where the newest attempt got to; in deterministic mode the trial (what is trained again is not reported again).
Iteration Tuner::Impl::last_report(TrialId id) const {
    const TrialState& t = state.trials[id.value()];
    return t.slot != no_slot ? state.logical.slots()[t.slot].received : t.attempt_iteration;
}

/// An error that comes again at the same iteration with the same words would come a third time.
bool Tuner::Impl::may_retry(TrialId id, const std::string& message) const {
    const TrialState& t = state.trials[id.value()];
    if (t.phase == TrialPhase::ending && t.verdict.verb == Verb::stop) return false;
    const bool the_same = t.failures > 0 && t.failed_at == last_report(id) && t.failure == digest_of_failure(message);
    return t.failures < spec.failure.max_failures && !the_same;
}

void Tuner::Impl::reopen(TrialId id, bool from_scratch, StudyTime now, Output& out) {
    commit(study::TrialReopened{id, now, from_scratch}, out);
    if (from_scratch) release_all(id, out);
}

void Tuner::Impl::attempt_lost(TrialId id, StudyTime now, Output& out) {
    const TrialState& t = trial(id);
    const bool told_to_stop = t.phase == TrialPhase::ending && t.verdict.verb == Verb::stop;
    if (t.at_fault && !told_to_stop) {
        const std::string why = t.message;
        if (spec.deterministic) return take_end(id, AttemptOutcome::disturbed, why, now, out);
        const bool again = may_retry(id, why);
        commit(study::AttemptEnded{id, t.attempt, now, AttemptOutcome::failed, again, why}, out);
        if (!again) close(id, TrialPhase::failed, {Verb::stop, Reason::exception, 0.0, 0.0}, why, now, out);
        return;
    }
    const bool retry = t.losses < spec.failure.max_losses;
    commit(study::AttemptEnded{id, t.attempt, now, AttemptOutcome::lost, retry, {}}, out);
    if (spec.deterministic) return let_go(id, out); // if it was the last chance, the trial fails when its turn comes
    if (t.phase == TrialPhase::ending) {
        close(id, phase_after(t.verdict.reason), t.verdict, {}, now, out);
    } else if (!retry && t.phase == TrialPhase::waiting) {
        close(id, TrialPhase::failed, {Verb::stop, Reason::lost, static_cast<double>(t.losses), 0.0},
              "its ranks were lost " + std::to_string(t.losses) + " times", now, out);
    }
}

/// Only the best trial so far saves a last checkpoint, and no trial that pauses where it cannot be promoted from: any
/// other would be written to be deleted.
Verdict Tuner::Impl::as_told(TrialId id, const Verdict& verdict) const {
    Verdict told = verdict;
    if (verdict.verb == Verb::stop && state.best != id) told.verb = Verb::discard;
    const bool at_a_rung = verdict.verb == Verb::pause && verdict.reason == Reason::rung;
    if (at_a_rung && !is_result(id) && scheduler->out_of_reach(id)) told.verb = Verb::discard;
    return told;
}

void Tuner::Impl::close(TrialId id, TrialPhase phase, const Verdict& why, const std::string& message, StudyTime now,
                        Output& out) {
    commit(study::TrialClosed{id, now, phase, why.reason, why.a, why.b, message}, out);
    retain(id, out);
    if (phase != TrialPhase::failed) return;
    if (!state.draining && state.early_failures >= max_early_failures)
        drain(Reason::early_failures, message, now, out);
    else
        forgive_failures_in_a_row(now, out);
}

void Tuner::Impl::on(const study::RankGone& event, StudyTime now, Output& out) {
    const std::size_t position = event.rank.value() - 1;
    if (event.rank.value() == 0 || position >= state.workers.size() || !state.workers[position].alive) {
        ++state.stale_events;
        return;
    }
    const std::optional<TrialId> holder = state.workers[position].trial;
    commit(study::RankLost{event.rank, now, event.why, event.guilty}, out);
    if (holder) {
        const TrialState& t = trial(*holder);
        std::vector<Rank> living;
        for (const Rank rank : t.ranks) {
            if (state.workers[rank.value() - 1].alive) living.push_back(rank);
        }
        const Attempt attempt = t.attempt;
        // A living leader answers with AttemptOver once its members are out. Without it nobody speaks for the attempt:
        // its ranks are free at once, and each holds back its part in a next attempt until it has left this one.
        if (!state.workers[t.ranks.front().value() - 1].alive) attempt_lost(*holder, now, out);
        if (!living.empty()) {
            out.commands.emplace_back(study::Abandon{*holder, attempt, state.incarnation, std::move(living)});
        }
    }
    fill(now, out);
    end_if_over(now, out);
}

void Tuner::Impl::on(const study::TimerFired&, StudyTime now, Output& out) {
    if (state.draining || state.ended) return;
    if (spec.time_budget && now >= StudyTime{*spec.time_budget}) {
        drain(Reason::study_time, "study.time_budget is used up", now, out);
    } else if (state.deadline && now >= drain_at(slowest_running())) {
        end_for_want_of_time(now, out);
    } else {
        return set_timer(out);
    }
    end_if_over(now, out);
}

void Tuner::Impl::on(const study::DeadlineKnown& event, StudyTime now, Output& out) {
    // Slurm tells whole seconds, and every answer takes a while.
    constexpr Duration same = std::chrono::seconds(3);
    const auto& known = state.deadline;
    if (known == event.at || (known && event.at && *event.at - *known <= same && *known - *event.at <= same)) return;
    commit(study::DeadlineSet{now, event.at}, out);
    set_timer(out);
}

void Tuner::Impl::on(const study::StopRequested& event, StudyTime now, Output& out) {
    if (state.ended) return;
    if (!state.draining)
        drain(event.reason, event.why, now, out);
    else if (event.by_person && would_be_started_again(state) && event.why != state.drain_message)
        commit(study::DrainBegan{now, event.reason, event.why}, out); // the trials have been told
    end_if_over(now, out);
}

void Tuner::Impl::drain(Reason reason, const std::string& why, StudyTime now, Output& out) {
    if (state.draining) return;
    commit(study::DrainBegan{now, reason, why}, out);
    std::optional<TrialId> last;
    for (const auto& worker : state.workers) {
        if (!worker.alive || !worker.trial || worker.trial == last) continue;
        last = worker.trial;
        const TrialState& t = trial(*last);
        if (t.phase != TrialPhase::running || t.abandoned || t.ranks.front() != worker.info.rank) continue;
        out.commands.emplace_back(
            study::Interrupt{*last, t.attempt, state.incarnation, {Verb::pause, Reason::draining, 0.0, 0.0}});
    }
}

} // namespace ranktune::tuner
