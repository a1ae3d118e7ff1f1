// SPDX-License-Identifier: Apache-2.0
// The tasks of a round: each yields records until it is done. Pure.

#include <algorithm>
#include <bit>

#include "ranktune/base/error.hpp"
#include "study/printed_values.hpp"
#include "tuner/decide.hpp"
#include "tuner/rules/causes.hpp"
#include "tuner/rules/limits.hpp"
#include "tuner/rules/words.hpp"
#include "tuner/state.hpp"

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

/// A range of samples that ends without its predictions has failed, whoever ended it: its rows are missing.
TrialPhase phase_of_end(const Core& core, TrialPhase phase) {
    return study::predicts(core.spec) && phase == TrialPhase::stopped ? TrialPhase::failed : phase;
}

std::size_t longest_row(const Core& core) { return failures_to_drain(core.spec, core.state.placement.alive()); }

bool are_enough(const Core& core, const std::function<std::uint32_t(study::WorkerKind)>& beside) {
    return std::ranges::all_of(kinds_of_workers(core), [&](study::WorkerKind kind) {
        const std::uint32_t others = beside(kind);
        const bool none_of_it_goes = kind != study::WorkerKind::any && others == core.state.placement.alive(kind);
        return none_of_it_goes || others >= core.spec.max_ranks_per_trial(kind);
    });
}

bool is_result(const Core& core, TrialId id) {
    return core.spec.checkpoint.every_trial || core.state.is_result(id) || may_come_to_lead(core, id);
}

/// The trial is over, and keeps its checkpoint only for its failed task.
bool is_left_over(const Core& core, TrialId id) {
    const SideWork* work = core.state.side.find({study::SideTask::Kind::after_trial, id});
    return work != nullptr && work->phase == SideWork::Phase::failed && !is_result(core, id);
}

study::StudyEnded verdict_on_study(const Core& core, StudyTime now) {
    const auto text = [&](Reason reason, double a) { return study::describe(reason, a, 0.0); };
    const auto failed = [&](study::SideTask::Kind kind) {
        const SideWork* work = core.state.side.find({kind, {}});
        return work != nullptr && work->phase == SideWork::Phase::failed ? work : nullptr;
    };
    if (const SideWork* before = failed(study::SideTask::Kind::before))
        return {now, StudyOutcome::no_success, Reason::before_failed, words::before_failed(before->failure)};
    if (core.state.draining) {
        switch (core.state.drain_reason) {
            case Reason::early_failures:
            case Reason::before_failed:
                return {now, StudyOutcome::no_success, core.state.drain_reason, core.state.drain_message};
            case Reason::missing_metric:
            case Reason::unread_parameter:
            case Reason::stateless:
                return {now, StudyOutcome::usage, core.state.drain_reason, core.state.drain_message};
            default:
                if (is_limit(core.state.drain_reason)) {
                    if (core.state.placement.alive() > 0 || core.state.side.waiting().empty()) break;
                    return {now, StudyOutcome::resumable, Reason::no_ranks, text(Reason::no_ranks, 0.0)};
                }
                return {now, StudyOutcome::resumable, core.state.drain_reason, core.state.drain_message};
        }
    } else if (!core.state.trials.waiting().empty() || core.state.placement.alive() == 0) {
        // Trials wait although nothing runs: too few ranks are left.
        return {now, StudyOutcome::resumable, Reason::no_ranks, text(Reason::no_ranks, 0.0)};
    }
    const auto held = static_cast<double>(core.state.trials.on_hold().size());
    if (!core.state.draining && held > 0.0)
        return {now, StudyOutcome::resumable, Reason::on_hold, text(Reason::on_hold, held)};
    const bool silent = core.spec.may_be_silent;
    const bool any_success = std::ranges::any_of(core.state.trials, [silent](const Trial& t) {
        return (silent || t.reported) && t.phase != TrialPhase::failed;
    });
    if (!any_success)
        return {now, StudyOutcome::no_success, Reason::no_trial_succeeded, text(Reason::no_trial_succeeded, 0.0)};
    if (!core.state.best && !silent && !study::compares_nothing(core.spec))
        return {now, StudyOutcome::no_success, Reason::never_finite, never_finite_sentence(core.state, core.spec)};
    const Reason reason = core.state.draining ? core.state.drain_reason : Reason::study_complete;
    const bool by_count = core.state.draining && reason != Reason::study_time; // then the message has the numbers
    const std::string why = by_count ? core.state.drain_message : text(reason, budget_seconds(core.spec));
    if (too_many_failed(core.state, core.spec.failure))
        return {now, StudyOutcome::too_many_failures, reason,
                (core.state.draining ? why + "; " : "") + failures_sentence(core.state, core.spec.failure)};
    if (const std::uint64_t missing = ranges_not_begun(core.state, core.spec); missing > 0)
        return {now, StudyOutcome::too_many_failures, reason,
                why + "; " + std::to_string(missing) + (missing == 1 ? " range" : " ranges") + " of samples not begun"};
    if (const SideWork* after = failed(study::SideTask::Kind::after))
        return {now, StudyOutcome::runtime_error, Reason::after_failed, words::after_failed(after->failure)};
    return {now, StudyOutcome::ok, reason, why};
}

} // namespace

