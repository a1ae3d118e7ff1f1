// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decisions: functions of a study that yield records and commands, and change nothing.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ranktune/study/command.hpp"
#include "ranktune/study/event.hpp"
#include "tuner/core.hpp"
#include "tuner/round.hpp"
#include "tuner/rules/outcomes.hpp"

namespace ranktune::tuner {

// ---- take.cpp, steer.cpp: events into their own records.
Next take(const Core& core, const study::Began& event, Round& round);
Next take(const Core& core, const study::ReportArrived& event, Round& round);
Next take(const Core& core, const study::CheckpointSaved& event, Round& round);
Next take(const Core& core, const study::AttemptOver& event, Round& round);
Next take(const Core& core, const study::RankGone& event, Round& round);
Next take(const Core& core, const study::TimerFired& event, Round& round);
Next take(const Core& core, const study::StopRequested& event, Round& round);
Next take(const Core& core, const study::DeadlineKnown& event, Round& round);
Next take(const Core& core, const study::Prepared& event, Round& round);
Next take(const Core& core, const study::SteerAsked& event, Round& round);
/// Whether a message of this attempt is about the one that holds the trial's ranks.
[[nodiscard]] bool is_current(const Core& core, TrialId id, AttemptId attempt, Incarnation incarnation);
[[nodiscard]] Told told(const Core& core, TrialId id);
[[nodiscard]] study::AttemptEnded end_of(const Core& core, TrialId id, AttemptOutcome outcome, const Failure& failure,
                                         StudyTime now);
[[nodiscard]] study::DrainBegan for_want_of_time(const Core& core, StudyTime now);
/// See Tuner::objection.
[[nodiscard]] std::string objection(const Core& core, const study::Steering& ask);

// ---- side.cpp: side tasks, by study::unit_of.
[[nodiscard]] Next take_side(const Core& core, const study::ReportArrived& event, Round& round);
[[nodiscard]] Next take_side(const Core& core, const study::AttemptOver& event, Round& round);
/// The next one that is due gets a rank that trials leave, or is over without one. nullopt: none.
[[nodiscard]] Next next_side(const Core& core, StudyTime now);
/// The study would end like this: `after` starts first. nullopt: there is none, it is over, or there are no results.
[[nodiscard]] Next after(const Core& core, const study::StudyEnded& end, StudyTime now);
/// A failed task of a trial waits again.
[[nodiscard]] study::SideEnded reopened_side(const Core& core, const study::SideTask& task, StudyTime now);
/// What the attempt of a side task is owed: to start, and to stop if the study stops early.
void tell_side(const Core& core, TrialId unit, std::vector<study::Command>& commands);
void interrupt_side(const Core& core, TrialId unit, std::vector<study::Command>& commands);
/// Whether the trial, if it was closed for this reason, is followed by a task. One that the end of the study stopped on
/// its way is not, unless it leads.
[[nodiscard]] bool is_evaluated(const Core& core, TrialId id, Reason reason);

// ---- judge.cpp: what an admitted fact means.
[[nodiscard]] Next judged(const Core& core, Fact& fact, Round& round);
[[nodiscard]] study::Reported judged(const Core& core, ReportFact&& fact, Round& round);
[[nodiscard]] std::optional<study::Exploited> takeover(const Core& core, TrialId id, Iteration iteration,
                                                       const schedulers::Exploit& wanted, StudyTime now);
[[nodiscard]] Iteration next_decision_point(const Core& core, TrialId id, Iteration current);
[[nodiscard]] std::vector<std::string> metric_names(const Core& core, const study::Reported& report);

// ---- follow.cpp: the tasks that follow from a record.
void add_tasks(const Core& core, const study::Record& record, Round& round);

// ---- tasks.cpp, fill.cpp: the next record of a task.
Next decide(const Core& core, EndAttempt& task, Round& round);
Next decide(const Core& core, Retain& task, Round& round);
Next decide(const Core& core, Release& task, Round& round);
Next decide(const Core& core, Evict& task, Round& round);
Next decide(const Core& core, Close& task, Round& round);
Next decide(const Core& core, Drain& task, Round& round);
Next decide(const Core& core, CountFailure& task, Round& round);
Next decide(const Core& core, Reopen& task, Round& round);
Next decide(const Core& core, TakeOver& task, Round& round);
Next decide(const Core& core, UndoExploit& task, Round& round);
Next decide(const Core& core, FindDonor& task, Round& round);
Next decide(const Core& core, JudgePlace& task, Round& round);
Next decide(const Core& core, JudgeSetUp& task, Round& round);
Next decide(const Core& core, Convict& task, Round& round);
Next decide(const Core& core, EndSide& task, Round& round);
Next decide(const Core& core, End& task, Round& round);
Next decide(const Core& core, Fill& task, Round& round);

// ---- fill.cpp: new work, ranks and time.
/// The next trial waits for its ticket, and takes no stopgap.
[[nodiscard]] bool new_trial_waits(const Core& core);
/// Deterministic study: so it is, and everything else waits for that trial.
[[nodiscard]] bool waits_for_ticket(const Core& core);
[[nodiscard]] std::span<const WorkerKind> kinds_of_workers(const Core& core);
/// After a change of its configuration.
void choose_workers(const Core& core, Trial& t);
/// The iteration up to which a trial is trained: its next rung if trials pause at rungs, otherwise the end. Null: a new
/// trial.
[[nodiscard]] Iteration trained_up_to(const Core& core, const Trial* trial);
/// Iterations that an attempt trains before its work is saved.
[[nodiscard]] Iteration stretch_of(const Core& core, TrialId id);
/// Nothing runs although there is work: only the deadline prevents it.
[[nodiscard]] bool waits_for_time(const Core& core, StudyTime now);
[[nodiscard]] double slowest_running(const Core& core);
[[nodiscard]] study::SuggestionBasis basis_of(const Core& core, const Origin& origin);
[[nodiscard]] std::optional<StudyTime> timer(const Core& core);

// ---- commands.cpp: what groups are owed, by the state.
/// What was sent to the group of an attempt. Not part of the state: the same function of the state yields what is owed,
/// live and in pending_commands().
struct Sent {
    bool start = false;
    Iteration decided = 0;     ///< newest report whose verdict it got
    Reason end = Reason::none; ///< why it was told to end
    std::size_t left = 0;      ///< of its ranks, when they were told to give up
    bool over = false;         ///< nothing: it ends by itself, and at most is told to give up
};
/// What the group of the trial's attempt is owed, without what was `sent`: to give up, to start, the verdict that it
/// waits for, to pause or to stop. Requires that the attempt is live.
void tell(const Core& core, TrialId id, Sent& sent, std::vector<study::Command>& commands);
/// Calls `tell` for each trial that holds ranks, in the order of its leader.
void tell_all(const Core& core, const std::function<void(TrialId)>& tell);
/// See Tuner::pending_commands.
[[nodiscard]] std::vector<study::Command> pending_commands(const Core& core);
/// Whether the trial may come to lead by the mean of its repetitions.
[[nodiscard]] bool may_come_to_lead(const Core& core, TrialId id);

} // namespace ranktune::tuner
