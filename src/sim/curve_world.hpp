// SPDX-License-Identifier: Apache-2.0
#pragma once
// CurveWorld: trials in virtual time. Synthetic learning curves stand in for user code, and one object for all the
// ranks, their collective operations and their checkpoints. Nothing waits; everything is a function of the seed.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "ranktune/base/time.hpp"
#include "ranktune/study/spec.hpp"
#include "trial/runner.hpp"
#include "wire/protocol.hpp"

namespace ranktune::sim {

/// How trials behave. Times are drawn uniformly, rates are probabilities; each draw is keyed by (seed, curve, trial,
/// iteration or attempt).
struct CurveOptions {
    base::Duration min_iteration = std::chrono::milliseconds(10);
    base::Duration max_iteration = std::chrono::milliseconds(500);
    base::Duration max_formation = std::chrono::milliseconds(50); ///< of a group, from the last member's start
    base::Duration max_save = std::chrono::milliseconds(50);
    base::Duration max_return = std::chrono::milliseconds(200); ///< of user code, after it was told to give up
    double throw_rate = 0.0;                                    ///< share of trials that throw, on one rank
    double nan_rate = 0.0;                                      ///< share of trials whose score becomes NaN
    double done_rate = 0.0;                                     ///< share of trials that end by themselves
    double stuck_rate = 0.0;        ///< share of the ranks told to give up whose user code never returns
    double notice_rate = 0.0;       ///< share of the members that notice a partner's death by themselves
    double unreadable_rate = 0.0;   ///< share of the starts from a checkpoint that find it damaged
    double unreachable_rate = 0.0;  ///< and of those that cannot read it now
    base::Iteration save_every = 0; ///< 0: only before a pause or an end
    /// What trials report and how they end depends on this number instead of the seed of the run: the same in every
    /// life.
    std::optional<std::uint64_t> fate;
    double spread =
        0.0; ///< iteration times of a trial are multiplied by e^(spread * (2 u - 1)), u drawn once per trial
};

class CurveRunner;

/// All ranks of one simulated job. Used by one thread. Runners must not outlive it.
class CurveWorld {
  public:
    CurveWorld(const study::StudySpec& spec, CurveOptions options, std::uint64_t seed);
    ~CurveWorld();
    CurveWorld(const CurveWorld&) = delete;
    CurveWorld& operator=(const CurveWorld&) = delete;

    [[nodiscard]] std::unique_ptr<trial::Runner> make_runner(base::Rank rank);

    /// Virtual time; never back.
    void set_time(base::StudyTime now) { now_ = now; }
    /// Lets user code of the group that `rank` leads reach the present.
    void run_due(base::Rank rank);
    /// When `rank` has something to do; none: not before somebody calls its runner.
    [[nodiscard]] std::optional<base::StudyTime> next_due(base::Rank rank) const;
    /// Ranks whose `next_due` changed since the last call.
    [[nodiscard]] std::vector<base::Rank> take_touched();
    /// The process of `rank` is gone.
    void kill(base::Rank rank);

    /// How long a searcher takes for a suggestion: as long as an iteration, about.
    [[nodiscard]] base::Duration preparation_time(std::uint64_t ticket) const;

    /// Checkpoints that exist; kept over several lives of a study.
    std::set<std::string> files;
    void delete_checkpoint(const std::string& path);

    /// What should never happen: a start from a missing checkpoint, an unlink of a missing one, a group of wrong ranks.
    [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
    [[nodiscard]] std::uint64_t attempts_started() const { return attempts_; }

  private:
    friend class CurveRunner;
    struct Group;

    void join(CurveRunner& runner, const trial::Assignment& assignment);
    void leave(CurveRunner& runner);
    void step(Group& group);
    [[nodiscard]] std::optional<study::AttemptOutcome> load(const Group& group) const;
    void iterate(Group& group);
    void after_report(Group& group);
    void obey(Group& group, const study::Verdict& verdict);
    void publish(Group& group);
    void train_on(Group& group);
    void save(Group& group);
    void end_all(Group& group, study::AttemptOutcome outcome);
    void schedule(CurveRunner& runner, base::Duration after, trial::RunnerEvent event);
    void give_up(CurveRunner& runner);
    void break_group(Group& group);
    [[nodiscard]] double draw(std::uint32_t trial, std::uint32_t what) const;
    [[nodiscard]] double draw_fate(std::uint32_t trial, std::uint32_t what) const;
    [[nodiscard]] base::Duration iteration_time(std::uint32_t trial, base::Iteration iteration) const;
    [[nodiscard]] base::Duration draw(std::uint32_t trial, std::uint32_t what, base::Duration low,
                                      base::Duration high) const;
    [[nodiscard]] double score(base::TrialId trial, base::Iteration iteration) const;

    const study::StudySpec& spec_;
    CurveOptions options_;
    std::uint64_t seed_;
    base::StudyTime now_{};
    std::map<base::Rank, CurveRunner*> runners_;
    std::map<std::tuple<base::TrialId, base::Attempt>, std::shared_ptr<Group>> groups_;
    std::vector<base::Rank> touched_;
    std::vector<std::string> problems_;
    std::uint64_t attempts_ = 0;
};

} // namespace ranktune::sim
