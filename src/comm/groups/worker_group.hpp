// SPDX-License-Identifier: Apache-2.0
#pragma once
// WorkerGroup: the communicator of one trial. For `comm` and `ddp` only: no other room uses MPI_Comm.

#include <vector>

#include "comm/groups/group_factory.hpp"
#include "comm/mpi/communicator.hpp"

namespace ranktune::comm {

/// Made by GroupFactory::form. The destructor returns the communicator to the factory (which caches it, frees it or
/// keeps it to the exit) and is collective: every rank calls it once, when no operation is pending or after `poison`.
class WorkerGroup {
  public:
    WorkerGroup(GroupFactory::Impl& factory, std::vector<base::Rank> ranks, int rank, MPI_Comm communicator);
    ~WorkerGroup();
    WorkerGroup(const WorkerGroup&) = delete;
    WorkerGroup& operator=(const WorkerGroup&) = delete;

    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
    /// MPI_COMM_SELF for a group of one.
    [[nodiscard]] MPI_Comm communicator() const { return communicator_; }

    /// Call when an operation was given up: the communicator is never used or freed again. Local.
    void poison() noexcept { poisoned_ = true; }

  private:
    GroupFactory::Impl& factory_;
    std::vector<base::Rank> ranks_; ///< of the world; position = rank in the group
    int rank_;
    MPI_Comm communicator_;
    bool poisoned_ = false;
};

} // namespace ranktune::comm
