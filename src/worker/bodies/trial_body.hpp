// SPDX-License-Identifier: Apache-2.0
#pragma once
// TrialBody: what trains in an attempt on one rank: an object of a class, a function, or the process of a program. The
// loop around it talks to the head.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "ranktune/study/vocabulary.hpp"
#include "ranktune/trainables/context.hpp"

namespace ranktune::worker {

/// Where a trial is after an iteration.
struct TrialPoint {
    base::Iteration iteration = 0;
    double seconds = 0.0;        ///< training time, all attempts
    std::optional<double> value; ///< the objective; nothing when it was not reported or is not finite
};

/// What the ranks of a trial do after an iteration. The leader decides it.
struct Word {
    study::Verb verb = study::Verb::go_on; ///< go_on, pause or stop
    bool save = false;                     ///< go_on: save on the way; otherwise: the attempt ends with a checkpoint
    bool goes_on_later = false;            ///< a pause that needs no checkpoint (`without_state`)
    bool exploits = false; ///< leader only: the trial is started again at once, from the state of a donor
    bool is_best = false;  ///< leader only: it saves because no report of the study is better so far
    friend bool operator==(const Word&, const Word&) = default;
};

/// What a verdict other than go_on means when there is no state to save. A pause because the job or the trial's turn
/// ends is not the trial's fault: a trial without a checkpoint pauses anyway and later continues from an older one.
[[nodiscard]] constexpr Word without_state(const study::Verdict& verdict) {
    using study::Reason;
    if (verdict.verb != study::Verb::pause)
        return {study::Verb::stop, false, false, verdict.reason == Reason::exploited};
    return {study::Verb::pause, false, verdict.reason == Reason::draining || verdict.reason == Reason::yielded, false};
}

/// Whether a trial that ends its attempt with this word has failed if its state cannot be saved: it pauses, and only
/// that state lets it go on. One that stops has all its results; one that pauses for the job or its turn goes on from
/// an older state.
[[nodiscard]] constexpr bool needs_state(const Word& word) {
    return word.verb == study::Verb::pause && !word.goes_on_later;
}

/// Whether the state after an iteration can be saved.
enum class Saves : std::uint8_t {
    never,   ///< the trainable declares that it cannot save
    none,    ///< it never provided a state
    missing, ///< it provided one after an earlier iteration, but not after this one
    at_end,  ///< only if the attempt ends here
    soon,    ///< the state before is still being written: saving waits for that
    now      ///< also if the trial goes on
};

/// On one rank. Every call comes from the trial thread. *Collective*: called on all ranks of the trial.
///
/// TrialLoop calls `start`, then `train`, and `close` at the very end, also after an exception. `train` calls `report`
/// after every iteration; `report` asks the leader what it `saves`, then calls `tell` on every rank and, depending on
/// the word, `save` or `end`:
///
///     start  train(report)
///              ... an iteration ...  report -> (leader: saves) tell [save]       the trial goes on
///              ... an iteration ...  report -> (leader: saves) tell end          it is paused or stopped
///            returns
///     close
///
/// An exception from any of them ends the attempt (outcome_of); the loop then calls Collective::fail.
class TrialBody {
  public:
    /// Returns what to do after an iteration. Any answer but go_on ends the attempt: return from `train`. Collective,
    /// except for programs, where only the leader reports.
    using Report = std::function<study::Verb(const trainables::Metrics&)>;

    virtual ~TrialBody() = default;

    /// Collective. Prepares training from `checkpoint`; null: from the beginning. Throws CheckpointError when it cannot
    /// be read.
    virtual void start(const study::CheckpointRef* checkpoint) = 0;
    /// Collective. Trains until `report` says otherwise or training is complete. Returns the last answer of `report`;
    /// go_on: it finished on its own.
    [[nodiscard]] virtual study::Verb train(const Report& report) = 0;

    // ---- the leader, after an iteration
    [[nodiscard]] virtual Saves saves() = 0;
    /// For Saves::none and missing: why there is no state and how to mend it, as the rest of a sentence after "but".
    [[nodiscard]] virtual std::string why_no_state() const { return "there is none"; }
    /// Whether the attempt ends with the present report, whatever the head says of it: nobody waits for that.
    [[nodiscard]] virtual bool is_done() const { return false; }
    /// How long the loop may wait for the head before it calls `idle` and waits again; nothing: until the head answers.
    [[nodiscard]] virtual std::optional<std::chrono::milliseconds> patience() const { return std::nullopt; }
    virtual void idle() {}

    // ---- all ranks that report, after an iteration
    /// Collective. Passes the leader's word to all ranks and returns it; on the others `word` is ignored. A body that
    /// trains on at once (a program) saves first if the word says so.
    [[nodiscard]] virtual Word tell(const Word& word, const TrialPoint& point) = 0;
    /// Collective. Saves while the trial goes on.
    virtual void save(const TrialPoint& point) = 0;
    /// Collective. The attempt ends after this iteration, with a checkpoint if the word says so. Throws CheckpointError
    /// on the leader when it cannot be written.
    virtual void end(const Word& word, const TrialPoint& point) = 0;

    /// The last call. `abandoned`: the trial was given up.
    virtual void close(bool abandoned) = 0;
};

} // namespace ranktune::worker
