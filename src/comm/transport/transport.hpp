// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transport: bytes between the head and the ranks. Implemented over MPI, in one process (loopback), and as a decorator
// that injects faults.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "ranktune/base/ids.hpp"

namespace ranktune::comm {

/// The bytes of one message (wire/protocol.hpp), as they arrive.
struct Packet {
    base::Rank from;
    std::vector<std::byte> bytes;
};

/// Destination of a machine's messages; tests record them.
class Outbox {
  public:
    virtual ~Outbox() = default;
    /// Takes a copy; returns at once; never throws for a dead peer.
    virtual void send(base::Rank to, std::span<const std::byte> message) = 0;
};

/// One rank's endpoint. Messages between two ranks arrive once and in order unless a decorator changes that. No call
/// blocks on a peer, dead or alive. Used by one thread (the head's loop, a worker's service thread).
class Transport : public Outbox {
  public:
    [[nodiscard]] virtual base::Rank rank() const = 0;
    [[nodiscard]] virtual std::uint32_t size() const = 0;
    /// The next message, if one has arrived. Also drives sends that are under way.
    [[nodiscard]] virtual std::optional<Packet> poll() = 0;
    /// Whether all sends have completed, so that the process may end.
    [[nodiscard]] virtual bool flushed() = 0;
    /// A socket that gets a datagram when a message may have come; -1: none.
    [[nodiscard]] virtual int bell() const { return -1; }
    /// Whether a thread may sleep until the bell rings: all with whom this rank exchanges messages ring, and none is
    /// under way.
    [[nodiscard]] virtual bool is_quiet() { return false; }
};

} // namespace ranktune::comm
