// SPDX-License-Identifier: Apache-2.0
#pragma once
// Commands: what the core wants done. The head sends them only after it has written the records of the same step.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ranktune/base/time.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::study {

/// To every rank of `ranks`: form a group and train. Or, to one rank: do a side task, with a number for it in place of
/// the trial's (study::unit_of), here and in all messages about this attempt.
struct StartTrial {
    TrialId trial;
    AttemptId attempt;
    Incarnation incarnation;
    std::vector<Rank> ranks; ///< ascending; the first leads
    space::Configuration configuration;
    StartFrom from;
    /// Ranks of the donor, in the order of its group, as far as they may have its state in memory; empty: from disk.
    std::vector<Rank> holders;
    std::uint32_t generation = 0; ///< of the trial, for its checkpoints
    Iteration iteration = 0;      ///< at which the trial goes on; its own, not that of a donor
    double seconds = 0.0;         ///< training time of earlier attempts, as far as it counts
    Iteration decision_point = 1; ///< see Decide
    /// Mean time between failures of the job, as far as the study knows: for checkpoint.interval = "auto".
    base::Duration between_failures{};
    /// A report that beats this has a state worth keeping: the best value so far. nullopt: there is none, or it is this
    /// trial's own and its state was not saved. The largest number (mode "min": the lowest): no report has.
    std::optional<double> to_beat = {};
    std::vector<Role> roles = {}; ///< as in TrialStarted
    static void fields(auto&& each, auto& r) {
        each(r.trial, r.attempt, r.incarnation, r.ranks, r.configuration, r.from, r.holders, r.generation, r.iteration,
             r.seconds, r.decision_point, r.between_failures, r.to_beat, r.roles);
    }
    friend bool operator==(const StartTrial&, const StartTrial&) = default;
};

/// To the leader: the verdict on the report of `iteration`. The group waits for it only if `iteration` reached its
/// decision point; otherwise it has gone on, and a `go_on` is not sent.
struct Decide {
    TrialId trial;
    AttemptId attempt;
    Incarnation incarnation;
    Iteration iteration = 0;
    Verdict verdict;
    Iteration decision_point = 0; ///< the next one (go_on only)
    static void fields(auto&& each, auto& r) {
        each(r.trial, r.attempt, r.incarnation, r.iteration, r.verdict, r.decision_point);
    }
    friend bool operator==(const Decide&, const Decide&) = default;
};

/// To the leader: pause (with a checkpoint) or stop at the next report, whatever its iteration.
struct Interrupt {
    TrialId trial;
    AttemptId attempt;
    Incarnation incarnation;
    Verdict verdict;
    static void fields(auto&& each, auto& r) { each(r.trial, r.attempt, r.incarnation, r.verdict); }
    friend bool operator==(const Interrupt&, const Interrupt&) = default;
};

/// To every living rank of an attempt that lost a member: give up, no checkpoint, answer with AttemptOver.
struct Abandon {
    TrialId trial;
    AttemptId attempt;
    Incarnation incarnation;
    std::vector<Rank> ranks;
    static void fields(auto&& each, auto& r) { each(r.trial, r.attempt, r.incarnation, r.ranks); }
    friend bool operator==(const Abandon&, const Abandon&) = default;
};

/// To the driver: unlink after the journal is synced.
struct DeleteCheckpoint {
    std::string path;
    std::uint32_t shards = 0; ///< 0: one file or folder; see CheckpointRef::shards
    friend bool operator==(const DeleteCheckpoint&, const DeleteCheckpoint&) = default;
};

/// To the driver: sync, publish the results, tell every worker to leave, end.
struct EndStudy {
    StudyOutcome outcome = StudyOutcome::ok;
    Reason reason = Reason::study_complete;
    std::string message;
    friend bool operator==(const EndStudy&, const EndStudy&) = default;
};

/// To the driver: have the searcher prepare a suggestion on a thread beside the loop (Tuner::preparation), and answer
/// with the event Prepared.
struct Prepare {
    std::uint64_t ticket = 0;
    friend bool operator==(const Prepare&, const Prepare&) = default;
};

using Command = std::variant<StartTrial, Decide, Interrupt, Abandon, DeleteCheckpoint, EndStudy, Prepare>;

} // namespace ranktune::study