std::size_t failures_to_drain(const study::StudySpec& spec, std::size_t ranks) {
    if (spec.failure.in_a_row) return *spec.failure.in_a_row;
    const std::uint32_t last = std::max(spec.num_trials, 1U) - 1;
    const std::size_t smallest = spec.resources.ranks_parameter.empty() ? spec.resources.ranks : 1;
    const std::size_t fit = std::max<std::size_t>(1, ranks / smallest);
    return basic_row + static_cast<std::size_t>(std::bit_width(last)) + groups_at_once(spec, fit);
}

Next decide(const Core& core, EndAttempt& task, Round& round) {
    if (std::exchange(task.done, true) || !is_current(core, task.trial, task.attempt, core.state.incarnation))
        return {};
    return end_of(core, task.trial, AttemptOutcome::lost, {}, round.now);
}

Next decide(const Core& core, Retain& task, Round&) {
    const Trial& t = core.state.trials[task.trial];
    if (t.checkpoints.empty() || winds_down(t))
        return {}; // its group may be about to save; checked again when the attempt is over
    const bool hopeless = t.phase == TrialPhase::paused && core.scheduler->out_of_reach(task.trial);
    const bool is_read = core.spec.evaluates_checkpoints() && core.state.side.lacks(task.trial);
    const auto* checkpoint = core.state.retention.of_no_use(
        task.trial, t, core.spec, hopeless, is_result(core, task.trial), is_read, core.scheduler->donated(task.trial));
    if (checkpoint == nullptr) return {};
    return released(task.trial, *checkpoint);
}

Next decide(const Core& core, Release& task, Round&) {
    const auto& all = core.state.trials[task.trial].checkpoints;
    const auto found =
        task.path.empty()
            ? std::ranges::find_if(
                  all, [&](const auto& each) { return !core.state.retention.is_pinned(task.trial, each.path); })
            : std::ranges::find(all, task.path, &CheckpointRef::path);
    if (found == all.end()) return {};
    return released(task.trial, *found, task.stays);
}

Next decide(const Core& core, Evict&, Round&) {
    const auto trial = core.state.retention.to_evict(core.spec, core.state.trials, core.state.best, [&](TrialId id) {
        const Trial& t = core.state.trials[id];
        // What a deterministic study decides must not depend on when there was room.
        const bool undoes =
            core.admission->decisions_repeat() && !t.takeovers.empty() && t.unsettled == 0 && t.checkpoints.size() == 1;
        const bool stays = is_final(t.phase) ? !is_left_over(core, id) : core.state.front.contains(id) || undoes;
        return stays || core.scheduler->donated(id).has_value();
    });
    if (!trial) return {};
    return released(*trial, core.state.trials[*trial].checkpoints.front());
}

Next decide(const Core& core, Close& task, Round& round) {
    if (is_final(core.state.trials[task.trial].phase)) return {};
    return study::TrialClosed{task.trial, round.now,   phase_of_end(core, task.phase), task.why.reason, task.why.a,
                              task.why.b, task.failure};
}

Next decide(const Core& core, Drain& task, Round& round) {
    if (core.state.draining) return {};
    return study::DrainBegan{round.now, task.reason, task.why};
}

/// When trials fail one after the other before they report, the cause lies outside them: the study ends resumably, and
/// they do not count as failed.
Next decide(const Core& core, CountFailure& task, Round& round) {
    if (core.state.draining) return {};
    const Blame& blame = core.state.blame;
    if (blame.early_failures() >= std::max<std::uint64_t>(max_early_failures, core.spec.failure.in_a_row.value_or(0)))
        return study::DrainBegan{round.now, Reason::early_failures, describe(task.failure)};
    if (blame.in_a_row().size() >= longest_row(core))
        return study::DrainBegan{round.now, Reason::failures_in_a_row,
                                 blame.row_message(core.state.trials, longest_row(core))};
    return {};
}

Next decide(const Core& core, Reopen& task, Round& round) {
    if (core.state.trials[task.trial].phase != TrialPhase::failed) return {};
    return study::TrialReopened{task.trial, round.now, task.from_scratch};
}

Next decide(const Core&, TakeOver& task, Round&) {
    if (!task.record) return {};
    return std::move(*std::exchange(task.record, nullptr));
}

/// The trial goes on with its own earlier state and configuration, never with a mixture.
Next decide(const Core& core, UndoExploit& task, Round& round) {
    const Trial& t = core.state.trials[task.trial];
    if (task.generation == 0 || t.generation() != task.generation || !(task.surely || is_stranded(t))) return {};
    return study::ExploitUndone{task.trial, round.now, task.generation - 1, task.why};
}

