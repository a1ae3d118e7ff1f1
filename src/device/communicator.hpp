// SPDX-License-Identifier: Apache-2.0
#pragma once
// Communicator: sums over the GPUs of several processes, on their streams (NCCL).

#include <array>
#include <cstddef>
#include <cstdint>

#include "ranktune/base/dtype.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::device {

class Stream;

/// Names a communicator that is to be formed. Made by one of its ranks, which lives at least until it is formed.
struct CommunicatorId {
    std::array<std::uint8_t, 128> bytes{};
};

/// A communicator failed. It can only be aborted.
class CommunicatorError : public base::Error {
  public:
    enum class Cause : std::uint8_t {
        peer,    ///< another rank is gone
        system,  ///< network, driver or library
        timeout, ///< it took too long
    };
    CommunicatorError(Cause cause, const std::string& message) : base::Error(message), cause_(cause) {}
    [[nodiscard]] Cause cause() const { return cause_; }

  private:
    Cause cause_;
};

/// A rank of an NCCL communicator. Never waits for other ranks: every call returns at once. Used by one thread.
class Communicator {
  public:
    /// Aborts, unless it was closed. Local.
    virtual ~Communicator() = default;
    /// Whether the last call has taken effect; only then may another one follow, and work be issued on its stream.
    /// Throws CommunicatorError when the communicator has failed.
    [[nodiscard]] virtual bool settled() = 0;
    /// Sums `count` numbers in place over all ranks, in device memory, as work of `stream`: float32, float64, or
    /// bfloat16, which every rank rounds that adds. The same bits on all ranks. Collective: all ranks issue the same
    /// sums in the same order.
    virtual void sum(void* values, std::size_t count, base::DType type, Stream& stream) = 0;
    /// Part r of `parts` goes to rank r, and part r of `all` comes from there; every part has `bytes` bytes. The two
    /// must not overlap. Otherwise as `sum`.
    virtual void exchange(const void* parts, void* all, std::size_t bytes, Stream& stream) = 0;
    /// Rank r's `bytes` bytes become part r of `all`. Otherwise as `sum`.
    virtual void gather(const void* mine, void* all, std::size_t bytes, Stream& stream) = 0;
    /// Rank 0's `bytes` bytes become those of all ranks. Otherwise as `sum`.
    virtual void broadcast(void* values, std::size_t bytes, Stream& stream) = 0;
    /// Begins to close it, then says whether that is complete; call it until it is true. Collective over the ranks of a
    /// node. Requires that all sums are complete.
    [[nodiscard]] virtual bool close() = 0;
    /// Ends it with what is in flight, which leaves its memory undefined. Local.
    virtual void abort() noexcept = 0;
};

} // namespace ranktune::device
