// SPDX-License-Identifier: Apache-2.0
#pragma once
// Background: a thread that does one thing beside a loop that must not wait.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace ranktune::process {

/// Calls its work when it is asked to, when the time has come, or both. The thread starts with the first call that is
/// due. A member of this type comes last: what its work touches is there when the thread starts, and until it has
/// ended.
class Background {
  public:
    using Clock = std::chrono::steady_clock;
    /// No time: called only when asked.
    static constexpr Clock::time_point when_asked = Clock::time_point::max();
    /// Called on the thread, one call after the other, with no lock held; must not throw. Returns when to call it
    /// again without being asked.
    using Work = std::function<Clock::time_point()>;

    /// `first`: when to call it for the first time without being asked.
    explicit Background(Work work, Clock::time_point first = when_asked);
    ~Background(); ///< as stop()
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

    /// The work is called soon; once more if a call is under way. Any thread; never waits for the work.
    void ask();
    /// Waits for the call under way and the one that was asked for; none comes after it. Any thread, again too.
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

/// Work that is done after each `interval`, or later when it is costly: it takes at most a twentieth of the time.
[[nodiscard]] Background::Work sparingly(std::chrono::milliseconds interval, std::function<void()> work);

} // namespace ranktune::process
