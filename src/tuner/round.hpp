// SPDX-License-Identifier: Apache-2.0
#pragma once
// One round of the core: the records of an event, then a stack of tasks. A task yields records until it has none left;
// tasks that follow from a record are done before older ones.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ranktune/study/event.hpp"
#include "ranktune/study/record.hpp"
#include "tuner/state.hpp"

namespace ranktune::tuner {

/// Ends the attempt of a trial whose leader is gone.
struct EndAttempt {
    TrialId trial;
    AttemptId attempt;
    bool done = false;
};
/// Releases the checkpoints of a trial that are no longer needed.
struct Retain {
    TrialId trial;
};
struct Release {
    TrialId trial;
    std::string path; ///< empty: all of them
    bool stays = false;
};
/// Releases checkpoints until checkpoint.max_bytes is met.
struct Evict {};
struct Close {
    TrialId trial;
    TrialPhase phase = TrialPhase::failed;
    Verdict why;
    Failure failure;
};
struct Drain {
    Reason reason = Reason::draining;
    std::string why;
};
/// A trial has failed: drains the study if there are too many failures.
struct CountFailure {
    Failure failure;
};
struct Reopen {
    TrialId trial;
    bool from_scratch = false;
};
/// The trial was told to exploit another one, or goes on from another state than it paused with.
struct TakeOver {
    std::unique_ptr<study::Exploited> record; ///< null: written. (It is large, and tasks are moved often.)
};
/// The state that the trial took over last is lost with its own checkpoints.
struct UndoExploit {
    TrialId trial;
    std::uint32_t generation = 0; ///< that it had then
    StateLoss why = StateLoss::unreadable;
    bool surely = false; ///< whether or not a state of this generation is left
};
/// The state that the trial was to take over could not be read: is there another one?
struct FindDonor {
    TrialId trial;
    std::uint32_t generation = 0; ///< that it has, once the exploit is undone
};
/// A trial failed: is its GPU bad, or its host?
struct JudgePlace {
    std::optional<std::uint32_t> host;   ///< position in Placement::hosts(); nullopt: it ran on several
    std::optional<std::uint32_t> device; ///< position in Placement::devices(); nullopt: not known
};
/// An attempt could not be set up.
struct JudgeSetUp {
    TrialId trial;
    std::string message;                  ///< of its failure
    std::optional<std::uint32_t> failing; ///< Failure::rank
};
/// Closes a trial that kills the job.
struct Convict {
    TrialId trial;
};
/// Ends the attempt of a side task whose rank is lost.
struct EndSide {
    TrialId unit;
    AttemptId attempt;
    bool guilty = false;
    std::string why;
};
/// Admits facts, creates work, fills free ranks.
struct Fill {};
/// Ends the study if nothing is left to do.
struct End {
    bool closing = false;
    std::uint32_t next = 0; ///< trial to be closed
};

using Task = std::variant<EndAttempt, Retain, Release, Evict, Close, Drain, CountFailure, Reopen, TakeOver, UndoExploit,
                          FindDonor, JudgePlace, JudgeSetUp, Convict, EndSide, Fill, End>;

struct Round {
    explicit Round(StudyTime at) : now(at) {}

    StudyTime now;
    std::vector<Task> todo;                  ///< the last one first
    bool stale = false;                      ///< the event is of a past incarnation or attempt
    bool death_told = false;                 ///< the record of a death has been written
    std::vector<study::MetricValue> metrics; ///< of the event's report, up to the first one whose name is new
    std::optional<study::Exploited> exploit; ///< of the current verdict or promotion

    template <class T>
    void push(T task) {
        todo.emplace_back(std::move(task));
    }
};

} // namespace ranktune::tuner
