// SPDX-License-Identifier: Apache-2.0
// The tasks of a round: each yields records until it is done. Pure.

#include <algorithm>
#include <bit>

#include "ranktune/base/error.hpp"
#include "tuner/causes.hpp"
#include "tuner/state.hpp"
#include "tuner/tuner.hpp"
#include "tuner/words.hpp"

namespace ranktune::tuner {
namespace {

/// Added to the logarithm of the number of trials. If one configuration in three fails at once, such a row occurs by
/// chance in one of half a million studies; if every second one does, in one of a thousand.
constexpr std::size_t basic_row = 10;

/// The number for Reason::study_time; other reasons have none.
double budget_seconds(const study::StudySpec& spec) {
    return spec.time_budget ? base::to_seconds(*spec.time_budget) : 0.0;
}

study::CheckpointReleased released(TrialId id, const CheckpointRef& checkpoint, bool stays = false) {
    return {id, checkpoint.path, stays, static_cast<std::uint32_t>(checkpoint.shards.size())};
}

} // namespace

std::size_t failures_to_drain(const study::StudySpec& spec, std::size_t ranks) {
    if (spec.failure.in_a_row) return *spec.failure.in_a_row;
    const std::uint32_t last = std::max(spec.num_trials, 1U) - 1;
    const std::size_t smallest = spec.resources.ranks_parameter.empty() ? spec.resources.ranks : 1;
    const std::size_t fit = std::max<std::size_t>(1, ranks / smallest);
    return basic_row + static_cast<std::size_t>(std::bit_width(last)) + groups_at_once(spec, fit);
}

std::size_t Tuner::longest_row() const { return failures_to_drain(spec_, state_.placement.alive()); }

Tuner::Next Tuner::decide(EndAttempt& task, Round& round) const {
    if (std::exchange(task.done, true) || !is_current(task.trial, task.attempt, state_.incarnation)) return {};
    return end_of(task.trial, AttemptOutcome::lost, {}, round.now);
}

Tuner::Next Tuner::decide(Retain& task, Round&) const {
    const Trial& t = state_.trials[task.trial];
    if (t.checkpoints.empty() || winds_down(t))
        return {}; // its group may be about to save; checked again when the attempt is over
    const bool hopeless = t.phase == TrialPhase::paused && scheduler_->out_of_reach(task.trial);
    const bool is_result = state_.is_result(task.trial) || may_come_to_lead(task.trial);
    const auto* checkpoint =
        state_.retention.of_no_use(task.trial, t, spec_, hopeless, is_result, scheduler_->donated(task.trial));
    if (checkpoint == nullptr) return {};
    return released(task.trial, *checkpoint);
}

Tuner::Next Tuner::decide(Release& task, Round&) const {
    const auto& all = state_.trials[task.trial].checkpoints;
    const auto found =
        task.path.empty()
            ? std::ranges::find_if(all,
                                   [&](const auto& each) { return !state_.retention.is_pinned(task.trial, each.path); })
            : std::ranges::find(all, task.path, &CheckpointRef::path);
    if (found == all.end()) return {};
    return released(task.trial, *found, task.stays);
}

Tuner::Next Tuner::decide(Evict&, Round&) const {
    const auto trial = state_.retention.to_evict(spec_, state_.trials, state_.best, [&](TrialId id) {
        const Trial& t = state_.trials[id];
        // What a deterministic study decides must not depend on when there was room.
        const bool undoes =
            admission_->decisions_repeat() && !t.takeovers.empty() && t.unsettled == 0 && t.checkpoints.size() == 1;
        return state_.front.contains(id) || undoes || (!is_final(t.phase) && scheduler_->donated(id));
    });
    if (!trial) return {};
    return released(*trial, state_.trials[*trial].checkpoints.front());
}

Tuner::Next Tuner::decide(Close& task, Round& round) const {
    if (is_final(state_.trials[task.trial].phase)) return {};
    return study::TrialClosed{task.trial, round.now, task.phase, task.why.reason, task.why.a, task.why.b, task.failure};
}

Tuner::Next Tuner::decide(Drain& task, Round& round) const {
    if (state_.draining) return {};
    return study::DrainBegan{round.now, task.reason, task.why};
}

/// When trials fail one after the other before they report, the cause lies outside them: the study ends resumably, and
/// they do not count as failed.
Tuner::Next Tuner::decide(CountFailure& task, Round& round) const {
    if (state_.draining) return {};
    const Blame& blame = state_.blame;
    if (blame.early_failures() >= max_early_failures)
        return study::DrainBegan{round.now, Reason::early_failures, describe(task.failure)};
    if (blame.in_a_row().size() >= longest_row())
        return study::DrainBegan{round.now, Reason::failures_in_a_row, blame.row_message(state_.trials, longest_row())};
    return {};
}

Tuner::Next Tuner::decide(Reopen& task, Round& round) const {
    if (state_.trials[task.trial].phase != TrialPhase::failed) return {};
    return study::TrialReopened{task.trial, round.now, task.from_scratch};
}

Tuner::Next Tuner::decide(TakeOver& task, Round&) const {
    if (!task.record) return {};
    return std::move(*std::exchange(task.record, nullptr));
}

/// The trial goes on with its own earlier state and configuration, never with a mixture.
Tuner::Next Tuner::decide(UndoExploit& task, Round& round) const {
    const Trial& t = state_.trials[task.trial];
    if (task.generation == 0 || t.generation() != task.generation || !(task.surely || is_stranded(t))) return {};
    return study::ExploitUndone{task.trial, round.now, task.generation - 1, task.why};
}

/// As at the verdict; later the trial has trained on, and the next ready point is for it.
Tuner::Next Tuner::decide(FindDonor& task, Round& round) const {
    const Trial& t = state_.trials[task.trial];
    if (state_.draining || is_final(t.phase) || t.generation() != task.generation) return {};
    const auto wanted = scheduler_->exploit_instead(task.trial);
    if (!wanted) return {};
    auto record = takeover(task.trial, t.iteration, *wanted, round.now);
    return record ? Next(*std::move(record)) : Next{};
}

bool Tuner::are_enough(const std::function<std::uint32_t(study::WorkerKind)>& beside) const {
    return std::ranges::all_of(kinds_of_workers(), [&](study::WorkerKind kind) {
        const std::uint32_t others = beside(kind);
        const bool none_of_it_goes = kind != study::WorkerKind::any && others == state_.placement.alive(kind);
        return none_of_it_goes || others >= spec_.max_ranks_per_trial(kind);
    });
}

/// The GPU first: a host whose only bad part is out of service may be good.
Tuner::Next Tuner::decide(JudgePlace& task, Round& round) const {
    const Placement& placement = state_.placement;
    const Blame& blame = state_.blame;
    if (state_.draining) return {};
    const bool bad_gpu = task.device && blame.is_bad_device(*task.device, placement);
    if (bad_gpu && are_enough([&](auto kind) { return placement.ranks_beside_device(*task.device, kind); })) {
        const DeviceState& device = placement.devices()[*task.device];
        return study::HostRetired{placement.hosts()[device.host].name, round.now,
                                  Blame::failed_on(blame.devices()[*task.device]), device.name};
    }
    if (!task.host || !blame.is_bad(*task.host, placement)) return {};
    if (!are_enough([&](auto kind) { return placement.ranks_beside(*task.host, kind); })) return {};
    const auto& failed = blame.hosts()[*task.host];
    return study::HostRetired{placement.hosts()[*task.host].name, round.now, Blame::failed_on(failed)};
}

/// While only one host (or GPU) has this problem and others can run its trials, that one may be the cause; otherwise
/// the next trial would fail the same way.
Tuner::Next Tuner::decide(JudgeSetUp& task, Round& round) const {
    if (state_.draining) return {};
    const Placement& placement = state_.placement;
    const Blame& blame = state_.blame;
    const auto& ranks = state_.trials[task.trial].attempt.ranks;
    const auto host = placement.only_host_of(ranks);
    if (host) {
        const bool elsewhere = are_enough([&](auto kind) { return placement.ranks_beside(*host, kind); });
        if (placement.hosts()[*host].retired || (elsewhere && Blame::alone_says(blame.hosts()[*host], task.trial)))
            return {};
    }
    if (const auto device = placement.device_of(ranks, task.failing)) {
        const bool elsewhere = placement.has_neighbour(*device) &&
                               are_enough([&](auto kind) { return placement.ranks_beside_device(*device, kind); });
        if (placement.devices()[*device].retired ||
            (elsewhere && Blame::alone_says(blame.devices()[*device], task.trial)))
            return {};
    }
    return study::DrainBegan{
        round.now, Reason::unstarted,
        words::not_set_up(task.trial, host ? placement.hosts()[*host].name : std::string(), task.message)};
}

Tuner::Next Tuner::decide(Convict& task, Round& round) const {
    const Trial& t = state_.trials[task.trial];
    if (is_final(t.phase)) return {};
    const bool alone = t.deaths_alone >= deaths_to_convict;
    const Failure why = alone ? Failure{words::job_died(t.deaths, t.deaths_alone)} : t.failure;
    return study::TrialClosed{task.trial, round.now, TrialPhase::failed, alone ? Reason::lost : Reason::exception, 0.0,
                              0.0,        why};
}

/// Paused and waiting trials will never run again once the study is over: they are stopped, and only the best trial and
/// the finished ones keep a checkpoint.
Tuner::Next Tuner::decide(End& task, Round& round) const {
    if (state_.ended || state_.trials.live_attempts() > 0 || waits_for_ticket()) return {};
    if (const auto until = held_until(state_); until && !state_.draining && round.now < *until) return {};
    if (!task.closing) {
        if (!state_.draining && waits_for_time(round.now)) return for_want_of_time(round.now);
        const study::StudyEnded end = verdict_on_study(round.now);
        if (!ends_for_good(end.outcome, end.reason)) return end;
        task.closing = true;
    }
    const Reason reason = state_.draining ? state_.drain_reason : Reason::not_promoted;
    for (; task.next < state_.trials.size(); ++task.next) {
        const TrialId id{task.next};
        if (!is_final(state_.trials[id].phase))
            return study::TrialClosed{id, round.now, TrialPhase::stopped, reason, budget_seconds(spec_), 0.0, {}};
        Retain retain{id};
        if (auto record = decide(retain, round)) return record;
    }
    return verdict_on_study(round.now); // closing may have changed the counts behind the exit code
}

study::StudyEnded Tuner::verdict_on_study(StudyTime now) const {
    const auto text = [&](Reason reason, double a) { return study::describe(reason, a, 0.0); };
    if (state_.draining) {
        switch (state_.drain_reason) {
            case Reason::early_failures:
                return {now, StudyOutcome::no_success, Reason::early_failures, state_.drain_message};
            case Reason::missing_metric:
            case Reason::unread_parameter:
            case Reason::stateless:
                return {now, StudyOutcome::usage, state_.drain_reason, state_.drain_message};
            case Reason::study_time:
                break;
            default:
                return {now, StudyOutcome::resumable, state_.drain_reason, state_.drain_message};
        }
    } else if (!state_.trials.waiting().empty() || state_.placement.alive() == 0) {
        // Trials wait although nothing runs: too few ranks are left.
        return {now, StudyOutcome::resumable, Reason::no_ranks, text(Reason::no_ranks, 0.0)};
    }
    const auto held = static_cast<double>(state_.trials.on_hold().size());
    if (!state_.draining && held > 0.0)
        return {now, StudyOutcome::resumable, Reason::on_hold, text(Reason::on_hold, held)};
    const bool any_success = std::any_of(state_.trials.begin(), state_.trials.end(),
                                         [](const Trial& t) { return t.reported && t.phase != TrialPhase::failed; });
    if (!any_success)
        return {now, StudyOutcome::no_success, Reason::no_trial_succeeded, text(Reason::no_trial_succeeded, 0.0)};
    if (!state_.best)
        return {now, StudyOutcome::no_success, Reason::never_finite, never_finite_sentence(state_, spec_)};
    const Reason reason = state_.draining ? Reason::study_time : Reason::study_complete;
    if (too_many_failed(state_, spec_.failure))
        return {now, StudyOutcome::too_many_failures, reason,
                (state_.draining ? text(reason, budget_seconds(spec_)) + "; " : "") +
                    failures_sentence(state_, spec_.failure)};
    return {now, StudyOutcome::ok, reason, text(reason, budget_seconds(spec_))};
}

} // namespace ranktune::tuner
