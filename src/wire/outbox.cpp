// SPDX-License-Identifier: Apache-2.0
#include "wire/outbox.hpp"

#include <chrono>

namespace ranktune::wire {

void flush_transport(comm::Transport& transport, process::Waker& waker) {
    using namespace std::chrono_literals;
    using Steady = std::chrono::steady_clock;
    const auto until = Steady::now() + 2s;
    while (!transport.flushed() && Steady::now() < until) {
        static_cast<void>(transport.poll()); // drives the sends; what still comes in is too late
        waker.nap(100us);
    }
}

} // namespace ranktune::wire
