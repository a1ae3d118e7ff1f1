// SPDX-License-Identifier: Apache-2.0
#pragma once
// Population-based training (Jaderberg et al., "Population Based Training of Neural Networks", arXiv 1711.09846, 2017).

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "ranktune/schedulers/objective_reader.hpp"
#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/space/search_space.hpp"
#include "ranktune/study/algorithm.hpp"
#include "ranktune/study/spec.hpp"
#include "schedulers/checks.hpp"
#include "schedulers/population/standings.hpp"
#include "schedulers/saved_state.hpp"

namespace ranktune::schedulers {

/// Every trial is a *member* for life. At its ready points (multiples of `interval`, none before `burn_in`) it waits
/// for a verdict: it goes on, or exploits a *donor*, which is another member that does better: it takes over the newest
/// checkpoint that the donor has committed in its present generation, and the donor's configuration, in which the
/// explored hyper-parameters have changed. Whom it exploits, and what changes, is a function of the records and of
/// (seed, trial, ready point).
///
///   interval 10, quantile 0.25, five members at iteration 10 with 0, 50, 100, 150, 200:   groups of ceil(5/4) = 2;
///   #0 reports -100 at 20 after all others have reported 50 ... 200 there: exploits #3 or #4
///
/// Whoever comes to a ready point before there are enough to judge it is judged by its score at the one before, among
/// those that have been there by now. So the fastest members of a small population exploit others, too. Where the
/// groups of the whole population are of one member, and there is something to explore, equal scores count as better.
///
/// A member goes on and saves its state (Reason::published) when others may want it. Members that have trained least go
/// first where there are more of them than groups: at a ready point a member pauses when one that has trained less
/// waits.
///
/// Synchronous: every ready point is a barrier. The reports there are judged together, against each other, and who
/// exploits somebody takes over the state that the donor had at this ready point. So the members that go on get their
/// verdicts first, in trial order, and those of the upper group save their state; the others get theirs when the state
/// that they take over is saved. If it will not be (the donor's ranks were lost, or it got to its next ready point
/// without), they take an older one, or go on as they are. Members that can only save when they pause do so before the
/// first verdict, if others take over their state. In a tournament, whoever loses to a member that itself takes
/// over another one takes over that one, too.
///
/// Cost of a report: O(log members) at a ready point, O(1) between two. Memory: 16 bytes for each report at a ready
/// point, and the configurations of all generations of each member.
class Population final : public Scheduler {
  public:
    /// Who exploits whom.
    enum class Selection : std::uint8_t {
        truncation, ///< one of the lower group a member of the upper group; group size as in Ray: ceil(n q), n/2 at
                    ///< most
        tournament, ///< each a random other member, if that one is better
        t_test      ///< the same, if the mean of its last Options::window scores is higher, by Welch's test at 5 %
    };
    /// Which scores are compared.
    enum class Compare : std::uint8_t {
        equal_iteration, ///< those at the same ready point, of the members that have been there
        latest           ///< the newest of each member (the paper, and Ray): fast members have an edge
    };
    struct Options {
        ReadyPoints points;
        double quantile = 0.25; ///< in (0, 0.5]
        Selection selection = Selection::truncation;
        Compare compare = Compare::equal_iteration;
        bool synchronous = false; ///< requires equal_iteration
        /// See schedulers::saved_before_verdict: a member gives away the state of its newest ready point. Requires not
        /// `synchronous`.
        bool saved_before_verdict = false;
        bool pauses_to_save = false; ///< a program gives a checkpoint with its report, before the verdict on it
        double resample = 0.25;      ///< probability that an explored hyper-parameter is drawn anew
        std::size_t window = 10;     ///< scores of each that the t-test compares, the newest; >= 2
        std::uint32_t members = 1;   ///< study.num_trials
        std::uint64_t seed = 0;
    };
    /// `kept`: the hyper-parameter that no exploit changes, because it says how many ranks a member has; may be empty.
    Population(const Options& options, const study::Objective& objective, space::SearchSpace space,
               std::vector<study::Explored> explore, std::string kept);

    [[nodiscard]] std::string_view name() const override { return "pbt"; }
    [[nodiscard]] study::Verdict decide(const Report& report, bool contended) const override;
    [[nodiscard]] Exploit exploit(const Report& report) const override;
    [[nodiscard]] std::optional<Exploit> exploit_instead(base::TrialId trial) const override;
    [[nodiscard]] std::optional<Exploit> replacement(base::TrialId trial) const override;
    [[nodiscard]] bool exploits() const override { return true; }
    [[nodiscard]] bool pauses() const override { return true; }
    [[nodiscard]] std::optional<base::Iteration> donated(base::TrialId trial) const override;
    [[nodiscard]] bool saves_first(base::TrialId trial, base::Iteration iteration) const override;
    [[nodiscard]] Work next(const Pool& pool) const override;
    [[nodiscard]] base::Iteration next_decision_point(base::TrialId, base::Iteration current) const override {
        return options_.points.after(current);
    }
    [[nodiscard]] bool synchronous() const override { return options_.synchronous; }
    [[nodiscard]] bool is_barrier(base::TrialId trial, base::Iteration iteration) const override;
    [[nodiscard]] std::optional<base::TrialId> next_verdict(base::Iteration barrier) const override;
    [[nodiscard]] std::vector<base::TrialId> to_save(base::Iteration barrier) const override;
    void apply(const study::Record& record) override;
    void study_changed(const study::StudySpec& spec) override {
        options_.members = spec.num_trials;
        space_ = spec.space;
    }
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;
    void check_invariants() const override;

