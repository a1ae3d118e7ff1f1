// SPDX-License-Identifier: Apache-2.0
#include "worker/hang_trace.hpp"

#include <execinfo.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

namespace ranktune::worker {
namespace {

// The signal handler uses only lock-free atomics.
std::atomic<int> target_fd{-1};
std::atomic<bool> written{false};

void on_signal(int) {
    void* frames[64];
    const int count = backtrace(frames, 64);
    backtrace_symbols_fd(frames, count, target_fd.load());
    written.store(true);
}

} // namespace

void write_stack_of(pthread_t thread, int fd) {
    if (fd < 0) return;
    void* warm_up[1];
    backtrace(warm_up, 1); // loads the unwinder now: the handler must not allocate
    target_fd.store(fd);
    written.store(false);
    const int signal = SIGRTMAX - 1; // not used by any known MPI, runtime or profiler
    struct sigaction action {};
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    if (sigaction(signal, &action, nullptr) != 0 || pthread_kill(thread, signal) != 0) return;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (!written.load() && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

} // namespace ranktune::worker
