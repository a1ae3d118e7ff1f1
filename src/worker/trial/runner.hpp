// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runner: the seam between a worker's state machine (messages, no user code) and what executes an attempt on this rank:
// the trial thread, or a simulated learning curve.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ranktune/study/command.hpp"

namespace ranktune::worker {

/// Where a checkpoint lies that a program has named: two running trials must not share one.
struct NamedPlace {
    std::string host; ///< empty: on a file system that other nodes may see
    std::string path; ///< absolute, every link followed
    friend bool operator==(const NamedPlace&, const NamedPlace&) = default;
};

/// One rank's part in an attempt. This rank's position in the roster `start.ranks` is its rank within the trial.
struct Assignment {
    study::StartTrial start;
    int group_rank = 0;
    [[nodiscard]] bool leads() const { return group_rank == 0; }
    /// Checkpoint to start from; null: none.
    [[nodiscard]] const study::CheckpointRef* checkpoint() const { return study::checkpoint_of(start.from); }
    /// Iterations completed before this attempt.
    [[nodiscard]] base::Iteration first_iteration() const { return start.iteration; }
};

/// Leader only: an iteration is complete. When `iteration` >= the decision point, the runner waits for `decide`.
struct RunnerReported {
    base::Iteration iteration = 0;
    double seconds = 0.0;
    std::vector<study::NamedMetric> metrics;
    bool ends = false; ///< the attempt ends here, without waiting
};
/// Leader only: a checkpoint has its final name.
struct RunnerSaved {
    study::CheckpointRef checkpoint;
};
/// Leader only: a checkpoint could not be written, and the trial trains on.
struct RunnerUnsaved {
    std::string why;
};
/// Leader only, before the report: its program names this place as its checkpoint. Not sent for folders that no other
/// trial can name.
struct RunnerNamed {
    NamedPlace place;
};
/// Every rank, once per start: no user code of this attempt runs here any more. (A program may wait in its last report
/// for the next attempt.)
struct RunnerEnded {
    study::AttemptOutcome outcome = study::AttemptOutcome::finished;
    study::Failure failure;
    /// Leader: parameters and options that the trainable never read, if that is a mistake in the study file.
    std::vector<std::string> unread = {};
    /// Not empty: a GPU of this rank does not answer its process any more, and this is what it says. The process must
    /// end: every later trial in it would fail.
    std::string sick_device = {};
    /// Leader: seconds of training in which a program started, as far as that can be told (TrialLoop).
    double starting_s = 0.0;
};
using RunnerEvent = std::variant<RunnerReported, RunnerSaved, RunnerUnsaved, RunnerNamed, RunnerEnded>;

/// Executes one attempt at a time. Every call returns at once; events come from `poll`, in order. The event queue is
/// bounded: a report blocks user code while it is full.
/// Called from one thread (the service thread).
class Runner {
  public:
    virtual ~Runner() = default;
    /// Whether what trials need is on this node, such as copies of data. No attempt but that of [before] starts
    /// earlier.
    [[nodiscard]] virtual bool prepared() { return true; }
    /// The files of [data] are what trials will read (comm::Stage). Called once at most.
    virtual void stage() {}
    /// All ranks of the roster are ready: form the group and train. Requires that the previous attempt has ended.
    virtual void start(const Assignment& assignment) = 0;
    /// Leader only: the verdict on the report of `decide.iteration`, and the next decision point.
    virtual void decide(const study::Decide& decide) = 0;
    /// Leader only: obey `verdict` at the next report, whatever its iteration.
    virtual void interrupt(const study::Verdict& verdict) = 0;
    /// Leader only: another trial that runs names the same place for its checkpoint. Nothing is saved any more.
    virtual void contest() {}
    /// Give up without a checkpoint: ends with outcome `lost` as soon as user code returns.
    virtual void abandon() = 0;
    [[nodiscard]] virtual std::optional<RunnerEvent> poll() = 0;
    /// Grows whenever user code makes progress (report, reducer steps): for the hang watchdog.
    [[nodiscard]] virtual std::uint64_t progress() const = 0;
    /// The user code of this rank waits for the head, directly or through its leader: it has not hung.
    [[nodiscard]] virtual bool waits() const { return false; }
};

} // namespace ranktune::worker
