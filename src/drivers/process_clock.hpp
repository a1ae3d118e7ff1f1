// SPDX-License-Identifier: Apache-2.0
#pragma once
// The time of one process.

#include <chrono>

#include "ranktune/base/time.hpp"

namespace ranktune::drivers {

/// This process's monotonic time on the time line of the study: goes on from `resumed` and leaves out what was before.
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

} // namespace ranktune::drivers
