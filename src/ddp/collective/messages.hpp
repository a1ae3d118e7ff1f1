// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages: the point-to-point part of ProtocolCollective.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ddp/collective/fabric.hpp"

namespace ranktune::ddp {

/// Messages of users, and *notices*: a rank that fails sends one to every other rank, so that ranks waiting for a
/// message learn of it. A message is sent in pieces, each with an envelope that names the epoch (the formation of the
/// group: a communicator serves one trial after the other) and the generation (the last failure since). Pieces of
/// another epoch or generation are stale: nobody received them before a failure or the end of a trial. They are
/// dropped.
class Messages {
  public:
    /// Waits until the operation is complete; the second argument owns its memory and is kept to the exit when the wait
    /// throws.
    using Wait = std::function<void(Pending&, const std::shared_ptr<const void>&)>;

    /// `fabric` must outlive this object. `piece_bytes`: payload size of a piece.
    Messages(Fabric& fabric, std::uint64_t epoch, std::size_t piece_bytes, Wait wait);
    ~Messages(); ///< keeps pending sends
    Messages(const Messages&) = delete;
    Messages& operator=(const Messages&) = delete;

    /// A copy of a message, in pieces.
    struct Letter {
        std::shared_ptr<void> memory;
        std::vector<std::span<const std::byte>> pieces; ///< each with its envelope, within `memory`
    };
    [[nodiscard]] Letter write(base::ConstBuffer message) const;
    /// Starts sending. Messages of one rank to another arrive in the order of this call.
    void send(Letter letter, int to, Channel channel = Channel::data);
    /// Waits for the next message of `from`, calling `idle` meanwhile (which may throw). Returns what is wrong with the
    /// message; empty: nothing.
    [[nodiscard]] std::string receive(base::Buffer message, int from, const std::function<void()>& idle);

    /// Tells all other ranks that this one failed and takes part in header number `header`.
    void tell_failure(std::uint64_t header);
    /// The number of the header in which a failing rank waits, if a notice has arrived. Returns each notice once.
    [[nodiscard]] std::optional<std::uint64_t> failure();
    /// Call when all ranks have left an operation because of a failure. `generation` is the same on all ranks and new.
    /// Drops pending messages.
    void new_generation(std::uint64_t generation);

    /// Keeps pending messages, because the fabric is poisoned.
    void abandon() noexcept;

  private:
    struct Envelope {
        std::uint64_t epoch = 0;
        std::uint64_t generation = 0;
        std::uint64_t type = 0;
        std::uint64_t count = 0; ///< elements of the whole message; of a notice: number of the header
    };
    struct Sent {
        std::shared_ptr<void> memory;
        std::vector<std::unique_ptr<Pending>> pieces;
    };
    struct Piece {
        Envelope envelope;
        std::shared_ptr<void> memory;
        std::span<const std::byte> payload; ///< within `memory`
    };

    [[nodiscard]] Piece take(Arrival& arrival) const;
    [[nodiscard]] Piece next_piece(int from, const std::function<void()>& idle) const;
    void retire();

    Fabric& fabric_;
    Wait wait_;
    std::uint64_t epoch_;
    std::uint64_t generation_ = 0;
    std::size_t piece_bytes_;
    std::optional<std::uint64_t> notice_; ///< of this generation, not returned yet
    std::deque<Sent> sent_;               ///< sends that may be pending
};

} // namespace ranktune::ddp