/// As at the verdict; later the trial has trained on, and the next ready point is for it.
Next decide(const Core& core, FindDonor& task, Round& round) {
    const Trial& t = core.state.trials[task.trial];
    if (core.state.draining || is_final(t.phase) || t.generation() != task.generation) return {};
    const auto wanted = core.scheduler->exploit_instead(task.trial);
    if (!wanted) return {};
    auto record = takeover(core, task.trial, t.iteration, *wanted, round.now);
    return record ? Next(*std::move(record)) : Next{};
}

/// The GPU first: a host whose only bad part is out of service may be good.
Next decide(const Core& core, JudgePlace& task, Round& round) {
    const Placement& placement = core.state.placement;
    const Blame& blame = core.state.blame;
    if (core.state.draining) return {};
    const bool bad_gpu = task.device && blame.is_bad_device(*task.device, placement);
    if (bad_gpu && are_enough(core, [&](auto kind) { return placement.ranks_beside_device(*task.device, kind); })) {
        const DeviceState& device = placement.devices()[*task.device];
        return study::HostRetired{placement.hosts()[device.host].name, round.now,
                                  Blame::failed_on(blame.devices()[*task.device]), device.name};
    }
    if (!task.host || !blame.is_bad(*task.host, placement)) return {};
    if (!are_enough(core, [&](auto kind) { return placement.ranks_beside(*task.host, kind); })) return {};
    const auto& failed = blame.hosts()[*task.host];
    return study::HostRetired{placement.hosts()[*task.host].name, round.now, Blame::failed_on(failed)};
}

/// While only one host (or GPU) has this problem and others can run its trials, that one may be the cause; otherwise
/// the next trial would fail the same way.
Next decide(const Core& core, JudgeSetUp& task, Round& round) {
    if (core.state.draining) return {};
    const Placement& placement = core.state.placement;
    const Blame& blame = core.state.blame;
    const auto& ranks = core.state.trials[task.trial].attempt.ranks;
    const auto host = placement.only_host_of(ranks);
    if (host) {
        const bool elsewhere = are_enough(core, [&](auto kind) { return placement.ranks_beside(*host, kind); });
        if (placement.hosts()[*host].retired || (elsewhere && Blame::alone_says(blame.hosts()[*host], task.trial)))
            return {};
    }
    if (const auto device = placement.device_of(ranks, task.failing)) {
        const bool elsewhere = placement.has_neighbour(*device) && are_enough(core, [&](auto kind) {
                                   return placement.ranks_beside_device(*device, kind);
                               });
        if (placement.devices()[*device].retired ||
            (elsewhere && Blame::alone_says(blame.devices()[*device], task.trial)))
            return {};
    }
    return study::DrainBegan{
        round.now, Reason::unstarted,
        words::not_set_up(task.trial, host ? placement.hosts()[*host].name : std::string(), task.message)};
}

Next decide(const Core& core, Convict& task, Round& round) {
    const Trial& t = core.state.trials[task.trial];
    if (is_final(t.phase)) return {};
    const bool alone = t.deaths_alone >= deaths_to_convict;
    const Failure why = alone ? Failure{words::job_died(t.deaths, t.deaths_alone)} : t.failure;
    return study::TrialClosed{task.trial, round.now, TrialPhase::failed, alone ? Reason::lost : Reason::exception, 0.0,
                              0.0,        why};
}

/// Paused and waiting trials will never run again once the study is over: they are stopped, and only the best trial and
/// the finished ones keep a checkpoint.
Next decide(const Core& core, End& task, Round& round) {
    if (core.state.ended || core.state.trials.live_attempts() > 0 || new_trial_waits(core)) return {};
    if (!core.state.side.running().empty()) return {};
    if (const auto until = held_until(core.state); until && !core.state.draining && round.now < *until) return {};
    if (!task.closing) {
        if (!core.state.draining && waits_for_time(core, round.now)) return for_want_of_time(core, round.now);
        const study::StudyEnded end = verdict_on_study(core, round.now);
        if (!ends_for_good(end.outcome, end.reason)) return end;
        task.closing = true;
    }
    const Reason reason = core.state.draining ? core.state.drain_reason : Reason::not_promoted;
    for (; task.next < core.state.trials.size(); ++task.next) {
        const TrialId id{task.next};
        if (!is_final(core.state.trials[id].phase))
            return study::TrialClosed{
                id, round.now, phase_of_end(core, TrialPhase::stopped), reason, budget_seconds(core.spec), 0.0, {}};
        Retain retain{id};
        if (auto record = decide(core, retain, round)) return record;
    }
    study::StudyEnded end =
        verdict_on_study(core, round.now); // closing may have changed the counts behind the exit code
    if (Next first = next_side(core, round.now)) return first; // of the best trial, closed just now
    if (Next first = after(core, end, round.now)) return first;
    return end;
}

} // namespace ranktune::tuner
