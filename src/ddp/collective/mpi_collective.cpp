// SPDX-License-Identifier: Apache-2.0
#include "ddp/collective/mpi_collective.hpp"

#include <mpi.h>

#include <string>
#include <utility>

#include "comm/mpi/error.hpp"
#include "comm/mpi/request.hpp"
#include "ddp/collective.hpp"
#include "ddp/collective/protocol_collective.hpp"
#include "ddp/gradients/device_sums.hpp"

namespace ranktune::ddp {
namespace {

using comm::mpi::MpiError;
using comm::mpi::Request;

/// What MPI refuses is a group that is lost, mostly because a rank of it has died.
template <class F>
auto or_group_lost(F&& call) {
    try {
        return call();
    } catch (const MpiError& error) {
        throw GroupLost(GroupLost::Cause::peer, error.what());
    }
}

void check(int code, const char* call) {
    or_group_lost([&] { comm::mpi::check(code, call); });
}

/// Callers ensure at most Fabric::most_elements.
int as_count(std::size_t elements) {
    if (elements > Fabric::most_elements)
        throw base::Error("one operation on " + std::to_string(elements) + " elements is more than MPI counts");
    return static_cast<int>(elements);
}

MPI_Datatype type_of(base::DType type) {
    switch (type) {
        case base::DType::float32:
            return MPI_FLOAT;
        case base::DType::float64:
            return MPI_DOUBLE;
        case base::DType::int32:
            return MPI_INT32_T;
        case base::DType::int64:
            return MPI_INT64_T;
        case base::DType::uint64:
            return MPI_UINT64_T;
        default:
            throw base::Error("MPI does not reduce " + std::string(base::name(type)));
    }
}

MPI_Op operation_of(Reduce how) {
    if (how == Reduce::min) return MPI_MIN;
    return how == Reduce::max ? MPI_MAX : MPI_SUM;
}

/// One tag per channel.
int tag_of(Channel channel) { return static_cast<int>(channel) + 1; }

class RequestPending final : public Pending {
  public:
    explicit RequestPending(Request request) : request_(std::move(request)) {}
    bool test() override {
        return or_group_lost([&] { return request_.test(); });
    }

  private:
    Request request_;
};

/// Reduces to rank 0, then broadcasts: the same bits on all ranks by construction. (MPI only recommends that for
/// MPI_Allreduce, and the sum of two NaNs depends on the operands' order.) `test` starts the second operation, so no
/// other collective one may be started on the communicator before this is complete: all ranks must start them in the
/// same order.
class ReduceThenBroadcast final : public Pending {
  public:
    ReduceThenBroadcast(MPI_Comm communicator, int rank, base::Buffer values, MPI_Op operation)
        : communicator_(communicator),
          values_(values),
          type_(type_of(values.type())),
          count_(as_count(values.count())) {
        const void* const from = rank == 0 ? MPI_IN_PLACE : values.address();
        check(MPI_Ireduce(from, values.address(), count_, type_, operation, 0, communicator, request_.slot()),
              "MPI_Ireduce");
    }

    bool test() override {
        return or_group_lost([&] {
            if (!request_.test()) return false;
            if (broadcasting_) return true;
            check(MPI_Ibcast(values_.address(), count_, type_, 0, communicator_, request_.slot()), "MPI_Ibcast");
            broadcasting_ = true;
            return request_.test();
        });
    }

  private:
    MPI_Comm communicator_;
    base::Buffer values_;
    MPI_Datatype type_;
    int count_;
    Request request_;
    bool broadcasting_ = false;
};

class MpiArrival final : public Arrival {
  public:
    MpiArrival(MPI_Message message, int bytes) : message_(message), bytes_(bytes) {}
    std::size_t bytes() const override { return static_cast<std::size_t>(bytes_); }
    std::unique_ptr<Pending> start_receive(std::span<std::byte> to) override {
        Request request;
        check(MPI_Imrecv(to.data(), bytes_, MPI_BYTE, &message_, request.slot()), "MPI_Imrecv");
        return std::make_unique<RequestPending>(std::move(request));
    }

