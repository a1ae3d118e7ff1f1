// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scheduler: which trials go on. Deterministic and free of clocks, files and threads.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ranktune/space/configuration.hpp"
#include "ranktune/study/codec.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/record.hpp"

namespace ranktune::study {
struct StudySpec;
}

namespace ranktune::schedulers {

/// A report as a scheduler sees it.
struct Report {
    base::TrialId trial;
    base::Iteration iteration = 0;
    study::Score score;  ///< non-finite values are worst (study::score)
    bool is_nan = false; ///< NaN, or no such metric: rule "ray" leaves it out of the quantile
};

/// A paused trial that is to go on.
struct Promotion {
    base::TrialId trial;
    base::Iteration from = 0;
    base::Iteration target = 0;
    study::Reason reason = study::Reason::promoted;
    friend bool operator==(const Promotion&, const Promotion&) = default;
};

/// What the tuner knows when it asks for work.
struct Pool {
    bool can_create = false;  ///< a new trial may still be created
    bool active = false;      ///< some trial is waiting or running (not paused, not closed)
    base::TrialId trial = {}; ///< number of the next new trial
};

/// A new trial is to be made.
struct Create {
    std::uint32_t bracket = 0;
    base::Iteration target = 0; ///< where its training stops first; 0: as for all trials of the bracket
    friend bool operator==(const Create&, const Create&) = default;
};
/// Nothing to do now, but running trials may change that. Without running trials, the same as NothingLeft.
struct Wait {
    friend bool operator==(const Wait&, const Wait&) = default;
};
/// No more work, unless a failed trial is reopened.
struct NothingLeft {
    friend bool operator==(const NothingLeft&, const NothingLeft&) = default;
};
/// What free ranks should do.
using Work = std::variant<NothingLeft, Wait, Create, Promotion>;

/// What a trial takes over after Verb::exploit.
struct Exploit {
    base::TrialId donor;
    base::Iteration iteration = 0; ///< of the donor's checkpoint
    space::Configuration configuration;
    friend bool operator==(const Exploit&, const Exploit&) = default;
};

/// In an asynchronous study results take effect as they arrive, in a deterministic one in the order of logical time,
/// and never by when ranks become free or files are written. Where others may take over a trial's state, its report is
/// then judged only when that state is saved: `saves_first` is asked, and only such states may be taken over. Otherwise
/// the newest committed one may be. A scheduler whose `exploits` is true asks this when it is made.
[[nodiscard]] bool saved_before_verdict(const study::StudySpec& study);

/// `decide` and `next` change nothing; `apply` is the only mutator and sees every record exactly once, live and in
/// replay. `decide` answers as if the report were already applied; the tuner then writes its answer (or a stricter one,
/// from a stopper) into the record Reported and applies that.
///
///   ASHA promote, eta 3, rungs 1 3 9:  decide(#0 at 1: 0.5) -> pause (rung)      apply(Reported #0 ... pause)
///   decide(#1 at 1: 0.7) -> pause      apply(...)   decide(#2 at 1: 0.9) -> go_on (in_top, the best 1 of 3)
///   next() -> Create, or NothingLeft when no more may be created: floor(3/3) = 1, and that one has gone on.
///
/// A trial is paused from its record Reported on, until TrialPromoted, and `next` offers only paused trials. Its
/// attempt ends later, which concerns schedulers only where a state must be saved first: the tuner starts a promoted
/// trial when its ranks are back. A trial reports nothing between its verdict and its next attempt. The tuner takes
/// ranks from trials for reasons of its own, and gives them others itself. A report at a rung whose record says go_on
/// is a promotion, whatever reason the tuner gives.
class Scheduler {
  public:
    virtual ~Scheduler() = default;
    [[nodiscard]] virtual std::string_view name() const = 0;
    /// `contended`: other trials wait for ranks, so a trial at a rung should not go on in place.
    [[nodiscard]] virtual study::Verdict decide(const Report& report, bool contended) const = 0;
    /// What to do next. Create only if `pool.can_create`.
    [[nodiscard]] virtual Work next(const Pool& pool) const = 0;
    /// Whom to exploit, and with which configuration. Asked after `decide` said Verb::exploit, with the same report.
    /// The trial restarts at once from the donor's checkpoint and keeps counting its own iterations. If the donor has
    /// no committed checkpoint of that iteration (see CheckpointCommitted and CheckpointReleased), the trial goes on as
    /// it is, and its record says so.
    [[nodiscard]] virtual Exploit exploit(const Report&) const {
        throw std::logic_error(std::string(name()) + " exploits nobody");
    }
    /// Whether a trial that this promotion of `next` lets go on does so from another state, and with another
    /// configuration: the state is a committed checkpoint, of another trial or its own. Only asked if `exploits`.
    [[nodiscard]] virtual std::optional<Exploit> exploit_at(const Promotion&) const { return {}; }
    /// The state that a trial was told to take over could not be read, and that is undone (ExploitUndone): another one
    /// for it, at the report that was judged; nothing: it goes on with its own. Only asked if `exploits`.
    [[nodiscard]] virtual std::optional<Exploit> exploit_instead(base::TrialId) const { return {}; }
    /// The trial has trained, and no state of it is left: none can be read, or all were deleted for want of room. The
    /// state of another trial for it; nothing: it begins again, with its first configuration. Only asked if `exploits`.
    [[nodiscard]] virtual std::optional<Exploit> replacement(base::TrialId) const { return {}; }
    /// Trials take over states: the trainable must save checkpoints. If `saved_before_verdict`, only states that
    /// `saves_first` asked for may be taken over.
    [[nodiscard]] virtual bool exploits() const { return false; }
    /// A checkpoint of the trial that others may still want to take over when the trial needs it no longer: it stays.
    [[nodiscard]] virtual std::optional<base::Iteration> donated(base::TrialId) const { return {}; }
    /// Whether the trial's report at this iteration, a decision point, is judged only when its state is saved there.
    /// Only asked if `saved_before_verdict`: a decision must not depend on what has been saved when it is due.
    [[nodiscard]] virtual bool saves_first(base::TrialId, base::Iteration) const { return false; }
    /// Others may go on only after this trial has reported, or is over: users cannot pause it.
    [[nodiscard]] virtual bool holds_up_others(base::TrialId) const { return false; }
    /// Some reports are judged together, when all trials that train have got as far (barriers).
    [[nodiscard]] virtual bool synchronous() const { return false; }
    /// Whether the trial's report at this iteration, a decision point, is held until the others have got there (record
    /// ReportHeld) and judged then. Only asked if `synchronous`. A trial that is lost on its way is not waited for: its
    /// report may be judged at once, after those of the others.
    [[nodiscard]] virtual bool is_barrier(base::TrialId, base::Iteration) const { return false; }
    /// All trials that are waited for have reported at this barrier: whose held report is judged next. nullopt: the
    /// verdicts on those that are left wait for a checkpoint of another trial. They must not wait for one that has no
    /// ranks, or has got to its next barrier.
    [[nodiscard]] virtual std::optional<base::TrialId> next_verdict(base::Iteration) const { return {}; }
    /// Trials at this barrier whose state verdicts wait for, and that only save it when they pause: they are asked to.
    [[nodiscard]] virtual std::vector<base::TrialId> to_save(base::Iteration) const { return {}; }
    /// The next iteration, greater than `current`, at which a trial must wait for the verdict.
    [[nodiscard]] virtual base::Iteration next_decision_point(base::TrialId trial, base::Iteration current) const = 0;
    /// May throw base::FormatError when the record does not fit the state: the journal is damaged. A failed trial may
    /// be reopened, and reports again.
    virtual void apply(const study::Record& record) = 0;
    /// Whether a trial can no longer be promoted from its rung: so many entries are better that it would not be
    /// promoted even if all trials of the study came to this rung. The checkpoint that it paused with may be deleted.
    /// (finish_top may still choose the trial, if all better ones failed.)
    [[nodiscard]] virtual bool out_of_reach(base::TrialId) const { return false; }
    /// The trials that the last record put out of reach, wherever they are now.
    [[nodiscard]] virtual const std::vector<base::TrialId>& fell_out() const {
        static const std::vector<base::TrialId> none;
        return none;
    }
    /// `num_trials` or the space of the study has changed. (Every configuration so far lies in the space.)
    virtual void study_changed(const study::StudySpec&) {}
    virtual void snapshot(study::Encoder& out) const = 0;
    /// Into a scheduler made for the same study. Throws base::FormatError for damage, another version or other rungs.
    virtual void restore(study::Decoder& in) = 0;
    /// Throws std::logic_error naming what does not hold. Costs O(trials): debug builds and tests.
    virtual void check_invariants() const {}
    /// Trials are paused and resumed: a trainable without checkpoints needs restart_paused.
    [[nodiscard]] virtual bool pauses() const = 0;

    /// For the live table: the rungs of all brackets. Empty unless ASHA.
    struct RungView {
        base::Iteration iteration = 0;
        std::uint64_t entries = 0;
        std::uint64_t promoted = 0;
    };
    [[nodiscard]] virtual std::vector<RungView> rungs() const { return {}; }
};

} // namespace ranktune::schedulers
