// SPDX-License-Identifier: Apache-2.0
#pragma once
// One round of the core: an event, and what is still to be done about it. A task yields records until it has none left;
// what follows from a record is done before what was to be done before it.

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ranktune/study/event.hpp"
#include "ranktune/study/record.hpp"
#include "tuner/state.hpp"

namespace ranktune::tuner {

/// The event itself.
struct Take {
    bool done = false;
};
/// The attempt of a trial is over, although nobody says so any more.
struct EndAttempt {
    TrialId trial;
    Attempt attempt;
    bool done = false;
};
/// Checkpoints of a trial that are of no more use.
struct Retain {
    TrialId trial;
};
struct Release {
    TrialId trial;
    std::string path; ///< empty: all of them
    bool stays = false;
};
/// Room for checkpoints, as far as checkpoint.max_bytes asks for it.
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
/// A trial has failed: perhaps one too many.
struct CountFailure {
    Failure failure;
};
struct Reopen {
    TrialId trial;
    bool from_scratch = false;
};
/// The trial was told to exploit another one.
struct TakeOver {
    study::Exploited record;
    bool done = false;
};
/// What the trial took over last cannot be read, or is lost with its own checkpoints.
struct UndoExploit {
    TrialId trial;
    std::uint32_t generation = 0; ///< that it had then
    bool unreadable = false;      ///< the donor's checkpoint, from which it started
};
/// A host on which the trial failed.
struct JudgeHost {
    std::uint32_t host = 0;
};
/// An attempt could not be set up.
struct JudgeSetUp {
    TrialId trial;
    std::string message; ///< of its failure
};
/// A trial that kills the job.
struct Convict {
    TrialId trial;
};
/// Facts whose turn it is, new work, free ranks.
struct Fill {};
/// The end of the study, if nothing is left to do.
struct End {
    bool closing = false;
    std::uint32_t next = 0; ///< trial to be closed
};

using Task = std::variant<Take, EndAttempt, Retain, Release, Evict, Close, Drain, CountFailure, Reopen, TakeOver,
                          UndoExploit, JudgeHost, JudgeSetUp, Convict, Fill, End>;

/// What a record is about to change, as far as something follows from it.
struct Before {
    std::optional<TrialId> keeper;
    bool draining = false;
    // Of the record's trial.
    bool has_group = false; ///< that trains, and will hear
    bool waits = false;     ///< its group waits for the verdict on this report
    bool was_ending = false;
    bool was_suspect = false;
    bool was_winding = false;
    std::optional<TrialId> holder; ///< of the rank that is lost
    std::uint32_t shards = 0;      ///< of the checkpoint that is released
    std::vector<TrialId> donors;   ///< from whose checkpoints it may go on
};

struct Round {
    explicit Round(StudyTime at, const study::Event* what = nullptr) : now(at), event(what) {}

    StudyTime now;
    const study::Event* event;               ///< none: between two lives
    std::vector<Task> todo;                  ///< the last one first
    bool stale = false;                      ///< the event is about something that is over
    bool death_told = false;                 ///< the record of a death has been written
    std::optional<study::Exploited> exploit; ///< that the verdict at hand stands for

    template <class T>
    void push(T task) {
        todo.emplace_back(std::move(task));
    }
    /// To be done after what is at hand.
    template <class T>
    void push_below(T task) {
        todo.emplace(todo.empty() ? todo.end() : todo.end() - 1, std::move(task));
    }
};

} // namespace ranktune::tuner
