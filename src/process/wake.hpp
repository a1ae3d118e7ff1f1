// SPDX-License-Identifier: Apache-2.0
#pragma once
// Waker: an interruptible sleep for polling loops. Another thread's wake() or a signal ends the nap early.

#include <chrono>
#include <cstdint>

#include "ranktune/base/time.hpp"

namespace ranktune::process {

/// Owns an eventfd. `nap` belongs to one thread; `wake` may be called from any.
class Waker {
  public:
    Waker(); ///< throws base::IoError when the process is out of file descriptors
    ~Waker();
    Waker(const Waker&) = delete;
    Waker& operator=(const Waker&) = delete;

    /// Ends the current nap, or the next one at once.
    void wake() noexcept;
    /// Returns after `time`, earlier when woken or by a datagram to `bell` (true; read here), or when `signal_fd` has
    /// something to read; -1: none.
    bool nap(std::chrono::microseconds time, int signal_fd = -1, int bell = -1) noexcept;
    /// Readable from `wake` until `clear`, for another kind of wait.
    [[nodiscard]] int fd() const { return event_; }
    void clear() noexcept;

  private:
    int event_ = -1;
};

/// Returns when the descriptor has something to read, after `time` at the latest; -1: then.
void await_readable(int fd, std::chrono::nanoseconds time) noexcept;

/// The time until `wake_at`, at most `nap`.
[[nodiscard]] std::chrono::microseconds nap_until(base::StudyTime wake_at, base::StudyTime now,
                                                  std::chrono::microseconds nap);

/// Nap length: about a quarter of the idle time so far, within the limits. So a reaction is late by at most a quarter
/// of the wait, and a long wait costs nothing. A thread that is rung for naps as long as it may.
class AdaptiveNap {
  public:
    using Clock = std::chrono::steady_clock;

    AdaptiveNap(std::chrono::microseconds shortest, std::chrono::microseconds longest, std::chrono::microseconds rung)
        : shortest_(shortest), longest_(longest), rung_(rung), busy_(Clock::now()) {}
    /// Something happened: the next naps are short again.
    void busy(Clock::time_point now) { busy_ = now; }
    /// `rung`: nothing is missed meanwhile.
    [[nodiscard]] std::chrono::microseconds next(Clock::time_point now, bool rung = false) const;

  private:
    std::chrono::microseconds shortest_;
    std::chrono::microseconds longest_;
    std::chrono::microseconds rung_;
    Clock::time_point busy_;
};

/// The study's time in this process: continues from `resumed` with the monotonic clock.
class ProcessClock {
  public:
    explicit ProcessClock(base::StudyTime resumed = {}) : resumed_(resumed), began_(std::chrono::steady_clock::now()) {}
    [[nodiscard]] base::StudyTime now() const { return resumed_ + (std::chrono::steady_clock::now() - began_); }

  private:
    base::StudyTime resumed_;
    std::chrono::steady_clock::time_point began_;
};

/// CPU seconds of this process so far, all threads.
[[nodiscard]] double process_cpu_seconds();

} // namespace ranktune::process
