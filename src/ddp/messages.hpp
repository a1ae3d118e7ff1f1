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

#include "ddp/fabric.hpp"

namespace ranktune::ddp {

/// Messages of users, and *notices*: a rank that fails sends one to every other rank, so that those who wait for a
/// message hear of it. A message travels in pieces, each with an envelope that names the epoch (the formation of the
/// group: a communicator serves one trial after the other) and the generation (the last failure since). Pieces of
/// another epoch or generation are remains of messages that nobody received before a failure or the end of a trial:
/// they are dropped.
class Messages {
  public:
    /// Waits until the operation is complete; the second argument owns its memory, to be buried when it throws.
    using Wait = std::function<void(Pending&, const std::shared_ptr<const void>&)>;

    /// `fabric` outlives this object. `piece_bytes`: of the payload of a piece.
    Messages(Fabric& fabric, std::uint64_t epoch, std::size_t piece_bytes, Wait wait);
    ~Messages(); ///< buries what has been sent and not been taken
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
    /// Waits for the next message of `from`, calling `idle` in between (which may throw). Returns what is wrong with
    /// it, else nothing.
    [[nodiscard]] std::string receive(base::Buffer message, int from, const std::function<void()>& idle);

    /// Tells all other ranks that this one fails and takes part in their header number `header`.
    void tell_failure(std::uint64_t header);
    /// The number of the header that a failing rank waits in, if a notice has arrived; each notice once.
    [[nodiscard]] std::optional<std::uint64_t> failure();
    /// All ranks have left an operation because of a failure, with the same number here that no generation before had:
    /// drops what is under way.
    void new_generation(std::uint64_t generation);

    /// Buries what is under way: the fabric is poisoned.
    void abandon() noexcept;

  private:
    struct Envelope {
        std::uint64_t epoch = 0;
        std::uint64_t generation = 0;
        std::uint64_t type = 0;
        std::uint64_t count = 0; ///< numbers of the whole message; of a notice: the header
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
    std::optional<std::uint64_t> notice_; ///< of this generation, not yet told
    std::deque<Sent> sent_;               ///< that may not have been taken yet
};

} // namespace ranktune::ddp
