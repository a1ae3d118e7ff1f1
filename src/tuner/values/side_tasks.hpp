// SPDX-License-Identifier: Apache-2.0
#pragma once
// Side tasks of a study: which are due, which run, and what became of them.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ranktune/study/record.hpp"
#include "ranktune/study/spec.hpp"
#include "tuner/values/trial.hpp"

namespace ranktune::tuner {

/// A side task, and its newest attempt.
struct SideWork {
    /// waiting: for a rank; `after`: for the end of everything else. done: it has ended with success.
    enum class Phase : std::uint8_t { waiting = 0, running = 1, done = 2, failed = 3 };
    SideTask task;
    Phase phase = Phase::waiting;
    AttemptId attempt;                       ///< zero: it was never started
    Rank rank;                               ///< of the attempt
    std::optional<CheckpointRef> checkpoint; ///< that the attempt reads
    std::uint32_t failures = 0;
    std::uint32_t losses = 0; ///< attempts lost with their rank
    StudyTime due;
    StudyTime started; ///< the attempt
    StudyTime ended;
    std::vector<NamedMetric> metrics; ///< of the attempt
    Failure failure;                  ///< of the attempt that ended last; empty: it did not fail
    bool again = false;               ///< `after`: there were more trials while it ran
    static void fields(auto&& each, auto& w) {
        each(w.task, w.phase, w.attempt, w.rank, w.checkpoint, w.failures, w.losses, w.due, w.started, w.ended,
             w.metrics, w.failure, w.again);
    }
};

/// "waiting", "running", "done", "failed".
[[nodiscard]] std::string_view name(SideWork::Phase phase);

class SideTasks {
  public:
    using Table = std::map<TrialId, SideWork>; ///< by study::unit_of: those of trials first, in the order of trials

    [[nodiscard]] const Table& all() const { return table_; }
    /// Null: there is none.
    [[nodiscard]] const SideWork* find(const SideTask& task) const;
    [[nodiscard]] const std::set<TrialId>& waiting() const { return waiting_; }
    [[nodiscard]] const std::set<TrialId>& running() const { return running_; }
    /// Trials may begin.
    [[nodiscard]] bool is_prepared() const;
    /// The task of this trial has not ended well: its checkpoint is needed. One that failed may run again.
    [[nodiscard]] bool lacks(TrialId trial) const;
    /// The attempt of the unit that runs is this one; null: it is not.
    [[nodiscard]] const SideWork* current(TrialId unit, AttemptId attempt) const;
    /// How many are over, for good or for this start.
    [[nodiscard]] std::uint64_t over() const { return table_.size() - waiting_.size() - running_.size(); }

    // ---- mutators; all throw base::FormatError for an impossible change
    /// `before` and `after`, as the study file has them (now). None runs: what was cut off and has no command any more
    /// goes.
    void plan(const StudySpec& spec, bool has_trials, StudyTime now);
    /// The trial has ended, and its task is due; one that is there already stays.
    void add_after(TrialId trial, StudyTime now);
    /// The trial has failed after all. Its task has not begun.
    void forget_after(TrialId trial);
    /// There is a trial again that has not ended: `after` runs again, if it has run.
    void study_goes_on();
    /// What runs is lost with the job, which it may have killed.
    void job_died();
    /// A new start: those that ran wait again, but for tasks of trials that were lost more than `max_losses` times; a
    /// failed `before` or `after` is tried again.
    void begin_incarnation(std::uint32_t max_losses);
    void begin(const SideStarted& started);
    void report(const SideReported& reported);
    /// `charged`: the failure or loss counts.
    void end(const SideEnded& ended, bool charged);
    /// A task of a trial that failed waits, with all its retries.
    void reopen(const SideTask& task);

    static void fields(auto&& each, auto& r) {
        std::vector<SideWork> all;
        for (const auto& [unit, work] : r.table_) all.push_back(work);
        each(all);
        if constexpr (study::is_read<decltype(r)>) {
            r.table_.clear();
            for (SideWork& work : all) r.table_.emplace(unit_of(work.task), std::move(work));
            r.recount();
        }
    }
    /// Throws std::logic_error naming what does not hold.
    void check_invariants() const;

  private:
    [[nodiscard]] SideWork& at(const SideTask& task);
    void add(const SideTask& task, StudyTime now);
    void set_phase(SideWork& work, SideWork::Phase phase);
    void forget(const SideTask& task);
    void recount();

    Table table_;
    // Derived.
    std::set<TrialId> waiting_;
    std::set<TrialId> running_;
};

} // namespace ranktune::tuner
