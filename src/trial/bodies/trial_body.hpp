// SPDX-License-Identifier: Apache-2.0
#pragma once
// TrialBody: what trains in an attempt on one rank, behind the loop that talks to the head: an object of a class, a
// function, or the process of a program.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "ranktune/study/vocabulary.hpp"
#include "ranktune/trainables/context.hpp"

namespace ranktune::trial {

/// Where a trial is after an iteration.
struct TrialPoint {
    base::Iteration iteration = 0;
    double seconds = 0.0;        ///< training time, all attempts
    std::optional<double> value; ///< the objective; nothing when it was not reported or is not finite
};

/// What the ranks of a trial do after an iteration, as their leader says.
struct Word {
    study::Verb verb = study::Verb::go_on; ///< go_on, pause or stop
    bool save = false;                     ///< go_on: on the way; otherwise the attempt ends with a checkpoint
    bool goes_on_later = false; ///< a pause that may lack a checkpoint: `without_state`. Known to the leader alone
    friend bool operator==(const Word&, const Word&) = default;
};

/// What a verdict other than go_on means when there is no state to save. A pause at the end of the job, or of the
/// trial's turn, is no fault of the trial: one that has no checkpoint to give pauses all the same, and goes on later
/// from what it has.
[[nodiscard]] constexpr Word without_state(const study::Verdict& verdict) {
    using study::Reason;
    if (verdict.verb != study::Verb::pause) return {study::Verb::stop, false, false};
    return {study::Verb::pause, false, verdict.reason == Reason::draining || verdict.reason == Reason::yielded};
}

/// What can be saved of the state after an iteration.
enum class Saves : std::uint8_t {
    never,   ///< the trainable cannot save, and says so
    none,    ///< it gives no state, and never gave one
    missing, ///< it gave one after an earlier iteration, and none after this one
    at_end,  ///< when the attempt ends here; not if the trial goes on
    now      ///< also if the trial goes on
};

/// One rank's. Every call comes from the trial thread. *Collective*: on all ranks of the trial alike.
///
/// TrialLoop calls `start`, then `train`, and `close` at the very end, also after an exception. `train` calls `report`
/// after every iteration; inside it the leader is asked what it `saves`, then every rank is asked to `tell` and, as the
/// word says, to `save` or to `end`:
///
///     start  train(report)
///              ... an iteration ...  report -> (leader: saves) tell [save]       the trial goes on
///              ... an iteration ...  report -> (leader: saves) tell end          it is paused or stopped
///            returns
///     close
///
/// What any of them throws ends the attempt (outcome_of); the loop then calls Collective::fail.
class TrialBody {
  public:
    /// What follows an iteration. Any answer but go_on: the attempt is over, return from `train`. Collective, but for
    /// programs, of which the leader alone reports.
    using Report = std::function<study::Verb(const trainables::Metrics&)>;

    virtual ~TrialBody() = default;

    /// Collective. Makes ready to train on from `checkpoint`; null: from the beginning. Throws CheckpointError when it
    /// cannot be read.
    virtual void start(const study::CheckpointRef* checkpoint) = 0;
    /// Collective. Trains until `report` says otherwise, or until there is nothing left to train. Returns what the
    /// trial was told in the end; go_on: nothing, it came to its end by itself.
    [[nodiscard]] virtual study::Verb train(const Report& report) = 0;

    // ---- the leader, after an iteration
    [[nodiscard]] virtual Saves saves() = 0;
    /// Why there is no state and how to mend it, in words that go on after "but": of Saves::none and missing.
    [[nodiscard]] virtual std::string why_no_state() const { return "there is none"; }
    /// How long the loop may wait for the head before it calls `idle`, as often as it takes; nothing: it may wait until
    /// the head has answered.
    [[nodiscard]] virtual std::optional<std::chrono::milliseconds> patience() const { return std::nullopt; }
    virtual void idle() {}

    // ---- all ranks that report, after an iteration
    /// Collective. Gives the leader's word to all ranks and returns it; on the others `word` means nothing. A body that
    /// trains on as soon as it is told to (a program) saves before, if the word says so.
    [[nodiscard]] virtual Word tell(const Word& word, const TrialPoint& point) = 0;
    /// Collective. Saves on the way, while the trial trains on.
    virtual void save(const TrialPoint& point) = 0;
    /// Collective. The attempt ends after this iteration, with a checkpoint if the word says so: throws CheckpointError
    /// on the leader when it cannot be written.
    virtual void end(const Word& word, const TrialPoint& point) = 0;

    /// Nothing else follows. `abandoned`: the trial was given up.
    virtual void close(bool abandoned) = 0;
};

} // namespace ranktune::trial
