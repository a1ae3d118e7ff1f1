// SPDX-License-Identifier: Apache-2.0
#pragma once
// CurveWorld: trials in virtual time. Synthetic learning curves replace user code, and one object replaces all ranks,
// their collective operations and their checkpoints. Nothing waits; everything is a function of the seed.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "comm/wire/protocol.hpp"
#include "ranktune/base/time.hpp"
#include "ranktune/study/spec.hpp"
#include "worker/trial/runner.hpp"

namespace ranktune::simulate {

/// How trials behave. Times are uniform, rates are probabilities; each draw is keyed by (seed, curve, trial, iteration
/// or attempt).
struct CurveOptions {
    base::Duration min_iteration = std::chrono::milliseconds(10);
    base::Duration max_iteration = std::chrono::milliseconds(500);
    base::Duration max_formation = std::chrono::milliseconds(50); ///< of a group, from the last member's start
    base::Duration max_save = std::chrono::milliseconds(50);
    base::Duration max_return = std::chrono::milliseconds(200); ///< of user code, after it was told to give up
    double throw_rate = 0.0;                                    ///< share of trials that throw, on one rank
    double nan_rate = 0.0;                                      ///< share of trials whose score becomes NaN
    double done_rate = 0.0;                                     ///< share of trials that end on their own
    double stuck_rate = 0.0;        ///< share of ranks whose user code never returns when told to give up
    double notice_rate = 0.0;       ///< share of members that notice a partner's death on their own
    double unreadable_rate = 0.0;   ///< share of starts that find their checkpoint damaged
    double unreachable_rate = 0.0;  ///< share of starts that cannot read their checkpoint now
    double resize_rate = 0.0;       ///< share of reports after which the group saves and gives its ranks back, unasked
    base::Iteration save_every = 0; ///< 0: only before a pause or an end
    /// If set, seeds what trials report and how they end, instead of the run's seed: then both are the same in every
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

    [[nodiscard]] std::unique_ptr<worker::Runner> make_runner(base::Rank rank);

    /// Sets the virtual time, which never goes back.
    void set_time(base::StudyTime now) { now_ = now; }
    /// Runs the user code of the group that `rank` leads up to the present.
    void run_due(base::Rank rank);
    /// When `rank` has something to do; none: only when its runner is called.
    [[nodiscard]] std::optional<base::StudyTime> next_due(base::Rank rank) const;
    /// Ranks whose `next_due` changed since the last call.
    [[nodiscard]] std::vector<base::Rank> take_touched();
    /// Kills the process of `rank`.
    void kill(base::Rank rank);

    /// How long a searcher needs for a suggestion: about one iteration.
    [[nodiscard]] base::Duration preparation_time(std::uint64_t ticket) const;

    /// Existing checkpoints, kept over all lives of a study.
    std::set<std::string> files;
    void delete_checkpoint(const std::string& path);

    /// Violations: a start from a missing checkpoint, an unlink of a missing one, a group with wrong ranks.
    [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
    [[nodiscard]] std::uint64_t attempts_started() const { return attempts_; }

  private:
    friend class CurveRunner;
    struct Group;

    void join(CurveRunner& runner, const worker::Assignment& assignment);
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
    void schedule(CurveRunner& runner, base::Duration after, worker::RunnerEvent event);
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
    std::map<std::tuple<base::TrialId, base::AttemptId>, std::shared_ptr<Group>> groups_;
    std::vector<base::Rank> touched_;
    std::vector<std::string> problems_;
    std::uint64_t attempts_ = 0;
};

} // namespace ranktune::simulate
