// SPDX-License-Identifier: Apache-2.0
#pragma once
// GroupParent: the communicator from which those of trials are made.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "comm/mpi/communicator.hpp"

namespace ranktune::comm {

/// A duplicate of the world. An MPI that reports deaths (mpi::reports_deaths) makes no groups of a communicator with a
/// dead rank: there a thread of each rank, the head's too, replaces it after every death by one of the living
/// (mpi::shrink), while trials go on: each hears of the death by itself. The n-th successor is the same
/// communicator on all ranks, and ranks of a group have to use the same one.
///
/// While a rank stands still, replacing waits for it, until it goes on or is ended.
class GroupParent {
  public:
    GroupParent(); ///< Collective over the world.
    ~GroupParent();
    GroupParent(const GroupParent&) = delete;
    GroupParent& operator=(const GroupParent&) = delete;

    /// How many successors there were. Rises on a thread of this object.
    [[nodiscard]] std::uint64_t successor() const { return successor_.load(); }
    /// The current one has lost a rank, as far as is known here: a successor will come.
    [[nodiscard]] bool is_damaged() const;
    /// As mpi::Communicator::create_group, with the ranks of the world. Requires successor <= successor(). Throws
    /// MpiError also when another rank dies meanwhile.
    [[nodiscard]] mpi::Communicator create_group(std::span<const base::Rank> ranks, int tag,
                                                 std::uint64_t successor) const;

  private:
    void replace_damaged();

    mutable std::mutex mutex_;
    std::vector<mpi::Communicator> all_; ///< the last one is in use; groups may still be made of those before
    std::atomic<std::uint64_t> successor_{0};
    std::atomic<bool> stop_{false};
    std::thread thread_; ///< where MPI reports deaths
};

} // namespace ranktune::comm
