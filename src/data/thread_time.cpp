// SPDX-License-Identifier: Apache-2.0
#include "data/thread_time.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

namespace ranktune::data {

namespace {

/// Of one thread: its time on cores, and waiting for them, in ns.
class SchedulerStatistics {
  public:
    SchedulerStatistics() : file_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
    ~SchedulerStatistics() {
        if (file_ >= 0) close(file_);
    }
    SchedulerStatistics(const SchedulerStatistics&) = delete;
    SchedulerStatistics& operator=(const SchedulerStatistics&) = delete;
    /// Seconds; 0 where the kernel does not count them.
    [[nodiscard]] double waited_for_core() const {
        char text[64] = {};
        unsigned long long waited = 0;
        if (file_ < 0 || pread(file_, text, sizeof text - 1, 0) <= 0 || std::sscanf(text, "%*u %llu", &waited) != 1)
            return 0.0;
        return 1e-9 * static_cast<double>(waited);
    }

  private:
    int file_;
};

} // namespace

ThreadTime thread_time() {
    thread_local const SchedulerStatistics statistics;
    timespec on_core{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &on_core);
    const double waited = statistics.waited_for_core();
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    const double computed = static_cast<double>(on_core.tv_sec) + 1e-9 * static_cast<double>(on_core.tv_nsec);
    return {passed, passed - computed - waited};
}

Elsewhere& elsewhere() {
    thread_local Elsewhere since_its_begin;
    return since_its_begin;
}

LoadTime reading_time(ThreadTime thread, Elsewhere elsewhere) {
    return {.disk = std::max(0.0, thread.blocked - elsewhere.decoded - elsewhere.other),
            .decode = std::max(0.0, thread.passed - thread.blocked) + elsewhere.decoded};
}

} // namespace ranktune::data
