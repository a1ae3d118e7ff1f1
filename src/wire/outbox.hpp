// SPDX-License-Identifier: Apache-2.0
#pragma once
// A machine's messages on their way into a transport.

#include "comm/transport/transport.hpp"
#include "process/wake.hpp"
#include "wire/protocol.hpp"

namespace ranktune::wire {

/// An Outbox over a transport.
class TransportOutbox final : public Outbox {
  public:
    explicit TransportOutbox(comm::Transport& transport) : transport_(transport) {}
    void send(base::Rank to, std::span<const std::byte> message) override { transport_.send(to, message); }

  private:
    comm::Transport& transport_;
};

/// A loop takes so many messages in one round at most, so that a flood cannot keep timers and commits waiting.
inline constexpr int messages_per_round = 512;

/// Waits until everything sent has left, at most two seconds.
void flush_transport(comm::Transport& transport, process::Waker& waker);

} // namespace ranktune::wire
