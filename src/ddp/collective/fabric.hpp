// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fabric: the non-blocking operations that ProtocolCollective is built on.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ddp/collective.hpp"

namespace ranktune::ddp {

/// A message that has arrived; it must be received exactly once.
class Arrival {
  public:
    virtual ~Arrival() = default;
    [[nodiscard]] virtual std::size_t bytes() const = 0;
    /// `to` has room for exactly bytes().
    [[nodiscard]] virtual std::unique_ptr<Pending> start_receive(std::span<std::byte> to) = 0;
};

/// Kind of a message; kinds are received independently of each other.
enum class Channel : std::uint8_t { data = 0, failure = 1, lost = 2 };

/// Operations over the ranks of a group on host memory, without any protocol. Every start_* except start_send is
/// collective: all ranks start the same ones in the same order. None waits. A buffer must live until its Pending::test
/// has returned true. An operation that is given up still writes into its buffer, so the caller must keep the buffer
/// (comm::keep_to_exit) and poison the fabric. Destroying a Pending that is not complete gives it up. Library errors
/// are thrown.
class Fabric {
  public:
    /// Largest number of elements of one operation.
    static constexpr std::size_t most_elements = largest_bucket;

    virtual ~Fabric() = default;
    [[nodiscard]] virtual int rank() const = 0;
    [[nodiscard]] virtual int size() const = 0;

    /// In place; float32 and float64 (sum only), int32, int64, uint64. The same bits on all ranks by construction, and
    /// the same bits again for the same input and number of ranks. A floating-point sum may consist of several
    /// consecutive operations: no other collective operation may be started before it is complete.
    [[nodiscard]] virtual std::unique_ptr<Pending> start_all_reduce(base::Buffer values, Reduce how) = 0;
    /// Sums gradients in place, float32 or float64; any number may be pending. The fastest sum that is bitwise equal on
    /// all ranks in the known MPI libraries; the comparison of parameter digests at every checkpoint would detect an
    /// exception.
    [[nodiscard]] virtual std::unique_ptr<Pending> start_gradient_sum(base::Buffer values) = 0;
    [[nodiscard]] virtual std::unique_ptr<Pending> start_broadcast(std::span<std::byte> bytes, int root) = 0;
    /// `all` has room for size() times `mine`.
    [[nodiscard]] virtual std::unique_ptr<Pending> start_all_gather(std::span<const std::byte> mine,
                                                                    std::span<std::byte> all) = 0;
    /// Part r of `parts` goes to rank r, and part r of `all` comes from there; both have size() parts of one size.
    [[nodiscard]] virtual std::unique_ptr<Pending> start_exchange(std::span<const std::byte> parts,
                                                                  std::span<std::byte> all) = 0;

    /// One message; messages of one rank to another on one channel arrive in the order of sending.
    [[nodiscard]] virtual std::unique_ptr<Pending> start_send(std::span<const std::byte> bytes, int to,
                                                              Channel channel) = 0;
    /// The oldest message of `from` (any_rank: of any rank); null when none has arrived.
    [[nodiscard]] virtual std::unique_ptr<Arrival> arrived(int from, Channel channel) = 0;
    static constexpr int any_rank = -1;

    /// Call when operations were given up: the group must never be used again. Local.
    virtual void poison() noexcept = 0;
};

} // namespace ranktune::ddp
