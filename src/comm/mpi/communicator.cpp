// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/communicator.hpp"

#include <atomic>
#include <utility>
#include <vector>

#include "comm/mpi/environment.hpp"
#include "comm/mpi/error.hpp"
#include "comm/mpi/faults.hpp"

namespace ranktune::comm::mpi {
namespace {

std::atomic<std::size_t> live_count{0};

/// An MPI_Group that is freed at the end of the scope. Local.
class Group {
  public:
    Group() = default;
    ~Group() {
        if (handle != MPI_GROUP_NULL) MPI_Group_free(&handle);
    }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;
    MPI_Group handle = MPI_GROUP_NULL;
};

} // namespace

Communicator Communicator::borrow(MPI_Comm handle) { return {handle, false}; }

Communicator Communicator::adopt(MPI_Comm handle) {
    Communicator result(handle, true);
    ++live_count;
    check(MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    return result;
}

Communicator::Communicator(Communicator&& other) noexcept
    : handle_(std::exchange(other.handle_, MPI_COMM_NULL)), owns_(other.owns_) {}

Communicator& Communicator::operator=(Communicator&& other) noexcept {
    if (this == &other) return *this;
    reset();
    handle_ = std::exchange(other.handle_, MPI_COMM_NULL);
    owns_ = other.owns_;
    return *this;
}

Communicator Communicator::duplicate() const {
    MPI_Comm handle = MPI_COMM_NULL;
    check(MPI_Comm_dup(handle_, &handle), "MPI_Comm_dup");
    return adopt(handle);
}

Communicator Communicator::create_group(std::span<const base::Rank> ranks, int tag) const {
    std::vector<int> members;
    members.reserve(ranks.size());
    for (const auto rank : ranks) members.push_back(static_cast<int>(rank.value()));
    Group all;
    Group chosen;
    check(MPI_Comm_group(MPI_COMM_WORLD, &all.handle), "MPI_Comm_group");
    check(MPI_Group_incl(all.handle, static_cast<int>(members.size()), members.data(), &chosen.handle),
          "MPI_Group_incl");
    MPI_Comm handle = MPI_COMM_NULL;
    check(MPI_Comm_create_group(handle_, chosen.handle, tag, &handle), "MPI_Comm_create_group");
    return adopt(handle);
}

std::optional<Matched> Communicator::match(int source, int tag) const {
    int flag = 0;
    Matched found;
    MPI_Status status{};
    const auto probe = [&] { return MPI_Improbe(source, tag, handle_, &flag, &found.message, &status); };
    int code = probe();
    if (source != MPI_ANY_SOURCE) {
        check(code, "MPI_Improbe");
    } else if (code != MPI_SUCCESS && acknowledge_deaths(handle_)) {
        code = probe();
    }
    if (code != MPI_SUCCESS || flag == 0) return std::nullopt;
    found.source = status.MPI_SOURCE;
    check(MPI_Get_count(&status, MPI_BYTE, &found.bytes), "MPI_Get_count");
    return found;
}

int Communicator::rank() const {
    int value = 0;
    check(MPI_Comm_rank(handle_, &value), "MPI_Comm_rank");
    return value;
}

int Communicator::size() const {
    int value = 0;
    check(MPI_Comm_size(handle_, &value), "MPI_Comm_size");
    return value;
}

void Communicator::reset() noexcept {
    if (handle_ != MPI_COMM_NULL && owns_ && Environment::alive()) {
        MPI_Comm_free(&handle_);
        --live_count;
    }
    handle_ = MPI_COMM_NULL;
}

std::size_t Communicator::live() { return live_count.load(); }

} // namespace ranktune::comm::mpi
