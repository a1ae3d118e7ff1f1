// SPDX-License-Identifier: Apache-2.0
#include "ddp/core_wait.hpp"

#include <sys/resource.h>

#include <chrono>
#include <thread>

namespace ranktune::ddp {

namespace {

/// Number of involuntary context switches of this thread.
long switches() {
    rusage usage{};
#ifdef RUSAGE_THREAD
    getrusage(RUSAGE_THREAD, &usage);
#else
    getrusage(RUSAGE_SELF, &usage);
#endif
    return usage.ru_nivcsw;
}

} // namespace

void CoreWait::begin() {
    turns_ = 0;
    if (shared_ && ++shared_waits_ >= waits_until_probe) shared_ = false;
}

void CoreWait::turn() {
    if (++turns_ <= spins) return;
    if (shared_) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        return;
    }
    const long before = switches();
    std::this_thread::yield();
    if (switches() == before) return;
    shared_ = true;
    shared_waits_ = 0;
}

} // namespace ranktune::ddp
