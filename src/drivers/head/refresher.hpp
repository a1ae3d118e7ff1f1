// SPDX-License-Identifier: Apache-2.0
#pragma once
// Refresher: does something again and again beside the head's loop, and never takes more than a small share of the
// time.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace ranktune::drivers {

/// A thread that calls `refresh` after each `interval`, or later when it is costly: it may use a twentieth of the time.
class Refresher {
  public:
    /// `refresh` must not throw. What it touches outlives this object.
    Refresher(std::chrono::milliseconds interval, std::function<void()> refresh);
    ~Refresher(); ///< as stop()
    Refresher(const Refresher&) = delete;
    Refresher& operator=(const Refresher&) = delete;

    /// Waits for a call under way; none comes after it. May be called by any thread, again too.
    void stop();

  private:
    void main();

    std::chrono::milliseconds interval_;
    std::function<void()> refresh_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool quit_ = false;
    std::once_flag joined_;
    std::thread thread_; // last: starts when everything above is there
};

} // namespace ranktune::drivers
