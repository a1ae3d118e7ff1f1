// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sends a machine's messages over a transport.

#include <chrono>

#include "comm/transport/transport.hpp"
#include "comm/wire/protocol.hpp"
#include "process/wake.hpp"

namespace ranktune::comm {

/// An Outbox over a transport.
class TransportOutbox final : public Outbox {
  public:
    explicit TransportOutbox(comm::Transport& transport) : transport_(transport) {}
    void send(base::Rank to, std::span<const std::byte> message) override { transport_.send(to, message); }

  private:
    comm::Transport& transport_;
};

/// Limit of messages that a loop takes per round, so that a flood does not delay timers and commits.
inline constexpr int messages_per_round = 512;

/// Waits until all sends have completed, at most two seconds.
inline void flush_transport(comm::Transport& transport, process::Waker& waker) {
    using namespace std::chrono_literals;
    using Steady = std::chrono::steady_clock;
    const auto until = Steady::now() + 2s;
    while (!transport.flushed() && Steady::now() < until) {
        static_cast<void>(transport.poll()); // drives the sends; late messages are dropped
        waker.nap(100us);
    }
}

} // namespace ranktune::comm
