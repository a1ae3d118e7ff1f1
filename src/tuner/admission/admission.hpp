// SPDX-License-Identifier: Apache-2.0
#pragma once
// A fact is something that happened; the strategy decides when it takes effect. Asynchronous studies admit facts as
// they arrive, deterministic ones in the order of logical time. judge.cpp decides what an admitted fact means.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ranktune/study/codec.hpp"
#include "ranktune/study/record.hpp"
#include "ranktune/study/spec.hpp"
#include "tuner/state.hpp"

namespace ranktune::tuner {

/// A report that has yet to be judged.
struct ReportFact {
    TrialId trial;
    AttemptId attempt;
    Iteration iteration = 0;
    double seconds = 0.0;
    std::vector<study::MetricValue> metrics;
};

/// An attempt has ended and no other follows it: the trial is over when this is admitted.
struct EndFact {
    TrialId trial;
    AttemptOutcome outcome = AttemptOutcome::finished;
    Failure failure;
};

using Fact = std::variant<ReportFact, EndFact>;

/// What the study does with a report that has just arrived.
enum class Standing : std::uint8_t {
    next,   ///< takes effect now
    early,  ///< kept until its turn
    known,  ///< reported before, and trained again after a loss
    foreign ///< stale
};

/// How many trials train at the same time if there are ranks for `fit` groups.
[[nodiscard]] std::size_t groups_at_once(const study::StudySpec& spec, std::size_t fit);

/// Which fact takes effect next, which trial gets ranks next, and when there is room for another trial. Only `apply`
/// and `restore` change it. `apply` is called after the state of the trial has changed.
class Admission {
  public:
    virtual ~Admission() = default;

    // ---- facts
    [[nodiscard]] virtual Standing standing(TrialId trial, Iteration iteration) const = 0;
    /// The kept fact that takes effect now; nullopt: the next one has not happened yet.
    [[nodiscard]] virtual std::optional<Fact> next() const = 0;
    /// Iteration of the trial's newest report that has arrived, whether it has taken effect or not.
    [[nodiscard]] virtual Iteration received(TrialId trial) const = 0;
    /// Iteration up to which the trial's reports have taken effect, from the view of its newest attempt.
    [[nodiscard]] virtual Iteration admitted(TrialId trial) const = 0;
    /// Reports of the trial that have arrived and not taken effect, oldest first; null: never any.
    [[nodiscard]] virtual const std::deque<study::ReportHeld>* held(TrialId trial) const = 0;

    /// Its newest report is held until others have reported, too; until then it wants no ranks.
    [[nodiscard]] virtual bool at_barrier(TrialId) const { return false; }
    /// It has ended by itself, which takes effect after what it reported before.
    [[nodiscard]] virtual bool has_ended(TrialId) const { return false; }

    // ---- work and ranks
    enum class Room : std::uint8_t { none, one, by_ranks };
    /// Whether a trial may be created or promoted now; by_ranks: if ranks are left over.
    [[nodiscard]] virtual Room room() const = 0;
    /// Whether a scheduler may wait for some trial.
    [[nodiscard]] virtual bool any_active() const = 0;
    /// Visits the trials that want ranks, in order, until `visit` returns false.
    virtual void visit_line(const std::function<bool(TrialId)>& visit) const = 0;
    /// The trial wants ranks and has none.
    [[nodiscard]] virtual bool wants_ranks(TrialId trial) const = 0;
    /// The trial has ranks, but nothing to do with them before its turn comes.
    [[nodiscard]] virtual bool is_parked(TrialId trial) const = 0;
    /// The first trial in line is waited for, even if a later one fits. Otherwise a later trial may overtake an earlier
    /// one.
    [[nodiscard]] virtual bool keeps_the_line() const = 0;
    /// The next trial to ask for its ranks, so that `wanted` ranks become free for the trial `before`, which comes
    /// before it (nullopt: a trial that comes before all others).
    [[nodiscard]] virtual std::optional<TrialId> to_yield(std::optional<TrialId> before, std::uint32_t wanted,
                                                          std::uint32_t free) const = 0;

    /// A trial to ask for its ranks because it has nothing to do with them, and others in line have, or because its
    /// state is wanted, and it only saves that when it pauses. `free`: ranks;
    /// `full`: the study has as many trials with ranks as it may.
    [[nodiscard]] virtual std::optional<TrialId> surplus(std::uint32_t, bool) const { return {}; }

    /// The ranks of the trial will come back by themselves: its attempt winds down, or was asked to yield.
    [[nodiscard]] virtual bool is_leaving(TrialId trial) const = 0;

    // ---- what follows from the order of facts. Where it is that of logical time, nothing that depends on ranks or on
    // time may affect other trials, and every run of the study decides the same.
    [[nodiscard]] virtual bool decisions_repeat() const { return false; }
    /// A new attempt reports again what it trains again, and counts as unheard.
    [[nodiscard]] virtual bool attempts_count() const { return true; }
    /// A trial at a rung does not go on in place while others wait for ranks.
    [[nodiscard]] virtual bool contention_shows() const { return true; }
    /// A failure that has taken effect is taken back when its host turns out to be at fault.
    [[nodiscard]] virtual bool failures_are_taken_back() const { return true; }
    /// A trial that is paused can fail when its state is not saved: what ends it has no turn.
    [[nodiscard]] virtual bool charges_paused() const { return true; }
    /// A failure with a cause outside the trial counts against failure.max_losses, not failure.max_failures.
    [[nodiscard]] virtual bool disturbance_is_a_loss() const { return false; }
    /// A new trial waits for the suggestion that is being prepared for it, instead of taking a stopgap.
    [[nodiscard]] virtual bool waits_for_tickets() const { return false; }
    /// Users may pause, resume and cancel trials, and change keys, whenever they like.
    [[nodiscard]] virtual bool may_be_steered() const { return true; }
    /// Whether trial `a` was started no later than trial `b`, as far as other trials can know.
    [[nodiscard]] virtual bool began_before(TrialId a, TrialId b) const = 0;

    // ---- the only mutators
    virtual void apply(const study::Record& record) = 0;
    /// The attempt of the trial has ended, and no other follows it. Before `apply` of that record.
    virtual void end(EndFact fact) = 0;
    virtual void snapshot(study::Encoder& out) const = 0;
    virtual void restore(study::Decoder& in) = 0;
    /// Throws std::logic_error naming what does not hold.
    virtual void check_invariants() const = 0;
};

} // namespace ranktune::tuner
