// SPDX-License-Identifier: Apache-2.0
#include "ddp/collective/core_wait.hpp"

#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/resource.h>

#include <chrono>
#include <thread>

namespace ranktune::ddp {

namespace {

/// A long message moves piece by piece, and each piece waits for tests on both sides: a nap is short.
constexpr std::chrono::microseconds nap(20);

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

/// Linux lets sleeps of a thread last 50 us longer than asked for, unless it is told not to.
void sleep_exactly() {
#ifdef __linux__
    prctl(PR_SET_TIMERSLACK, 1UL);
#endif
}

} // namespace

void CoreWait::begin() {
    turns_ = 0;
    if (shared_ && ++shared_waits_ >= waits_until_probe) shared_ = false;
}

void CoreWait::turn() {
    if (++turns_ <= spins) return;
    if (shared_) {
        std::this_thread::sleep_for(nap);
        return;
    }
    const long before = switches();
    std::this_thread::yield();
    if (switches() == before) return;
    shared_ = true;
    shared_waits_ = 0;
    sleep_exactly();
}

} // namespace ranktune::ddp
