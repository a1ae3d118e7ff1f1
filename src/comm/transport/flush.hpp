// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the loops end their use of a transport, and how much of it they take at a time.

#include <chrono>

#include "comm/transport/transport.hpp"
#include "process/wake.hpp"

namespace ranktune::comm {

/// Limit of messages that a loop takes per round, so that a flood does not delay timers and commits.
inline constexpr int messages_per_round = 512;

/// Waits until all sends have completed, at most two seconds.
inline void flush_transport(Transport& transport, process::Waker& waker) {
    using namespace std::chrono_literals;
    using Steady = std::chrono::steady_clock;
    const auto until = Steady::now() + 2s;
    while (!transport.flushed() && Steady::now() < until) {
        static_cast<void>(transport.poll()); // drives the sends; late messages are dropped
        waker.nap(100us);
    }
}

} // namespace ranktune::comm
