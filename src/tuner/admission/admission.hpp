// SPDX-License-Identifier: Apache-2.0
#pragma once
// What has happened is a fact; when it takes effect says a strategy. Asynchronous studies take facts as they arrive,
// deterministic ones in the order of logical time. What an admitted fact means is written elsewhere, once.

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
    Attempt attempt;
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

/// What a report that has just come is to the study.
enum class Standing : std::uint8_t {
    next,   ///< takes effect now
    early,  ///< is kept until its turn
    known,  ///< was told before: trained again after a loss
    foreign ///< nobody waits for it
};

/// Which fact takes effect next, which trial gets ranks next, and when there is room for another trial.
/// Const questions and `apply`, like everything in the core; `apply` comes after the trial's own state has changed.
class Admission {
  public:
    virtual ~Admission() = default;

    // ---- facts
    [[nodiscard]] virtual Standing standing(TrialId trial, Iteration iteration) const = 0;
    /// The fact that takes effect now, of those that are kept; nothing: the next one has not happened yet.
    [[nodiscard]] virtual std::optional<Fact> next() const = 0;
    /// Iteration of the trial's newest report that has arrived, whether it has taken effect or not.
    [[nodiscard]] virtual Iteration received(TrialId trial) const = 0;
    /// Iteration up to which the trial's reports have taken effect, as its newest attempt is concerned.
    [[nodiscard]] virtual Iteration admitted(TrialId trial) const = 0;
    /// Reports of the trial that have arrived and not taken effect, oldest first; null: never any.
    [[nodiscard]] virtual const std::deque<study::ReportHeld>* held(TrialId trial) const = 0;

    // ---- work and ranks
    enum class Room : std::uint8_t { none, one, by_ranks };
    /// Whether a trial may be created or promoted now; by_ranks: when ranks are left over.
    [[nodiscard]] virtual Room room() const = 0;
    /// Some trial is under way: what a scheduler may wait for.
    [[nodiscard]] virtual bool any_active() const = 0;
    /// Trials that want ranks, those first that come first, until `visit` says that it has seen enough.
    virtual void visit_line(const std::function<bool(TrialId)>& visit) const = 0;
    /// The trial wants ranks and has none.
    [[nodiscard]] virtual bool wants_ranks(TrialId trial) const = 0;
    /// The trial has ranks, but nothing to do with them before its turn comes.
    [[nodiscard]] virtual bool is_parked(TrialId trial) const = 0;
    /// Who comes first is waited for, whatever fits; otherwise a later trial may overtake an earlier one.
    [[nodiscard]] virtual bool keeps_the_line() const = 0;
    /// The next trial to be asked for its ranks, so that `wanted` fall free for one that comes before it (none: for one
    /// that comes before everybody).
    [[nodiscard]] virtual std::optional<TrialId> to_yield(std::optional<TrialId> before, std::uint32_t wanted,
                                                          std::uint32_t free) const = 0;

    /// The ranks of the trial will be back without further notice: it left its place, or was asked to yield.
    [[nodiscard]] virtual bool is_leaving(TrialId trial) const = 0;
    [[nodiscard]] virtual bool any_leaving() const = 0;

    // ---- the only mutators
    virtual void apply(const study::Record& record) = 0;
    virtual void snapshot(study::Encoder& out) const = 0;
    virtual void restore(study::Decoder& in) = 0;
    /// Throws std::logic_error naming what does not hold.
    virtual void check_invariants() const = 0;
};

} // namespace ranktune::tuner
