// SPDX-License-Identifier: Apache-2.0
#pragma once
// Events: everything that can happen to a study, as the core sees it. Time is data: each carries `now`.

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ranktune/space/configuration.hpp"
#include "ranktune/study/steering.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::study {

/// The job of the previous incarnation died while trials ran, without an outside cause: no signal, no preemption, no
/// failed node.
struct JobDeath {
    std::vector<CrashNote> notes; ///< empty: the cause is unknown
};

/// A head started with these workers. Attempts of an earlier incarnation are over; their trials wait again.
struct Began {
    Incarnation incarnation;
    std::vector<RankInfo> workers;                ///< every rank but the head, ascending
    std::string wall_time;                        ///< RFC 3339, for people; decides nothing
    std::optional<JobDeath> death = std::nullopt; ///< how the previous incarnation died; nullopt: it did not
};

/// The metric in which a report says how many seconds of its iteration training waited for data.
inline constexpr std::string_view data_wait_metric = "data_wait";
/// How many of these seconds it waited for what, as far as that is known.
inline constexpr std::string_view disk_wait_metric = "data_wait/disk";
inline constexpr std::string_view decode_wait_metric = "data_wait/decode";
inline constexpr std::string_view map_wait_metric = "data_wait/map";

/// A trial finished an iteration. One per iteration of an attempt, ascending.
struct ReportArrived {
    TrialId trial;
    AttemptId attempt;
    Incarnation incarnation;
    Iteration iteration = 0;
    double seconds = 0.0; ///< training time of the trial so far, all attempts, without pauses
    std::vector<NamedMetric> metrics;
    bool ends = false; ///< the attempt ends here by itself: no answer is awaited
    static void fields(auto&& each, auto& r) {
        each(r.trial, r.attempt, r.incarnation, r.iteration, r.seconds, r.metrics, r.ends);
    }
};

/// A checkpoint of a trial is written, synced and renamed to its final name.
struct CheckpointSaved {
    TrialId trial;
    AttemptId attempt;
    Incarnation incarnation;
    CheckpointRef checkpoint;
    static void fields(auto&& each, auto& r) { each(r.trial, r.attempt, r.incarnation, r.checkpoint); }
};

/// All ranks of an attempt are free again.
struct AttemptOver {
    TrialId trial;
    AttemptId attempt;
    Incarnation incarnation;
    AttemptOutcome outcome = AttemptOutcome::finished;
    Failure failure; ///< what was thrown, on which rank; empty unless failed
    static void fields(auto&& each, auto& r) { each(r.trial, r.attempt, r.incarnation, r.outcome, r.failure); }
};

/// A worker rank is gone for the rest of this incarnation. An attempt that used it is lost; its other ranks come back
/// with the AttemptOver of their leader, or at once if the leader died.
struct RankGone {
    Rank rank;
    std::string why;
    bool guilty = false; ///< user code on this rank was at fault (it hung): a failure of the trial, not a loss
};

/// The time that the core named (Tuner::timer) has come.
struct TimerFired {};

/// Someone wants the study to end early but resumably: signal, walltime, `ranktune stop`. Trials checkpoint at their
/// next report.
struct StopRequested {
    std::string why;                  ///< in words; names `by`, if there is one
    Reason reason = Reason::draining; ///< or unread_parameter: then the study is over for good
    /// A person is recorded even if the study drains already for its deadline or a signal from Slurm.
    Asker by = Asker::none;
};

/// When the job ends, minus the time that the driver needs for itself; nullopt: no limit, or unknown. For the current
/// incarnation, or the one that begins; sent again whenever the driver asked Slurm.
struct DeadlineKnown {
    std::optional<StudyTime> at;
};

/// The answer to the command Prepare.
struct Prepared {
    std::uint64_t ticket = 0;
    std::optional<space::Configuration> configuration; ///< nullopt: it failed
    std::string why = {};                              ///< why it failed
    SuggestionBasis basis = {};                        ///< of a configuration
};

/// A user steers the study. The driver has asked `Tuner::objection` first, and answers a refused request itself: only
/// accepted requests are recorded. One that was recorded before is stale.
struct SteerAsked {
    std::string who; ///< "ada@login1"
    Steering ask;
};

/// What can happen.
using EventBody = std::variant<Began, ReportArrived, CheckpointSaved, AttemptOver, RankGone, TimerFired, StopRequested,
                               DeadlineKnown, Prepared, SteerAsked>;

struct Event {
    StudyTime now; ///< never earlier than that of the event before
    EventBody body;
};

} // namespace ranktune::study