  private:
    MPI_Message message_;
    int bytes_;
};

class MpiFabric final : public Fabric {
  public:
    explicit MpiFabric(std::unique_ptr<comm::WorkerGroup> group) : group_(std::move(group)) {}

    int rank() const override { return group_->rank(); }
    int size() const override { return group_->size(); }

    /// For integers the order does not matter.
    std::unique_ptr<Pending> start_all_reduce(base::Buffer values, Reduce how) override {
        if (values.type() == base::DType::float32 || values.type() == base::DType::float64)
            return std::make_unique<ReduceThenBroadcast>(group_->communicator(), rank(), values, operation_of(how));
        return all_reduce(values.address(), values.count(), type_of(values.type()), operation_of(how));
    }

    /// The known algorithms (binomial tree, ring, recursive doubling) sum every element in the same order for all
    /// ranks.
    std::unique_ptr<Pending> start_gradient_sum(base::Buffer values) override {
        return all_reduce(values.address(), values.count(), type_of(values.type()), MPI_SUM);
    }

    std::unique_ptr<Pending> start_broadcast(std::span<std::byte> bytes, int root) override {
        Request request;
        check(MPI_Ibcast(bytes.data(), as_count(bytes.size()), MPI_BYTE, root, group_->communicator(), request.slot()),
              "MPI_Ibcast");
        return std::make_unique<RequestPending>(std::move(request));
    }

    std::unique_ptr<Pending> start_all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
        const int count = as_count(mine.size());
        Request request;
        check(MPI_Iallgather(mine.data(), count, MPI_BYTE, all.data(), count, MPI_BYTE, group_->communicator(),
                             request.slot()),
              "MPI_Iallgather");
        return std::make_unique<RequestPending>(std::move(request));
    }

    std::unique_ptr<Pending> start_exchange(std::span<const std::byte> parts, std::span<std::byte> all) override {
        const int count = as_count(parts.size() / static_cast<std::size_t>(size()));
        Request request;
        check(MPI_Ialltoall(parts.data(), count, MPI_BYTE, all.data(), count, MPI_BYTE, group_->communicator(),
                            request.slot()),
              "MPI_Ialltoall");
        return std::make_unique<RequestPending>(std::move(request));
    }

    std::unique_ptr<Pending> start_send(std::span<const std::byte> bytes, int to, Channel channel) override {
        Request request;
        check(MPI_Isend(bytes.data(), as_count(bytes.size()), MPI_BYTE, to, tag_of(channel), group_->communicator(),
                        request.slot()),
              "MPI_Isend");
        return std::make_unique<RequestPending>(std::move(request));
    }

    std::unique_ptr<Arrival> arrived(int from, Channel channel) override {
        const auto communicator = comm::mpi::Communicator::borrow(group_->communicator());
        const int source = from == any_rank ? MPI_ANY_SOURCE : from;
        const auto found = or_group_lost([&] { return communicator.match(source, tag_of(channel)); });
        return found ? std::make_unique<MpiArrival>(found->message, found->bytes) : nullptr;
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

std::unique_ptr<Collective> form_mpi_collective(comm::GroupFactory& factory, std::span<const base::Rank> ranks,
                                                std::uint64_t ticket, const std::atomic<bool>& abort,
                                                DeviceGroups* devices, const std::string& name) {
    try {
        auto group = factory.form(ranks, ticket, abort);
        if (group->size() == 1) return make_self_collective(&abort);
        auto collective =
            std::make_unique<ProtocolCollective>(std::make_unique<MpiFabric>(std::move(group)), abort, ticket);
        if (devices != nullptr) collective->reach_devices(*devices, {ranks.begin(), ranks.end()}, name);
        return collective;
    } catch (const comm::FormationAborted& error) {
        throw Aborted(error.what());
    } catch (const MpiError& error) {
        throw GroupLost(GroupLost::Cause::peer, std::string("cannot form the group: ") + error.what());
    }
}

} // namespace ranktune::ddp
