// SPDX-License-Identifier: Apache-2.0
#include "comm/groups/group_parent.hpp"

#include <chrono>
#include <utility>

#include "comm/mpi/error.hpp"
#include "comm/mpi/faults.hpp"

namespace ranktune::comm {
namespace {

constexpr std::chrono::milliseconds nap{10};

} // namespace

GroupParent::GroupParent() {
    all_.push_back(mpi::Communicator::world().duplicate());
    if (mpi::reports_deaths()) thread_ = std::thread([this] { replace_damaged(); });
}

GroupParent::~GroupParent() {
    stop_.store(true);
    if (thread_.joinable()) thread_.join();
    if (all_.size() == 1) return;
    for (mpi::Communicator& parent : all_) parent.leak(); // it cannot be freed together with the dead
}

bool GroupParent::is_damaged() const {
    const std::scoped_lock lock(mutex_);
    return mpi::is_damaged(all_.back().get());
}

mpi::Communicator GroupParent::create_group(std::span<const base::Rank> ranks, int tag, std::uint64_t successor) const {
    MPI_Comm parent = MPI_COMM_NULL;
    {
        const std::scoped_lock lock(mutex_);
        parent = all_.at(successor).get();
    }
    return mpi::Communicator::borrow(parent).create_group(ranks, tag);
}

void GroupParent::replace_damaged() {
    while (!stop_.load()) {
        mpi::look_for_deaths();
        MPI_Comm parent = MPI_COMM_NULL;
        {
            const std::scoped_lock lock(mutex_);
            parent = all_.back().get();
        }
        MPI_Comm next = MPI_COMM_NULL;
        if (mpi::is_damaged(parent) && mpi::shrink(parent, &next) == MPI_SUCCESS) {
            const std::scoped_lock lock(mutex_);
            all_.push_back(mpi::Communicator::adopt(next));
            ++successor_;
        } else {
            std::this_thread::sleep_for(nap);
        }
    }
}

} // namespace ranktune::comm
