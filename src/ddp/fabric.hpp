// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fabric: the few non-blocking operations from which ProtocolCollective is made.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ranktune/ddp/collective.hpp"

namespace ranktune::ddp {

/// Operations over the ranks of a group, without any protocol. Every start_* is collective: all ranks start the same
/// ones in the same order. None waits. A buffer must live until its Pending::test has returned true; an operation that
/// is given up goes on writing into it, so whoever gives up buries the buffer (comm::bury) and poisons the fabric.
/// Destroying a Pending that is not complete gives it up. Errors of the library are thrown.
class Fabric {
  public:
    virtual ~Fabric() = default;
    [[nodiscard]] virtual int rank() const = 0;
    [[nodiscard]] virtual int size() const = 0;

    /// Element-wise maximum, in place.
    [[nodiscard]] virtual std::unique_ptr<Pending> start_max(std::span<std::int64_t> values) = 0;
    /// Sums in place. The same bits on all ranks, and the same bits again for the same input and number of ranks.
    [[nodiscard]] virtual std::unique_ptr<Pending> start_sum(std::span<float> values) = 0;
    [[nodiscard]] virtual std::unique_ptr<Pending> start_sum(std::span<double> values) = 0;
    [[nodiscard]] virtual std::unique_ptr<Pending> start_broadcast(std::span<std::byte> bytes, int root) = 0;

    /// Operations were given up: the group must never be used again. Local.
    virtual void poison() noexcept = 0;
};

} // namespace ranktune::ddp
