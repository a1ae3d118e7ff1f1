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
/// dead rank. There, after each death, a thread of every rank (also of the head) calls mpi::shrink, and the result, the
/// successor, replaces this communicator. Trials go on meanwhile. Each rank waits until its own MPI has told it of the
/// death. The n-th successor is the same communicator on all ranks; all ranks of a group use the same successor.
///
/// A rank that is stopped (SIGSTOP) delays the replacement until it goes on or is killed.
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