  private:
    enum class Phase : std::uint8_t { waiting, running, paused, closed, failed };
    /// What a member that should exploit somebody finds.
    struct Choice {
        bool wanted = false;
        std::optional<base::TrialId> donor;
        static void fields(auto&& each, auto& r) { each(r.wanted, r.donor); }
    };
    struct Member {
        space::Configuration configuration;
        std::vector<space::Configuration> before; ///< one for each generation, the oldest first
        std::vector<base::TrialId> donors;        ///< of each generation but the first
        std::vector<base::TrialId> unreadable;    ///< donors at `judged` whose state could not be read
        std::vector<SavedState> saved;            ///< committed and not released, the oldest first
        std::vector<double> window;               ///< t_test: last scores of this generation, the oldest first
        base::Iteration iteration = 0;            ///< highest that was reported
        base::Iteration judged = 0;               ///< its newest ready point; 0: none
        std::uint32_t judged_as = 0;              ///< its generation there
        double score = 0.0;                       ///< at that ready point
        Phase phase = Phase::waiting;
        bool held = false; ///< its report of `judged` waits at the barrier
        Choice choice;     ///< while held, once the verdicts at this barrier have begun
        [[nodiscard]] Standings::Place place() const { return {judged, score}; }
        [[nodiscard]] std::uint32_t generation() const { return static_cast<std::uint32_t>(before.size()); }
        static void fields(auto&& each, auto& r) {
            each(r.configuration, r.before, r.donors, r.unreadable, r.saved, r.window, r.iteration, r.judged,
                 r.judged_as, r.score, r.phase, r.held, r.choice);
        }
    };
    using Standing = Standings::Standing;
    using Queue = std::set<std::pair<base::Iteration, base::TrialId>>; ///< the least trained first

    [[nodiscard]] const Member& member(base::TrialId trial) const { return slot_of(members_, trial); }
    [[nodiscard]] Member& member(base::TrialId trial) { return slot_of(members_, trial); }
    [[nodiscard]] Standing standing_of(const Report& report) const;
    [[nodiscard]] Choice choice_of(const Report& report, const Standing& standing) const;
    [[nodiscard]] Choice choose(const Report& report, const Standing& standing) const;
    [[nodiscard]] Choice choose_above(const Report& report, const Standing& standing) const;
    [[nodiscard]] Choice choose_opponent(const Report& report) const;
    [[nodiscard]] Exploit exploit_of(const Report& report, base::TrialId donor) const;
    /// The state of this other one could not be read when it was to be taken over at this ready point.
    [[nodiscard]] bool is_unreadable(const Report& report, base::TrialId donor) const;
    /// Its newest one, or that of its ready point; null: nothing that others could take over. A member that has failed
    /// has none: its state may be why.
    [[nodiscard]] const SavedState* publication(const Member& member) const;
    /// Synchronous: it has yet to save its state of this ready point.
    [[nodiscard]] bool is_to_save(base::TrialId trial, base::Iteration iteration) const;
    [[nodiscard]] bool can_donate(base::TrialId trial, base::Iteration iteration) const;
    [[nodiscard]] bool must_wait(const Choice& choice, base::Iteration barrier) const;
    /// The report that a member holds at its barrier.
    [[nodiscard]] Report held_report(base::TrialId trial) const;
    /// Random numbers for the decision about this trial at this ready point.
    [[nodiscard]] base::RngStream stream(base::Purpose purpose, const Report& report) const;
    [[nodiscard]] bool is_better(const study::Ranked& entry, const Report& report) const;
    /// Where groups are of one member, equal scores count as better if there is something to explore.
    [[nodiscard]] bool is_tie(const study::Ranked& entry, const Report& report) const;
    [[nodiscard]] std::optional<Report> judged_late(const Report& report, const Standing& standing) const;
    /// How far the member has trained that has trained least of those that wait for ranks (0: one is yet to be
    /// created), if less than `iteration`.
    [[nodiscard]] std::optional<base::Iteration> waits_behind(base::Iteration iteration, bool contended) const;

    void apply_one(const study::Record& record);
    void created(const study::TrialCreated& record);
    void arrived(base::TrialId trial, base::Iteration iteration, double score);
    void held(const study::ReportHeld& record);
    void reported(const study::Reported& record);
    void begin_verdicts(base::Iteration barrier);
    void release(base::TrialId trial);
    void look_at_donors(const study::Record& record);
    void list_follower(base::TrialId trial);
    void exploited(const study::Exploited& record);
    void undone(const study::ExploitUndone& record);
    void closed(const study::TrialClosed& record);
    void attempt_over(base::TrialId trial);
    void set_phase(base::TrialId trial, Phase phase);
    [[nodiscard]] static bool is_over(Phase phase) { return phase >= Phase::closed; }
    void restored(base::TrialId trial);
    /// The queue that members of this phase stand in; null: none.
    [[nodiscard]] Queue* queue_of(Phase phase);
    void check_barrier() const;

    Options options_;
    ObjectiveReader objective_;
    space::SearchSpace space_;
    std::vector<study::Explored> explore_;
    std::string kept_;
    std::vector<Member> members_; ///< position is the TrialId
    Standings standings_;
    base::Iteration barrier_ = 0; ///< newest whose verdicts have begun
    // Derived.
    Queue waiting_;
    Queue paused_;
    Queue held_;                    ///< members whose report is held, by ready point
    std::set<base::TrialId> ready_; ///< those at `barrier_` whose verdict can be given
    struct Followers {
        bool wait = false; ///< for the donor's state
        std::vector<base::TrialId> members;
    };
    std::map<base::TrialId, Followers> followers_; ///< of each donor at `barrier_`
};

} // namespace ranktune::schedulers
