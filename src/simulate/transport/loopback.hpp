// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loopback transport: all ranks in one process. For tests, simulated clusters and studies without MPI.

#include <cstdint>
#include <memory>

#include "comm/transport/transport.hpp"

namespace ranktune::simulate {

/// Connects `size` endpoints. Endpoints may be used by different threads (one thread per endpoint) and may outlive the
/// hub. Messages arrive once and in order per pair of ranks; messages to a rank that nobody polls stay queued, as with
/// a dead process.
class LoopbackHub {
  public:
    /// Requires size > 0.
    explicit LoopbackHub(std::uint32_t size);
    ~LoopbackHub();
    LoopbackHub(const LoopbackHub&) = delete;
    LoopbackHub& operator=(const LoopbackHub&) = delete;

    /// The endpoint of `rank` (< size). A second endpoint of the same rank continues with the same queue.
    [[nodiscard]] std::unique_ptr<comm::Transport> endpoint(base::Rank rank);
    [[nodiscard]] std::uint32_t size() const;
    /// Number of messages sent and not yet polled, over all ranks.
    [[nodiscard]] std::size_t in_flight() const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

} // namespace ranktune::simulate
