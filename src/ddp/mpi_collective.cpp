// SPDX-License-Identifier: Apache-2.0
#include "ddp/mpi_collective.hpp"

#include <mpi.h>

#include <climits>
#include <string>
#include <utility>

#include "comm/mpi/error.hpp"
#include "comm/mpi/request.hpp"
#include "ddp/protocol_collective.hpp"
#include "ddp/self_collective.hpp"

namespace ranktune::ddp {
namespace {

using comm::mpi::check;
using comm::mpi::Request;

int as_count(std::size_t elements) {
    if (elements > INT_MAX) {
        throw base::Error("one reduction of " + std::to_string(elements) + " elements is more than MPI counts");
    }
    return static_cast<int>(elements);
}

class RequestPending final : public Pending {
  public:
    explicit RequestPending(Request request) : request_(std::move(request)) {}
    bool test() override { return request_.test(); }

  private:
    Request request_;
};

/// Reduces to rank 0, then broadcasts: the same bits on all ranks by construction. (MPI only recommends that for
/// MPI_Allreduce, and where two NaNs meet the order of operands shows.)
class ReduceThenBroadcast final : public Pending {
  public:
    ReduceThenBroadcast(MPI_Comm communicator, int rank, std::span<double> values)
        : communicator_(communicator), values_(values), count_(as_count(values.size())) {
        const void* const from = rank == 0 ? MPI_IN_PLACE : values.data();
        check(MPI_Ireduce(from, values.data(), count_, MPI_DOUBLE, MPI_SUM, 0, communicator, request_.slot()),
              "MPI_Ireduce");
    }

    bool test() override {
        if (!request_.test()) return false;
        if (broadcasting_) return true;
        check(MPI_Ibcast(values_.data(), count_, MPI_DOUBLE, 0, communicator_, request_.slot()), "MPI_Ibcast");
        broadcasting_ = true;
        return request_.test();
    }

  private:
    MPI_Comm communicator_;
    std::span<double> values_;
    int count_;
    Request request_;
    bool broadcasting_ = false;
};

class MpiFabric final : public Fabric {
  public:
    explicit MpiFabric(std::unique_ptr<comm::WorkerGroup> group) : group_(std::move(group)) {}

    int rank() const override { return group_->rank(); }
    int size() const override { return group_->size(); }

    std::unique_ptr<Pending> start_max(std::span<std::int64_t> values) override {
        return all_reduce(values.data(), values.size(), MPI_INT64_T, MPI_MAX);
    }

    /// In the implementations that we know (binomial tree, ring, recursive doubling) every element is summed in one
    /// order that all ranks share; the digest of the parameters that is compared at every checkpoint would tell.
    std::unique_ptr<Pending> start_sum(std::span<float> values) override {
        return all_reduce(values.data(), values.size(), MPI_FLOAT, MPI_SUM);
    }

    std::unique_ptr<Pending> start_sum(std::span<double> values) override {
        return std::make_unique<ReduceThenBroadcast>(group_->communicator(), rank(), values);
    }

    std::unique_ptr<Pending> start_broadcast(std::span<std::byte> bytes, int root) override {
        Request request;
        check(MPI_Ibcast(bytes.data(), as_count(bytes.size()), MPI_BYTE, root, group_->communicator(), request.slot()),
              "MPI_Ibcast");
        return std::make_unique<RequestPending>(std::move(request));
    }

    void poison() noexcept override { group_->poison(); }

  private:
    std::unique_ptr<Pending> all_reduce(void* values, std::size_t elements, MPI_Datatype type, MPI_Op operation) {
        Request request;
        check(MPI_Iallreduce(MPI_IN_PLACE, values, as_count(elements), type, operation, group_->communicator(),
                             request.slot()),
              "MPI_Iallreduce");
        return std::make_unique<RequestPending>(std::move(request));
    }

    std::unique_ptr<comm::WorkerGroup> group_;
};

} // namespace

std::unique_ptr<Collective> make_mpi_collective(std::unique_ptr<comm::WorkerGroup> group,
                                                const std::atomic<bool>& abort) {
    if (group->size() == 1) return make_self_collective(&abort);
    return std::make_unique<ProtocolCollective>(std::make_unique<MpiFabric>(std::move(group)), abort);
}

std::unique_ptr<Collective> form_mpi_collective(comm::GroupFactory& factory, std::span<const base::Rank> ranks,
                                                std::uint64_t ticket, const std::atomic<bool>& abort) {
    try {
        return make_mpi_collective(factory.form(ranks, ticket, abort), abort);
    } catch (const comm::FormationAborted& error) {
        throw Aborted(error.what());
    }
}

} // namespace ranktune::ddp
