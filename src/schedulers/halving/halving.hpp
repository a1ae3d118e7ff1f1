// SPDX-License-Identifier: Apache-2.0
#pragma once
// Synchronous successive halving in brackets: the core of "hyperband" and of "topk".

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ranktune/schedulers/objective_reader.hpp"
#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/study/spec.hpp"
#include "schedulers/halving/bracket_table.hpp"
#include "schedulers/rungs/ranking.hpp"

namespace ranktune::schedulers {

/// Trials fill one bracket after the other, in the order of their numbers. In a bracket a trial pauses at each rung
/// until the rung is *settled*: nobody else can come to it, and every trial of it has reported there or is over. Then
/// the best of those that are left go on, best first, whenever there is room. (A trial that is over counts as worst.)
/// Promotions come before new trials, those of older brackets first (Falkner et al., ICML 2018): a new bracket opens
/// when the others have no work.
///
///   a bracket of 4 trials, eta 2:  #0 #1 #2 report at the first rung -> pause     #3 fails
///   next() -> Promotion #1, the best of three; then the second best: floor(4 / 2) go on, as if nobody had failed
///
/// - A rung of n trials promotes floor(n / eta), at least one. n is the planned number: failures do not lower it. In a
///   bracket that is cut off because no more trials can be created, n is the number of those that were.
/// - A trial that was chosen and fails before it goes on leaves its place to the next best.
/// - A reopened trial is awaited again at the rung that it was heading for. A rung that has promoted all it can stops
///   those that come late (Reason::not_in_top).
/// - The last trial of a rung to report goes on in place if it is chosen and no other trial waits for ranks.
///
/// Cost of a report: at a rung O(log trials of the rung), otherwise one look-up. Memory: 16 bytes per trial, and 32 for
/// each that is paused; up to twice that, because arrays double.
class Halving final : public Scheduler {
  public:
    struct Options {
        std::string name;                   ///< of the scheduler in study files
        std::vector<BracketShape> brackets; ///< bracket b has shape b modulo their number; not empty
        std::uint32_t eta = 3;              ///< >= 2
        /// If > 0, so many go on from each rung, not one in eta; and one that fails later is replaced by the next best.
        std::uint32_t keep = 0;
        std::uint32_t num_trials = std::numeric_limits<std::uint32_t>::max(); ///< of the study, at most
    };
    Halving(Options options, const study::Objective& objective);

    [[nodiscard]] std::string_view name() const override { return options_.name; }
    [[nodiscard]] study::Verdict decide(const Report& report, bool contended) const override;
    [[nodiscard]] Work next(const Pool& pool) const override;
    [[nodiscard]] base::Iteration next_decision_point(base::TrialId trial, base::Iteration current) const override;
    [[nodiscard]] bool out_of_reach(base::TrialId trial) const override;
    [[nodiscard]] bool holds_up_others(base::TrialId trial) const override;
    [[nodiscard]] const std::vector<base::TrialId>& fell_out() const override { return fell_out_; }
    void study_changed(const study::StudySpec& spec) override { options_.num_trials = spec.num_trials; }
    void apply(const study::Record& record) override;
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;
    void check_invariants() const override;
    [[nodiscard]] bool pauses() const override { return true; }
    [[nodiscard]] std::vector<RungView> rungs() const override { return views_; }

  private:
    /// heading: for its rung. paused: there.
    enum class Phase : std::uint8_t { heading, paused, closed };
    struct Slot {
        double score = 0.0; ///< while paused
        std::uint32_t bracket = 0;
        std::uint8_t rung = 0;
        Phase phase = Phase::heading;
        bool entered = false; ///< has reported at its rung
        bool failed = false;  ///< closed because it failed
        [[nodiscard]] bool stands() const { return phase == Phase::paused; }
    };
    struct Rung {
        std::uint64_t arrived = 0; ///< trials of this rung or a higher one
        std::uint64_t heading = 0; ///< trials that have yet to report here
        std::uint64_t entries = 0; ///< trials that have reported here
        std::uint64_t failed = 0;  ///< trials that failed, here or in a higher rung
        Ranking standing;          ///< paused
    };
    using Bracket = std::vector<Rung>;
    struct Choice {
        std::size_t rung = 0;
        study::Ranked entry;
    };

    [[nodiscard]] Rung& rung(const Slot& at) { return brackets_[at.bracket][at.rung]; }
    [[nodiscard]] const BracketShape& shape(std::size_t bracket) const {
        return options_.brackets[bracket % options_.brackets.size()];
    }
    [[nodiscard]] base::Iteration level(const Slot& at) const { return shape(at.bracket).levels[at.rung]; }
    [[nodiscard]] bool is_last(const Slot& at) const { return at.rung + 1U == brackets_[at.bracket].size(); }
    [[nodiscard]] bool takes_trials(std::size_t bracket) const;
    [[nodiscard]] std::uint64_t size(std::size_t bracket, std::size_t rung, bool cut) const;
    [[nodiscard]] std::uint64_t kept(std::uint64_t size) const;
    [[nodiscard]] std::uint64_t places_left(const Bracket& bracket, std::size_t rung, std::uint64_t kept) const;
    [[nodiscard]] bool has_no_place(const Slot& at) const;
    [[nodiscard]] bool awaits_nobody_else(const Slot& at, bool cut) const;
    [[nodiscard]] std::optional<Choice> choose(std::size_t bracket, bool cut) const;

    void on(const study::TrialCreated& record);
    void on(const study::Reported& record);
    void on(const study::MetricDefined& record) { objective_.apply(record); }
    void on(const study::TrialPromoted& record);
    void on(const study::TrialClosed& record);
    void on(const study::TrialReopened& record);
    void stand(base::TrialId trial, double score);
    void leave(base::TrialId trial);
    void enter(Slot& at);
    void go_up(base::TrialId trial);
    void count_failure(const Slot& at, bool failed);
    void refresh(std::size_t bracket);
    [[nodiscard]] RungView& view(base::Iteration level);

    void read_slots(study::Decoder& in);
    void derive();
    void place(base::TrialId trial);

    Options options_;
    ObjectiveReader objective_;
    std::vector<Slot> slots_; ///< position is the TrialId
    // Derived from the slots.
    std::vector<Bracket> brackets_;
    std::set<std::size_t> runnable_; ///< brackets that have somebody to promote, not counting one that is cut off
    std::vector<RungView> views_;    ///< of all brackets, ascending levels
    std::vector<base::TrialId> fell_out_;
};

} // namespace ranktune::schedulers
