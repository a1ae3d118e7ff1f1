// SPDX-License-Identifier: Apache-2.0
#pragma once
// Background: a thread that runs one task beside a loop that must not block; Tasks: one that runs many.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace ranktune::process {

/// Calls its work on request, at given times, or both. The thread starts with the first call that is due. Declare a
/// member of this type last, so that everything the work uses outlives the thread.
class Background {
  public:
    using Clock = std::chrono::steady_clock;
    /// No time: called only on request.
    static constexpr Clock::time_point when_asked = Clock::time_point::max();
    /// Called on the thread, one call at a time, without a lock; must not throw. Returns the time of the next call
    /// without a request.
    using Work = std::function<Clock::time_point()>;

    /// `first`: time of the first call without a request.
    explicit Background(Work work, Clock::time_point first = when_asked);
    ~Background(); ///< as stop()
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

    /// Requests a call; if a call is running, another one follows. Any thread; never waits for the work.
    void ask();
    /// Waits for the running call and a requested one; no call follows. Any thread; may be called repeatedly.
    void stop();

  private:
    void start();
    void main();

    Work work_;
    std::mutex mutex_;
    std::condition_variable changed_;
    Clock::time_point next_;
    bool asked_ = false;
    bool quit_ = false;
    std::once_flag joined_;
    std::thread thread_;
};

/// Calls functions one after the other on a thread of its own. The destructor waits for all that were posted.
class Tasks {
  public:
    Tasks();
    /// `task` must not throw. Any thread; never waits for a task.
    void post(std::function<void()> task);

  private:
    void run_all();

    std::mutex mutex_;
    std::deque<std::function<void()>> tasks_;
    Background thread_;
};

/// Lets a thread run on that cannot be ended and whose result nobody needs. It may use only what it owns, and lives as
/// long as the process.
void leave_behind(std::thread thread);
/// If a thread was left behind, ends the process with `code` once its streams are written: nothing may run beside the
/// destructors of static objects. Otherwise returns.
void end_with_threads_left_behind(int code);

/// Work that is repeated after each `interval`, or later when it is slow: it uses at most a twentieth of the time.
[[nodiscard]] Background::Work sparingly(std::chrono::milliseconds interval, std::function<void()> work);

} // namespace ranktune::process
