// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is known of one trial.

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "ranktune/space/configuration.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/vocabulary.hpp"
#include "tuner/values/rank_list.hpp"
#include "tuner/values/rare_list.hpp"

namespace ranktune::tuner {

using namespace study; // the vocabulary: TrialId, AttemptId, TrialPhase, ... (private header)

inline constexpr std::uint32_t no_slot = 0xFFFFFFFF;
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// The takeover of a donor's state by a trial.
struct Takeover {
    Iteration iteration = 0; ///< of the trial, as of the verdict
    Donor donor;
    space::Configuration before;      ///< its own, up to `iteration`
    std::uint32_t number = 0;         ///< of all takeovers of the trial, from 1 on; those that were undone keep theirs
    std::uint32_t donor_takeover = 0; ///< number of the donor's takeover that its state rests on; 0: none
    static void fields(auto&& each, auto& r) { each(r.iteration, r.donor, r.before, r.number, r.donor_takeover); }
};
/// A takeover that was undone: others may have taken over what was trained after it, and the best value may stem from
/// that.
struct UndoneTakeover {
    Takeover takeover;
    space::Configuration after; ///< with which the trial was trained then
    StateLoss why = StateLoss::unreadable;
    static void fields(auto&& each, auto& r) { each(r.takeover, r.after, r.why); }
};

/// From this attempt on, the weights of a trial rest on another takeover. (A report may count only after later attempts
/// have begun.)
struct ChangeOfState {
    AttemptId attempt;
    std::uint32_t takeover = 0; ///< its number; 0: none
    static void fields(auto&& each, auto& r) { each(r.attempt, r.takeover); }
};

/// The ranks that train a trial, from one start to its end: what resources do. What the trial was judged takes effect
/// on the trial at once; its attempt then only winds down: it saves and gives its ranks back.
struct Attempt {
    AttemptId id;            ///< zero: the trial was never started
    bool live = false;       ///< its ranks are not back yet
    bool abandoned = false;  ///< they were told to give up (a member was lost)
    bool at_fault = false;   ///< abandoned by its own fault: its code hung
    bool silent = true;      ///< no report yet
    Iteration iteration = 0; ///< of the last report (where it started, before the first one)
    Iteration decided = 0;   ///< newest report that it waited for a verdict on, and has one
    StudyTime since;         ///< its start, then its last report
    // Kept after its end, for views:
    RankList ranks;
    RareList<Role> roles; ///< as in TrialStarted
    static void fields(auto&& each, auto& r) {
        each(r.id, r.live, r.abandoned, r.at_fault, r.silent, r.iteration, r.decided, r.since, r.ranks, r.roles);
    }
};

/// One trial: what the search does, and its newest attempt, the only one that may be live. Fields that every report
/// touches come first, so that a report touches one or two cache lines.
struct Trial {
    TrialPhase phase = TrialPhase::waiting;
    bool reported = false;
    bool unheard = true;             ///< no report has counted since it began or was reopened
    bool has_saved = false;          ///< a checkpoint was committed since it began, or began anew
    bool dies_saving = false;        ///< its program died while it saved its best state on the way
    Reason closed_by = Reason::none; ///< placed here to fill padding, as is `overtaken`
    std::uint32_t overtaken = 0;     ///< by later trials, while it waits for ranks
    std::uint32_t unsettled = 0;     ///< takeovers, the newest, since which it has less than two checkpoints of its own
    Iteration iteration = 0;         ///< highest one accepted; not taken back when an attempt starts from a checkpoint
    Attempt attempt;
    Iteration decision_point = 0; ///< iteration at which its attempt waits for a verdict
    Iteration unsaved = 0;        ///< iterations lost at its newest pause for lack of a checkpoint
    double seconds = 0.0;         ///< training time up to `iteration`
    double pace = 0.0;            ///< seconds that an iteration may take; 0: unknown
    double last = 0.0;            ///< objective of the last report; NaN before the first
    double best = 0.0;            ///< best finite objective; NaN: none. Several: the first, see `others`
    Iteration best_iteration = 0;
    std::uint32_t best_takeover = 0;   ///< number of the takeover that the weights of `best` rest on; 0: none
    Iteration newest_iteration = 0;    ///< of the last report that took effect
    std::uint32_t newest_takeover = 0; ///< that its weights rest on
    Verdict verdict;                   ///< the last one

