// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of a study: what `apply` keeps, for the core itself and for views (status, best, end screen).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/huge_pages.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/spec.hpp"
#include "ranktune/study/vocabulary.hpp"
#include "tuner/logical.hpp"

namespace ranktune::tuner {

using namespace study; // the vocabulary: TrialId, Attempt, TrialPhase, ... (private header)

inline constexpr std::uint32_t no_slot = 0xFFFFFFFF;

/// One trial. What every report touches comes first, so that a report meets one or two cache lines.
struct TrialState {
    TrialPhase phase = TrialPhase::waiting;
    bool reported = false;
    bool abandoned = false;          ///< its ranks were told to give up (a member was lost)
    bool at_fault = false;           ///< and that by its own fault: its code hung
    bool silent = true;              ///< no report of the newest attempt yet
    bool unheard = true;             ///< no report has counted since it began, or began again
    bool winding = false;            ///< deterministic: left its slot, but the ranks of its attempt are not back yet
    Reason closed_by = Reason::none; ///< here, as `overtaken` below, for want of space between the others
    Attempt attempt;                 ///< newest; zero: never started
    std::uint32_t overtaken = 0;     ///< by later trials, while it waits for ranks
    Iteration iteration = 0;         ///< highest one accepted; not taken back when an attempt starts from a checkpoint
    Iteration attempt_iteration = 0; ///< last one of the newest attempt (where it started, before its first report)
    Iteration decision_point = 0;    ///< iteration at which the newest attempt waits for a verdict
    Iteration unsaved = 0;           ///< iterations that its newest pause gave up for want of a checkpoint
    double seconds = 0.0;            ///< training time up to `iteration`
    double pace = 0.0;               ///< seconds that an iteration may take; 0: nobody knows
    StudyTime since;                 ///< of the newest attempt: its start, then its last report
    double last = 0.0;               ///< objective of the last report; NaN before the first
    double best = 0.0;               ///< best finite objective; NaN: none
    Iteration best_iteration = 0;
    Verdict verdict; ///< last one; while ending or paused: the one it obeys

    std::uint32_t wanted_ranks = 1;
    std::uint32_t bracket = 0;
    std::uint32_t slot = no_slot;   ///< deterministic: its place in logical time
    std::uint32_t losses = 0;       ///< attempts lost with their ranks
    std::uint32_t failures = 0;     ///< attempts that ended with an exception
    Iteration failed_at = 0;        ///< last report of the newest of those
    std::uint64_t failure = 0;      ///< digest of its message, without the rank: is the next one the same?
    std::uint32_t deaths = 0;       ///< of the job while it ran, since it last got further than at one of them
    std::uint32_t deaths_alone = 0; ///< of these, while it was tried as a suspect
    Iteration died_at = 0;          ///< highest iteration it had reported at one of them
    Iteration target = 0;           ///< next iteration at which its scheduler compares it
    double closed_a = 0.0;
    double closed_b = 0.0;
    StudyTime created;
    StudyTime started;                      ///< first attempt
    StudyTime ended;                        ///< when it reached a final phase
    std::vector<Rank> ranks;                ///< of the newest attempt; kept after it ended, for views
    std::vector<CheckpointRef> checkpoints; ///< committed, not released, in the order of their commits
    std::vector<double> window;             ///< last results of the plateau stopper's metric, oldest first
    std::string message;                    ///< of the failure
    space::Configuration configuration;
};

/// Of a trial's checkpoints the one to use: the best by the objective, the newest of equal ones; null: it has none.
[[nodiscard]] const CheckpointRef* best_checkpoint(const TrialState& trial, Mode mode);
/// Whether worker ranks are taken by this trial.
[[nodiscard]] inline bool holds_ranks(const TrialState& trial) {
    return trial.phase == TrialPhase::running || trial.phase == TrialPhase::ending || trial.winding;
}

struct WorkerState {
    RankInfo info;
    bool alive = true;
    std::optional<TrialId> trial; ///< holds this rank
    std::uint32_t host = 0;       ///< position in State::hosts
};

/// A node of this incarnation.
struct HostState {
    std::string name;
    bool retired = false; ///< gets no more trials
    bool well = false;    ///< a trial has reported from here
    struct Failure {
        TrialId trial;
        std::uint64_t words = 0; ///< digest of what was said, without numbers
        bool unstarted = false;  ///< ranktune could not set the attempt up
    };
    /// In a row, in words that no other host has said: of different trials, and every attempt that could not be set up.
    std::vector<Failure> failed;
};

/// What failures said in this incarnation: what comes from several hosts is no host's fault.
struct FailureWords {
    std::uint64_t digest = 0;
    std::uint32_t host = 0; ///< that said it first
    bool elsewhere = false; ///< another one has said it too
};

/// By TrialId. Trials are mostly met again long after all caches have forgotten them: huge pages make at least the way
/// through the page tables short.
using TrialTable = std::vector<TrialState, base::LargeAllocator<TrialState>>;

struct State {
    std::string uuid;
    std::string version;
    std::string wall_time; ///< when this incarnation began
    Incarnation incarnation;
    StudyTime now;                    ///< of the last record
    StudyTime began;                  ///< of this incarnation
    std::vector<std::string> metrics; ///< position is the MetricId
    TrialTable trials;                ///< position is the TrialId
    std::vector<WorkerState> workers; ///< ascending rank
    std::vector<HostState> hosts;     ///< in the order of their first rank
    std::vector<FailureWords> words;  ///< at most max_failure_words
    std::uint64_t reports = 0;
    std::uint64_t records = 0;
    std::uint64_t iterations = 0;     ///< trained in all, repeated ones included
    std::uint64_t count[7] = {};      ///< trials by phase
    std::uint64_t early_failures = 0; ///< trials that failed before a first report, while no trial has reported
    std::vector<TrialId> in_a_row;    ///< failed unheard, and no trial was heard since the first of them failed
    std::uint64_t deaths_alone = 0;   ///< of the job, while a suspect was tried
    std::uint64_t interruptions = 0;  ///< ends of a start with attempts under way, and losses of ranks, once for a host
    std::optional<TrialId> best;      ///< trial with the best objective so far, ties to the lower id
    /// The trial whose checkpoints are the study's result: the best one, as of the last time that it saved.
    std::optional<TrialId> keeper;
    bool ever_saved = false;            ///< a checkpoint of some trial was committed
    std::uint64_t checkpoint_bytes = 0; ///< of all that are committed and not released
    std::optional<StudyTime> deadline;  ///< of the job, as the driver said
    double pace = 0.0;                  ///< what an iteration of a new trial may take, s; 0: nobody knows
    double starting = 0.0;              ///< from the start command of an attempt to its training, s
    double saving = 0.0;                ///< from the last report of an attempt to its checkpoint, s; 0: nobody knows
    Iteration stretch = 1;              ///< iterations from the start of an attempt to where its work is safe
    bool draining = false;
    StudyTime drain_began;
    Reason drain_reason = Reason::none;
    std::string drain_message;
    bool ended = false;
    StudyOutcome outcome = StudyOutcome::ok;
    Reason end_reason = Reason::none;
    std::string end_message;
    LogicalTime logical; ///< deterministic: slots and clocks; no slots otherwise
    /// Deterministic: the number of records that any run of the study file would make alike. None: all.
    std::optional<std::uint64_t> deterministic_until;

