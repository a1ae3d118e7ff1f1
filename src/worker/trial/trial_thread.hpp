// SPDX-License-Identifier: Apache-2.0
#pragma once
// TrialThread: the Runner that executes user code in this process, on one persistent thread.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "process/wake.hpp"
#include "worker/trial/attempt.hpp"
#include "worker/trial/runner.hpp"

namespace ranktune::worker {

/// Only this thread uses the group's communicator. It shares data with the service thread under one mutex, which is
/// never held while user code runs. A report blocks while `most_events` are queued.
class TrialThread final : public Runner, private AttemptPort {
  public:
    static constexpr std::size_t most_events = 64;

    /// `wake` is called (from the trial thread) when `poll` has something new; `log` receives the trainable's lines.
    /// Everything in `setting` outlives this object.
    TrialThread(AttemptSetting setting, std::function<void()> wake,
                std::function<void(base::TrialId, std::string_view)> log);
    /// Gives up the attempt under way and waits until user code returns. A process that cannot wait must leave by
    /// `_exit`.
    ~TrialThread() override;
    TrialThread(const TrialThread&) = delete;
    TrialThread& operator=(const TrialThread&) = delete;

    void start(const Assignment& assignment) override;
    void decide(const study::Decide& decide) override;
    void interrupt(const study::Verdict& verdict) override;
    void contest() override { contested_.store(true); }
    void abandon() override;
    [[nodiscard]] std::optional<RunnerEvent> poll() override;
    [[nodiscard]] std::uint64_t progress() const override;
    [[nodiscard]] bool waits() const override { return waits_.load(std::memory_order_relaxed); }

    /// An attempt was started and its RunnerEnded is not queued or not polled yet.
    [[nodiscard]] bool busy() const;
    /// For the stack of a hung trial.
    [[nodiscard]] std::thread::native_handle_type native_handle() { return thread_.native_handle(); }

  private:
    void main();
    void await_assignment(std::unique_lock<std::mutex>& lock, Spare& spare);
    void push(RunnerEvent event);
    void tell();
    [[nodiscard]] study::Verdict verdict_on(base::Iteration iteration) const;

    // AttemptPort: called on the trial thread
    void reported(RunnerReported report) override;
    void saved(study::CheckpointRef checkpoint) override { push(RunnerSaved{std::move(checkpoint)}); }
    void unsaved(std::string why) override { push(RunnerUnsaved{std::move(why)}); }
    void named(NamedPlace place) override { push(RunnerNamed{std::move(place)}); }
    [[nodiscard]] bool contested() const override { return contested_.load(); }
    [[nodiscard]] study::Verdict verdict_after(base::Iteration iteration) override;
    [[nodiscard]] std::optional<study::Verdict> verdict_within(base::Iteration iteration,
                                                               std::chrono::milliseconds patience) override;
    [[nodiscard]] int news() const override { return news_.fd(); }
    void heard() noexcept override { news_.clear(); }
    void progressed() noexcept override { progress_.fetch_add(1, std::memory_order_relaxed); }
    void waits(bool waits) noexcept override { waits_.store(waits, std::memory_order_relaxed); }
    [[nodiscard]] const std::atomic<bool>& abort_flag() const override { return abort_; }
    void log(base::TrialId trial, std::string_view line) override { log_(trial, line); }

    AttemptSetting setting_;
    CheckpointWriter writer_; ///< used by the trial thread only
    std::function<void()> wake_;
    std::function<void(base::TrialId, std::string_view)> log_;
    std::atomic<bool> abort_{false};
    std::atomic<std::uint64_t> progress_{0};
    std::atomic<bool> waits_{false};
    std::atomic<bool> contested_{false};

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    process::Waker news_;                  ///< for waits of the attempt that are not for `changed_` alone
    std::optional<Assignment> assignment_; ///< set from start until RunnerEnded is queued
    bool taken_ = false;                   ///< the trial thread works on the assignment
    bool quit_ = false;
    // What the head has said about the attempt
    base::Iteration decision_point_ = 0;
    std::optional<study::Verdict> order_;     ///< pause or stop, obeyed at the next report
    std::optional<study::Decide> last_go_on_; ///< newest decision to go on; applies to one iteration
    std::deque<RunnerEvent> events_;
    std::thread thread_; // last: starts when all members above exist
};

} // namespace ranktune::worker
