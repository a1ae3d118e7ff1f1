// SPDX-License-Identifier: Apache-2.0
#pragma once
// OrderedTransport: exactly-once, in-order delivery over a transport that may duplicate and reorder.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "comm/transport/transport.hpp"

namespace ranktune::simulate {

/// Puts a sequence number of four bytes (little endian, counted per ordered pair of ranks from 0, modulo 2^32) before
/// every message. The receiver drops duplicates, holds early messages, and delivers each peer's messages in the order
/// of sending.
///
/// It does not resend: after a lost message a peer appears silent, and the liveness time-out treats it as dead. Both
/// ends of a link need an OrderedTransport with the same lifetime. Used by one thread.
class OrderedTransport final : public comm::Transport {
  public:
    /// Does not own `wire` when given by reference.
    explicit OrderedTransport(comm::Transport& wire);
    explicit OrderedTransport(std::unique_ptr<comm::Transport> wire);

    [[nodiscard]] base::Rank rank() const override { return wire_.rank(); }
    [[nodiscard]] std::uint32_t size() const override { return wire_.size(); }
    void send(base::Rank to, std::span<const std::byte> bytes) override;
    [[nodiscard]] std::optional<comm::Packet> poll() override;
    [[nodiscard]] bool flushed() override { return wire_.flushed(); }

    /// Number of messages of `from` that wait for an earlier one.
    [[nodiscard]] std::size_t held(base::Rank from) const { return peers_[from.value()].early.size(); }
    /// Messages dropped because they had been delivered before.
    [[nodiscard]] std::uint64_t duplicates() const { return duplicates_; }
    /// Messages dropped because they were shorter than a sequence number.
    [[nodiscard]] std::uint64_t malformed() const { return malformed_; }

  private:
    struct Peer {
        std::uint32_t next_out = 0;
        std::uint32_t next_in = 0;
        std::map<std::uint32_t, std::vector<std::byte>> early; ///< by sequence number
    };

    std::optional<comm::Packet> take_held();
    std::optional<comm::Packet> accept(comm::Packet message);

    std::unique_ptr<comm::Transport> owned_;
    comm::Transport& wire_;
    std::vector<Peer> peers_;             ///< by rank
    std::optional<base::Rank> unblocked_; ///< a peer whose next message may be among the held ones
    std::vector<std::byte> scratch_;
    std::uint64_t duplicates_ = 0;
    std::uint64_t malformed_ = 0;
};

} // namespace ranktune::simulate