    // Not part of the digest: what was dropped is no decision.
    std::uint64_t stale_events = 0;

    [[nodiscard]] std::uint64_t in(TrialPhase phase) const { return count[static_cast<std::size_t>(phase)]; }
    [[nodiscard]] const TrialState& trial(TrialId id) const { return trials.at(id.value()); }
};

/// Mean time between failures of the job: what the study file says, corrected by what the study has seen in all its
/// starts. The rate of failures has a Gamma distribution that is worth one failure in the configured time; this is one
/// over its mean after `interruptions` in the study's running time: (configured + running time) / (1 + interruptions).
[[nodiscard]] base::Duration mean_time_between_failures(const State& state, const study::CheckpointSpec& spec);

/// Until when a new trial may begin, so that its first checkpoint is safe before the deadline. Nothing: there is no
/// deadline, or nobody knows yet how long an iteration takes.
[[nodiscard]] std::optional<StudyTime> last_start(const State& state);

/// So many different trials fail in a row before a report of theirs counts, until the study drains: failure.in_a_row,
/// or 10 and the binary logarithm of study.num_trials (rounded up) and the number of groups, which is how many trials
/// `ranks` have room for, at most study.max_concurrent. The groups count because all of them may draw configurations
/// that fail at once, while a good one takes its time for a first report.
[[nodiscard]] std::size_t failures_to_drain(const study::StudySpec& spec, std::size_t ranks);

/// The study stops for a cause that says nothing about what its user wants (a signal, the end of the job's time): what
/// started it may start it again.
[[nodiscard]] bool would_be_started_again(const State& state);

/// Such an end leaves nothing to do: what started the study need not start it again. (`stateless`: a small change, and
/// it goes on.)
[[nodiscard]] constexpr bool ends_for_good(StudyOutcome outcome, Reason reason) {
    return outcome != StudyOutcome::resumable && reason != Reason::stateless;
}
/// The study has ended so.
[[nodiscard]] inline bool is_over(const State& state) {
    return state.ended && ends_for_good(state.outcome, state.end_reason);
}

/// A figure that grows whenever a study gets on, and only then: iterations reported for the first time, trials that are
/// over, and deaths of the job that a single trial was tried for (each brings the study nearer to a conviction). What
/// is trained again after a restart does not count. O(trials).
[[nodiscard]] std::uint64_t progress_of(const State& state);

} // namespace ranktune::tuner
