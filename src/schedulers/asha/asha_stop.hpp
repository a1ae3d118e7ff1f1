// SPDX-License-Identifier: Apache-2.0
#pragma once
// ASHA without pauses: at a rung a trial goes on or is stopped, by one of two rules.

#include <cstdint>
#include <functional>
#include <vector>

#include "ranktune/schedulers/objective_reader.hpp"
#include "ranktune/schedulers/scheduler.hpp"
#include "schedulers/rungs/levels.hpp"
#include "schedulers/rungs/pareto_rung.hpp"
#include "schedulers/rungs/ranked_split.hpp"

namespace ranktune::schedulers {

/// Rule `floor`: a trial goes on iff it is among the max(floor(m / eta), 1) best of the m entries of the rung, itself
/// included. Rungs are first * eta^k < ceiling, then the ceiling, where trials end. A report is entered at the highest
/// rung it has reached; the ones below count as passed. A trial that failed for good is entered as worst at the rung it
/// was heading for.
///
/// Rule `ray`: what Ray Tune's AsyncHyperBandScheduler does. Rungs are first * eta^k <= ceiling; fractional ones are
/// compared as their ceilings. At the ceiling a trial stops without a comparison (stop_last_trials). Otherwise a report
/// is compared at the highest rung reached where the trial has no entry yet, so a trial that skipped a rung may be
/// compared there by a later report; with stop_last_trials = false, only if that is the highest rung reached. The trial
/// stops iff its score lies strictly below the (1 - 1/eta) quantile (linear interpolation) of the entries made before;
/// the first one goes on. Then it is entered, also when it stops, and also when a stopper or its trainable ends it at
/// that report, the ceiling included. NaN is left out of the quantile and never stops; a failed trial is not entered.
///
/// With several objectives, rule `floor` only, a rung ranks its newest entries as in ParetoRung.
///
/// Cost per report: between rungs one look-up; at a rung O(log entries), or ParetoRung's. 16 bytes per trial and per
/// entry.
class AshaStop final : public Scheduler {
  public:
    enum class Rule : std::uint8_t { floor, ray };
    /// The largest number of rungs of a bracket.
    static constexpr std::size_t max_rungs = 64;
    struct Options {
        Rule rule = Rule::floor;
        double first_rung = 1.0;      ///< floor: an integer >= 1; ray: > 0
        double eta = 3.0;             ///< floor: an integer >= 2; ray: > 1
        base::Iteration ceiling = 1;  ///< >= first_rung
        std::uint32_t brackets = 1;   ///< 1 .. 255; bracket b starts at first_rung * eta^b
        bool stop_last_trials = true; ///< ray only
        std::uint64_t seed = 0;
        Allotment allotment = Allotment::ray; ///< of new trials to brackets; floor only
    };
    /// Throws base::UsageError when a bracket has more than max_rungs rungs.
    AshaStop(const Options& options, const study::Objective& objective);

    [[nodiscard]] std::string_view name() const override { return "asha"; }
    [[nodiscard]] study::Verdict decide(const Report& report, bool contended) const override;
    [[nodiscard]] Work next(const Pool& pool) const override {
        return pool.can_create ? Work(Create{bracket_of_(pool.trial)}) : Work(NothingLeft{});
    }
    [[nodiscard]] base::Iteration next_decision_point(base::TrialId trial, base::Iteration current) const override;
    void apply(const study::Record& record) override;
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;
    void check_invariants() const override;
    [[nodiscard]] bool pauses() const override { return false; }
    /// `promoted`: trials that went on.
    [[nodiscard]] std::vector<RungView> rungs() const override;

  private:
    struct Slot {
        std::uint64_t entered = 0; ///< bit k: has an entry at rung k of its bracket, or (floor) passed it
        std::uint8_t bracket = 0;
        bool closed = false;
    };
    struct Rung {
        base::Iteration level = 0;
        std::uint64_t entries = 0;  ///< NaN included
        std::uint64_t promoted = 0; ///< entries that went on
        RankedSplit ranked;         ///< without NaN (ray); empty with several objectives
        ParetoRung compared{};      ///< several objectives only
    };

    [[nodiscard]] std::size_t rungs_of(std::uint8_t bracket) const { return first_[bracket + 1U] - first_[bracket]; }
    [[nodiscard]] std::optional<std::size_t> rung_to_enter(const Slot& slot, base::Iteration iteration) const;
    [[nodiscard]] study::Verdict decide_floor(const Rung& rung, const Report& report) const;
    [[nodiscard]] study::Verdict decide_ray(const Rung& rung, const Report& report) const;
    [[nodiscard]] bool ends_at_ceiling(base::Iteration iteration) const {
        return iteration >= options_.ceiling && options_.stop_last_trials;
    }

    void on(const study::Reported& record);
    void on(const study::MetricDefined& record) { objective_.apply(record); }
    void on(const study::TrialCreated& record);
    void on(const study::TrialClosed& record);
    void on(const study::TrialReopened& record);
    [[nodiscard]] bool several() const { return objective_.objective().several(); }
    [[nodiscard]] bool is_in_best(const Rung& rung, const Report& report) const;
    void enter(Slot& slot, std::size_t rung, base::TrialId trial, const study::Score& score, bool is_nan, bool goes_on);

    Options options_;
    BestCount count_;
    ObjectiveReader objective_;
    std::vector<Rung> rungs_;        ///< bracket by bracket, ascending levels
    std::vector<std::size_t> first_; ///< position of each bracket's first rung in rungs_; one more at the end
    std::vector<Slot> slots_;        ///< position is the TrialId
    std::function<std::uint32_t(base::TrialId)> bracket_of_;
};

} // namespace ranktune::schedulers
