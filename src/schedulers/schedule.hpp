// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hyper-parameters that change at given iterations: the schedule of a member of a population, or any other.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/space/search_space.hpp"
#include "ranktune/study/algorithm.hpp"
#include "ranktune/study/spec.hpp"
#include "schedulers/saved_state.hpp"

namespace ranktune::schedulers {

/// Every trial is trained to the ceiling. At the first report at or after a change of the schedule it pauses, which
/// saves its state, and goes on at once from that state with the values of the schedule: a takeover of its own
/// checkpoint. So the record of a configuration, and what a crash leaves, are those of an exploit.
///
///   lr = [[10, 0.05]]:  decide(#0 at 10) -> pause (scheduled)   next() -> promote #0, from its checkpoint of 10
///
/// If the attempt is lost before it has saved that state, the trial trains up to the change again, as it was. If it
/// has paused and its program saved nothing at that iteration, it goes on from its newest checkpoint.
///
/// Cost of a report: O(1); of a change: O(log trials).
class Schedule final : public Scheduler {
  public:
    Schedule(space::SearchSpace space, std::vector<study::Scheduled> schedule, base::Iteration ceiling);

    [[nodiscard]] std::string_view name() const override { return "schedule"; }
    [[nodiscard]] bool exploits() const override { return true; }
    [[nodiscard]] bool pauses() const override { return true; }
    [[nodiscard]] study::Verdict decide(const Report& report, bool contended) const override;
    [[nodiscard]] Work next(const Pool& pool) const override;
    [[nodiscard]] std::optional<Exploit> exploit_at(const Promotion& promotion) const override;
    [[nodiscard]] base::Iteration next_decision_point(base::TrialId trial, base::Iteration current) const override;
    void study_changed(const study::StudySpec& spec) override { space_ = spec.space; }
    void apply(const study::Record& record) override;
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;
    void check_invariants() const override;

  private:
    /// saves: it has paused, and goes on from the state that its attempt saves before it ends.
    enum class Phase : std::uint8_t { runs, saves, paused, over };
    struct Member {
        space::Configuration first;        ///< with which it was made
        std::vector<std::uint32_t> before; ///< `passed` at each of its takeovers, the oldest first
        std::vector<SavedState> saved;     ///< committed and not released, the oldest first
        base::Iteration iteration = 0;     ///< of its newest report
        std::uint32_t passed = 0;          ///< changes of the schedule that it has taken over
        Phase phase = Phase::runs;
        bool obeyed = false; ///< its newest attempt ended because it was told to pause
        [[nodiscard]] std::uint32_t generation() const { return static_cast<std::uint32_t>(before.size()); }
        static void fields(auto&& each, auto& r) {
            each(r.first, r.before, r.saved, r.iteration, r.passed, r.phase, r.obeyed);
        }
    };

    [[nodiscard]] Member& member(base::TrialId trial);
    [[nodiscard]] const Member& member(base::TrialId trial) const;
    /// How many changes of the schedule come up to this iteration.
    [[nodiscard]] std::uint32_t passed_by(base::Iteration iteration) const {
        return static_cast<std::uint32_t>(std::ranges::upper_bound(points_, iteration) - points_.begin());
    }
    [[nodiscard]] bool must_change(const Member& at, base::Iteration iteration) const {
        return at.passed < points_.size() && iteration >= points_[at.passed];
    }
    /// The state that the trial changes with; null: it has not saved that state.
    [[nodiscard]] const SavedState* state_to_change(const Member& at) const;
    [[nodiscard]] space::Configuration configuration_at(const Member& at, base::Iteration iteration) const;
    void apply_to(const study::Exploited& record);
    void apply_to(const study::ExploitUndone& record);
    void attempt_over(base::TrialId trial, bool obeyed);
    void set_phase(base::TrialId trial, Phase phase);

    space::SearchSpace space_;
    std::vector<study::Scheduled> schedule_;
    base::Iteration ceiling_;
    std::vector<base::Iteration> points_; ///< at which something changes, ascending
    std::vector<Member> members_;         ///< position is the base::TrialId
    std::set<base::TrialId> paused_;      ///< derived
};

} // namespace ranktune::schedulers
