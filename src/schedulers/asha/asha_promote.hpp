// SPDX-License-Identifier: Apache-2.0
#pragma once
// ASHA that pauses and promotes (Li et al., "A system for massively parallel hyperparameter tuning", MLSys 2020,
// algorithm 2), with brackets.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "ranktune/schedulers/objective_reader.hpp"
#include "ranktune/schedulers/scheduler.hpp"
#include "schedulers/rungs/heap.hpp"
#include "schedulers/rungs/levels.hpp"
#include "schedulers/rungs/pareto_rung.hpp"
#include "schedulers/rungs/ranked_split.hpp"

namespace ranktune::schedulers {

/// A trial pauses at every rung. The best floor(n / eta) of a rung's n entries may go on to the next one, whenever
/// there is room: highest rung first, best first. The last rung is the ceiling; there trials end.
///
/// Entries:
/// - a report at (or, when iterations are skipped, first beyond) the rung that the trial is heading for, once, whatever
///   the verdict (a report without the objective counts as NaN, which is worst); a trial that repeats iterations after
///   a loss is not entered again;
/// - a trial that failed for good, as worst, at the rung it was heading for;
/// - nothing for a trial that a stopper (threshold, plateau, time) or its trainable ended between two rungs.
/// A promotion counts when it is decided and is never taken back, also when the rung changes or the attempt is lost.
///
/// A trial goes on in place, without pausing, when no other trial waits for ranks and `next` would have chosen it.
///
/// Option `delayed` (D-ASHA: Li, Shen et al., "Hyper-Tune", VLDB 2022, as in the authors' code): a rung of which p
/// trials have been promoted promotes another one only if it has at least eta * (p + 1) entries. So never more than
/// floor(n / eta) are promoted, however often the best of the rung change.
///
/// With several objectives a rung ranks its newest entries as in ParetoRung, and only these can be promoted. What is
/// the best of a rung may change with every entry, so no trial is ever out of reach.
///
/// Cost per report: between rungs one look-up; at a rung O(log entries), or ParetoRung's. Memory: 16 bytes per trial,
/// per entry of a rung, per pause, and for each of the best num_trials / eta of a rung; up to twice that, because the
/// arrays double.
class AshaPromote final : public Scheduler {
  public:
    struct Options {
        base::Iteration first_rung = 1;
        std::uint32_t eta = 3;       ///< >= 2
        base::Iteration ceiling = 1; ///< >= first_rung
        std::uint32_t brackets = 1;  ///< 1 .. 255; bracket b starts at first_rung * eta^b
        /// When nothing else is left, the best paused trials of the highest rung go straight to the ceiling, until this
        /// many trials have reached it. 0: as in the paper.
        std::uint32_t finish_top = 1;
        bool delayed = false;
        Allotment allotment = Allotment::ray; ///< of new trials to brackets
        std::uint64_t seed = 0;
        std::uint32_t num_trials = std::numeric_limits<std::uint32_t>::max(); ///< of the study, at most
    };
    AshaPromote(const Options& options, const study::Objective& objective);

    [[nodiscard]] std::string_view name() const override { return "asha"; }
    [[nodiscard]] study::Verdict decide(const Report& report, bool contended) const override;
    [[nodiscard]] Work next(const Pool& pool) const override;
    [[nodiscard]] base::Iteration next_decision_point(base::TrialId trial, base::Iteration current) const override;
    [[nodiscard]] bool out_of_reach(base::TrialId trial) const override;
    [[nodiscard]] const std::vector<base::TrialId>& fell_out() const override { return fell_out_; }
    void study_changed(const study::StudySpec& spec) override;
    void apply(const study::Record& record) override;
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;
    void check_invariants() const override;
    [[nodiscard]] bool pauses() const override { return true; }
    [[nodiscard]] std::vector<RungView> rungs() const override;

