// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Collective of trials whose ranks are MPI processes.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "comm/groups/group_factory.hpp"
#include "comm/groups/worker_group.hpp"
#include "ddp/collective.hpp"
#include "ddp/gradients/device_groups.hpp"

namespace ranktune::ddp {

/// Forms the group of `ranks` (see GroupFactory::form; collective over them, on their trial threads) and returns its
/// collective; destroying the result returns the communicator. With `devices`, which outlives the result, gradients can
/// be summed on GPUs; `name` is that of the trial, for NCCL's log. `abort` is raised by another thread when the trial
/// has to give up, and must outlive the result. Throws Aborted when it is raised before the group is formed,
/// GroupLost when MPI fails.
[[nodiscard]] std::unique_ptr<Collective> form_mpi_collective(comm::GroupFactory& factory,
                                                              std::span<const base::Rank> ranks, std::uint64_t ticket,
                                                              const std::atomic<bool>& abort,
                                                              DeviceGroups* devices = nullptr,
                                                              const std::string& name = {});

} // namespace ranktune::ddp