    std::uint32_t wanted_ranks = 1;
    study::WorkerKind workers = study::WorkerKind::any; ///< that it can use; follows from the configuration
    std::uint32_t bracket = 0;
    std::uint32_t slot = no_slot;     ///< deterministic: its place in logical time
    std::uint32_t losses = 0;         ///< attempts lost with their ranks
    std::uint32_t failures = 0;       ///< attempts that ended with an exception
    Iteration failed_at = 0;          ///< last report of the newest of those
    std::uint64_t failure_digest = 0; ///< of its message, to recognise a repetition
    std::uint32_t deaths = 0;         ///< of the job while it ran, since it last got further than at one of them
    std::uint32_t deaths_alone = 0;   ///< of these, while it was tried as a suspect
    bool on_hold = false;             ///< a user paused it: it gets no ranks until a user resumes it
    Iteration died_at = 0;            ///< highest iteration it had reported at one of them
    Iteration target = 0;             ///< next iteration at which its scheduler compares it
    double closed_a = 0.0;
    double closed_b = 0.0;
    StudyTime created;
    StudyTime started; ///< first attempt
    StudyTime ended;   ///< when it reached a final phase
    Origin origin;
    RareList<Takeover> takeovers;           ///< that its next state rests on, the oldest first
    RareList<UndoneTakeover> undone;        ///< in the order in which they were undone
    RareList<ChangeOfState> changes;        ///< oldest first
    std::vector<CheckpointRef> checkpoints; ///< committed, not released, in the order of their commits
    /// So many of `checkpoints`, the first ones, are from before the trial began anew: it goes on from none of them.
    std::uint32_t of_earlier_life = 0;
    /// The further objectives of a study with several, at `best_iteration`; empty where `best` is NaN. That is the
    /// newest report that is finite and keeps the constraints, unless the one before it was better in every way.
    RareList<double> others;
    RareList<double> window;            ///< last results of the plateau stopper's metric, oldest first
    Failure failure;                    ///< the newest; empty: none
    space::Configuration configuration; ///< now; see configuration_at

    /// How often it has exploited another trial.
    [[nodiscard]] std::uint32_t generation() const { return static_cast<std::uint32_t>(takeovers.size()); }

    static void fields(auto&& each, auto& r) {
        each(r.phase, r.reported, r.unheard, r.attempt, r.iteration, r.decision_point, r.unsaved, r.seconds, r.pace,
             r.last, r.best, r.best_iteration, r.verdict, r.wanted_ranks, r.bracket, r.losses, r.failures, r.failed_at,
             r.failure_digest, r.deaths, r.deaths_alone, r.died_at, r.overtaken, r.target, r.closed_by, r.closed_a,
             r.closed_b, r.created, r.started, r.ended, r.checkpoints, r.window, r.failure, r.configuration, r.slot,
             r.origin, r.takeovers, r.unsettled, r.on_hold, r.others, r.undone, r.changes, r.best_takeover,
             r.newest_iteration, r.newest_takeover, r.has_saved, r.of_earlier_life, r.dies_saving);
    }
};

/// The configuration with which the trial was trained at that iteration.
[[nodiscard]] inline const space::Configuration& configuration_at(const Trial& trial, Iteration iteration) {
    for (const Takeover& each : trial.takeovers)
        if (iteration <= each.iteration) return each.before;
    return trial.configuration;
}

/// What weights of a trial rest on.
struct Origins {
    const Takeover* takeover = nullptr;                  ///< the newest one before them; null: none
    const space::Configuration* configuration = nullptr; ///< with which the trial trained them since; never null
};
/// `takeover`: its number; 0: none. Throws base::FormatError when there is no such takeover.
[[nodiscard]] Origins origins_of(const Trial& trial, std::uint32_t takeover);
/// The number of the takeover that a checkpoint of this generation rests on, or the trial's newest state.
[[nodiscard]] std::uint32_t takeover_of(const Trial& trial, std::uint32_t generation);

/// The number of the takeover that the weights of an attempt rest on; 0: none.
[[nodiscard]] inline std::uint32_t takeover_in(const Trial& trial, AttemptId attempt) {
    std::uint32_t takeover = 0;
    for (const ChangeOfState& each : trial.changes)
        if (each.attempt <= attempt) takeover = each.takeover;
    return takeover;
}

/// The configuration of its best report.
[[nodiscard]] inline const space::Configuration& best_configuration(const Trial& trial) {
    return *origins_of(trial, trial.best_takeover).configuration;
}

/// Where the next attempt of a trial starts: its newest checkpoint since its last takeover, or the donor's.
struct Start {
    StartFrom from;
    Iteration iteration = 0; ///< of the trial
};
[[nodiscard]] Start start_of(const Trial& trial);
/// The takeovers whose donors' checkpoints this trial needs until it has two of its own, the oldest first. Those before
/// the newest are used when the newest cannot be read.
[[nodiscard]] std::span<const Takeover> depends_on(const Trial& trial);
/// The state that the trial took over last is lost: neither the trial nor the donor has a checkpoint of it.
[[nodiscard]] bool is_stranded(const Trial& trial);

/// The checkpoint of the trial to use: the best by the objective, the newest of equal ones; with several objectives the
/// one of its best iteration, else the newest. null: none.
[[nodiscard]] const CheckpointRef* best_checkpoint(const Trial& trial, const Objective& objective);
/// Whether a checkpoint of the trial has the weights of its best value.
[[nodiscard]] bool has_best(const Trial& trial, const CheckpointRef& checkpoint, const Objective& objective);
/// Whether the trial has such a checkpoint.
[[nodiscard]] bool keeps_best(const Trial& trial, const Objective& objective);
/// Whether the ranks of its attempt are not back yet, although the trial does not train any more.
[[nodiscard]] inline bool winds_down(const Trial& trial) {
    return trial.attempt.live && trial.phase != TrialPhase::running;
}

} // namespace ranktune::tuner