  private:
    /// A trial. `rung` is the one that it heads for or, once entered, stands at.
    struct Slot {
        double score = 0.0; ///< of its entry while it stands at a rung; 0 otherwise; several objectives: of its place
        std::uint8_t bracket = 0;
        std::uint8_t rung = 0;
        bool entered : 1 = false;
        bool paused : 1 = false;    ///< at this rung
        bool closed : 1 = false;    ///< in a final phase
        bool finishing : 1 = false; ///< on its way to the ceiling by finish_top
    };
    struct Rung {
        base::Iteration level = 0;
        std::uint8_t bracket = 0;
        std::uint8_t index = 0;
        bool last = false;
        /// The top of `paused` is among the best entries and the rung may promote, so `next` may promote it. (If the
        /// best paused trial is not among them, no other one is.)
        bool promotable = false;
        std::uint64_t promoted = 0;
        RankedSplit entries;   ///< several objectives: the places of `compared`, turned into scores
        ParetoRung compared{}; ///< several objectives only
        /// Paused trials, best on top, with lazy deletion: trials that left stay until they reach the top and block a
        /// promotion (see `refresh`).
        Heap<study::Ranked, BetterFirst> paused{};
        /// The best `reach()` entries, the worst of them on top; all others are out of reach. Derived from the entries.
        Heap<study::Ranked, WorseFirst> within_reach{};
    };

    [[nodiscard]] const Rung& rung(const Slot& slot) const { return rungs_[first_[slot.bracket] + slot.rung]; }
    [[nodiscard]] Rung& rung(const Slot& slot) { return rungs_[first_[slot.bracket] + slot.rung]; }
    [[nodiscard]] bool waits_at(const study::Ranked& entry, const Rung& rung) const;
    [[nodiscard]] bool top_among_best(const Rung& rung) const {
        return !rung.paused.empty() && rung.entries.in_best(rung.paused.top());
    }
    [[nodiscard]] bool several() const { return objective_.objective().several(); }
    [[nodiscard]] bool leads(const Rung& rung, const Report& report) const;
    [[nodiscard]] bool may_promote(const Rung& rung, std::size_t entries) const;
    [[nodiscard]] bool promotable_above(base::Iteration level) const;
    [[nodiscard]] const study::Ranked* best_waiting(const Rung& rung) const;
    struct Candidate {
        const Rung* rung = nullptr;
        const study::Ranked* entry = nullptr; ///< null: there is none
    };
    template <class Pick>
    [[nodiscard]] Candidate highest(Pick pick) const;

    void on(const study::Reported& record);
    void on(const study::MetricDefined& record) { objective_.apply(record); }
    void on(const study::TrialCreated& record);
    void on(const study::TrialPromoted& record);
    void on(const study::TrialClosed& record);
    void on(const study::TrialReopened& record);
    [[nodiscard]] study::Score score_of(const study::Reported& record) const;
    void enter(Slot& slot, base::TrialId trial, const study::Score& score);
    void rank_again(Rung& rung);
    void promote(Slot& slot);
    void set_paused(base::TrialId trial, bool paused);
    void set_finishing(Slot& slot, bool finishing);
    void drop_left(Rung& rung) const;
    void refresh(Rung& rung) const;
    [[nodiscard]] std::size_t reach() const;
    [[nodiscard]] std::optional<base::TrialId> put_in_reach(Rung& rung, const study::Ranked& entry) const;
    void rebuild_reach(Rung& rung) const;

    void read_slots(study::Decoder& in);
    void read_rungs(study::Decoder& in);
    void check_rungs() const;
    void check_slots() const;

    Options options_;
    BestCount count_;
    ObjectiveReader objective_;
    std::vector<Rung> rungs_;        ///< bracket by bracket, ascending levels
    std::vector<std::size_t> first_; ///< position of each bracket's first rung in rungs_
    std::vector<std::size_t> order_; ///< rungs that can promote, highest level first, then lower bracket
    std::vector<Slot> slots_;        ///< position is the TrialId
    std::function<std::uint32_t(base::TrialId)> bracket_of_;
    std::uint64_t active_ = 0;    ///< trials neither paused at a rung nor closed
    std::uint64_t finishing_ = 0; ///< trials on their way to the ceiling by finish_top
    std::uint64_t completed_ = 0; ///< trials that reported at the ceiling
    std::vector<base::TrialId> fell_out_;
};

} // namespace ranktune::schedulers
