// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stopwatch: training time.

#include <chrono>
#include <optional>

namespace ranktune::drivers {

/// Runs while user code runs.
class Stopwatch {
  public:
    using Clock = std::chrono::steady_clock;
    explicit Stopwatch(double seconds) : seconds_(seconds) {}
    void start() { began_ = Clock::now(); }
    void stop() {
        if (began_) seconds_ += std::chrono::duration<double>(Clock::now() - *began_).count();
        began_.reset();
    }
    [[nodiscard]] double seconds() const { return seconds_; }

  private:
    double seconds_;
    std::optional<Clock::time_point> began_;
};

} // namespace ranktune::drivers
