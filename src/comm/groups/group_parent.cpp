// SPDX-License-Identifier: Apache-2.0
#include "comm/groups/group_parent.hpp"

#include <chrono>

#include "comm/mpi/error.hpp"
#include "comm/mpi/faults.hpp"

namespace ranktune::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds nap{10};
/// How long no further death may come before the communicator is replaced. Open MPI (5.0.11) crashes when a death comes
/// meanwhile, and the ranks of a node die within moments of each other.
constexpr std::chrono::milliseconds silence{300};

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
    return mpi::dead_in(all_.back().get()) > 0 || mpi::is_revoked(all_.back().get());
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
    int dead = 0;
    for (Clock::time_point heard; !stop_.load(); std::this_thread::sleep_for(nap)) {
        mpi::look_for_deaths();
        MPI_Comm parent = MPI_COMM_NULL;
        {
            const std::scoped_lock lock(mutex_);
            parent = all_.back().get();
        }
        if (const int now = mpi::dead_in(parent); now != dead) {
            dead = now;
            heard = Clock::now();
        }
        MPI_Comm next = MPI_COMM_NULL;
        if (dead == 0 || Clock::now() - heard < silence || mpi::shrink(parent, &next) != MPI_SUCCESS) continue;
        const std::scoped_lock lock(mutex_);
        all_.push_back(mpi::Communicator::adopt(next));
        dead = 0;
        ++successor_;
    }
}

} // namespace ranktune::comm
