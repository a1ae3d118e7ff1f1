// SPDX-License-Identifier: Apache-2.0
#include "ranktune/ddp/group.hpp"

#include <cstdint>
#include <string>

#include "ddp/collective.hpp"
#include "device/device.hpp"

namespace ranktune::ddp {

DeviceSums& Collective::sums_on(device::Accelerator& on) {
    throw base::UsageError("gradients on " + on.name() + ": the group of this trial only takes host memory");
}

void Group::require_reachable(const base::ConstBuffer& values, const char* operation) const {
    if (!reaches(values.place()))
        throw base::UsageError(std::string(operation) + " of " + values.text() +
                               ": the group of this trial only takes host memory; copy it there first");
}

void Group::require_rank(int rank, const char* operation) const {
    if (rank < 0 || rank >= size())
        throw base::UsageError(std::string(operation) + ": there is no rank " + std::to_string(rank) +
                               " in a trial of " + std::to_string(size()));
}

void Group::barrier() { do_barrier(); }

void Group::all_reduce(base::Buffer values, Reduce how) {
    require_reachable(values, "all_reduce");
    if (values.type() == base::DType::uint8)
        throw base::UsageError("all_reduce of " + values.text() + ": bytes cannot be reduced, use int32 or int64");
    if (reinterpret_cast<std::uintptr_t>(values.address()) % base::size_of(values.type()) != 0)
        throw base::UsageError("all_reduce of " + values.text() + ": its address is not aligned");
    do_all_reduce(values, how);
}

void Group::broadcast(base::Buffer values, int root) {
    require_reachable(values, "broadcast");
    require_rank(root, "broadcast");
    do_broadcast(values, root);
}

void Group::all_gather(base::ConstBuffer mine, base::Buffer all) {
    require_reachable(mine, "all_gather");
    require_reachable(all, "all_gather");
    const auto ranks = static_cast<std::size_t>(size());
    if (mine.type() != all.type() || all.count() % ranks != 0 || all.count() / ranks != mine.count())
        throw base::UsageError("all_gather of " + mine.text() + " into " + all.text() + ": needs " +
                               std::to_string(ranks) + " times as many of the same type");
    do_all_gather(mine, all);
}

void Group::send(base::ConstBuffer message, int to) {
    require_reachable(message, "send");
    require_rank(to, "send");
    do_send(message, to);
}

void Group::receive(base::Buffer message, int from) {
    require_reachable(message, "receive");
    require_rank(from, "receive");
    do_receive(message, from);
}

} // namespace ranktune::ddp
