// SPDX-License-Identifier: Apache-2.0
// Side tasks: when they start, what their attempts report, and what their ends mean. They take the ranks that trials
// leave, and what they find out decides nothing.

#include "tuner/apply.hpp"
#include "tuner/decide.hpp"
#include "tuner/rules/limits.hpp"
#include "tuner/rules/words.hpp"

namespace ranktune::tuner {
namespace {

using SideKind = SideTask::Kind;

Next side_started(const Core& core, const SideWork& work, std::optional<CheckpointRef> checkpoint, StudyTime now) {
    const auto rank = core.state.placement.place_aside();
    if (!rank) return {};
    return study::SideStarted{work.task, work.attempt.next(), now, *rank, std::move(checkpoint)};
}

study::SideEnded side_end(const Core& core, const SideWork& work, AttemptOutcome outcome, const Failure& failure,
                          StudyTime now) {
    study::SideEnded end{work.task, work.attempt, now, outcome, false, {failure.message}}; // it has one rank
    switch (outcome) {
        case AttemptOutcome::finished:
            end.failure = {};
            return end;
        case AttemptOutcome::paused: // told to stop before it began
        case AttemptOutcome::stopped:
        case AttemptOutcome::lost:
            end.outcome = AttemptOutcome::lost;
            end.retry = work.losses < core.spec.failure.max_losses;
            break;
        case AttemptOutcome::unreadable:
        case AttemptOutcome::oversized:
        case AttemptOutcome::permanent:
            break;
        default:
            end.retry = work.failures < core.spec.failure.max_failures;
            break;
    }
    end.retry = end.retry || stops_early(core.state);
    return end;
}

study::StartTrial side_command(const Core& core, const SideWork& work) {
    study::StartTrial start{.trial = unit_of(work.task),
                            .attempt = work.attempt,
                            .incarnation = core.state.incarnation,
                            .ranks = {work.rank},
                            .configuration = {},
                            .from = {},
                            .holders = {}};
    if (work.checkpoint) start.from = *work.checkpoint;
    if (work.task.kind != SideKind::after_trial) return start;
    const Trial& t = core.state.trials[work.task.trial];
    start.configuration =
        work.checkpoint ? *origins_of(t, takeover_of(t, work.checkpoint->generation)).configuration : t.configuration;
    return start;
}

} // namespace

bool is_evaluated(const Core& core, TrialId id, Reason reason) {
    if (core.spec.after_trial.command.empty() || reason == Reason::cancelled) return false;
    return core.state.leads(id) || !(reason == Reason::not_promoted || is_limit(reason));
}

Next take_side(const Core& core, const study::ReportArrived& event, Round& round) {
    const SideWork* work = core.state.side.current(event.trial, event.attempt);
    round.stale = work == nullptr || event.incarnation != core.state.incarnation;
    if (round.stale) return {};
    return study::SideReported{work->task, event.attempt, round.now, event.metrics};
}

Next take_side(const Core& core, const study::AttemptOver& event, Round& round) {
    const SideWork* work = core.state.side.current(event.trial, event.attempt);
    round.stale = work == nullptr || event.incarnation != core.state.incarnation;
    if (round.stale) return {};
    return side_end(core, *work, event.outcome, event.failure, round.now);
}

Next decide(const Core& core, EndSide& task, Round& round) {
    const SideWork* work = core.state.side.current(task.unit, task.attempt);
    if (work == nullptr) return {};
    return side_end(core, *work, task.guilty ? AttemptOutcome::failed : AttemptOutcome::lost, {task.why}, round.now);
}

study::SideEnded reopened_side(const Core& core, const SideTask& task, StudyTime now) {
    return {task, core.state.side.all().at(unit_of(task)).attempt, now, AttemptOutcome::failed, true, {}};
}

Next next_side(const Core& core, StudyTime now) {
    const SideTasks& side = core.state.side;
    if (side.waiting().empty() || stops_early(core.state)) return {};
    for (const TrialId unit : side.waiting()) {
        const SideWork& work = side.all().at(unit);
        if (work.task.kind == SideKind::after) continue; // see `after`
        if (work.task.kind == SideKind::before) return side_started(core, work, {}, now);
        const Trial& t = core.state.trials[work.task.trial];
        if (!is_final(t.phase) || t.attempt.live) continue; // reopened, or about to save
        if (!core.spec.evaluates_checkpoints()) return side_started(core, work, {}, now);
        const CheckpointRef* checkpoint = best_checkpoint(t, core.spec.objective);
        if (checkpoint == nullptr)
            return study::SideEnded{
                work.task, work.attempt, now, AttemptOutcome::failed, false, {words::nothing_to_evaluate()}};
        return side_started(core, work, *checkpoint, now);
    }
    return {};
}

Next after(const Core& core, const study::StudyEnded& end, StudyTime now) {
    const SideWork* work = core.state.side.find({SideKind::after, {}});
    const bool has_results = end.outcome == StudyOutcome::ok || end.outcome == StudyOutcome::too_many_failures;
    if (work == nullptr || work->phase != SideWork::Phase::waiting || !has_results) return {};
    return side_started(core, *work, {}, now);
}

void tell_side(const Core& core, TrialId unit, std::vector<study::Command>& commands) {
    const SideWork& work = core.state.side.all().at(unit);
    commands.emplace_back(side_command(core, work));
    if (stops_early(core.state)) interrupt_side(core, unit, commands);
}

void interrupt_side(const Core& core, TrialId unit, std::vector<study::Command>& commands) {
    commands.emplace_back(study::Interrupt{unit,
                                           core.state.side.all().at(unit).attempt,
                                           core.state.incarnation,
                                           {Verb::pause, Reason::draining, 0.0, 0.0}});
}

// ---- what records change

void apply_one(Core& core, const study::SideStarted& r) {
    core.state.side.begin(r);
    core.state.placement.take_aside(unit_of(r.task), r.rank);
}

void apply_one(Core& core, const study::SideReported& r) { core.state.side.report(r); }

void apply_one(Core& core, const study::SideEnded& r) {
    if (reopens(core.state, r)) {
        core.state.ended = false;
        core.state.side.reopen(r.task);
        core.state.side.study_goes_on();
        return;
    }
    const SideWork* running = core.state.side.current(unit_of(r.task), r.attempt);
    if (running != nullptr) core.state.placement.release_aside(running->rank);
    core.state.side.end(r, !stops_early(core.state));
    if (r.task.kind == SideKind::after_trial && !r.retry) core.state.retention.doubt(r.task.trial);
}

} // namespace ranktune::tuner
