// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loop of a worker's service thread: it owns the transport, the clock and the signals.

#include <functional>
#include <string>
#include <vector>

#include "comm/groups/group_factory.hpp"
#include "comm/transport/transport.hpp"
#include "ddp/gradients/device_groups.hpp"
#include "device/survey.hpp"
#include "process/signals.hpp"
#include "process/wake.hpp"
#include "worker/trial/attempt.hpp"
#include "worker/worker_machine.hpp"

namespace ranktune::worker {

/// Runs a worker to its end. `signals` may be null (several workers in one process). `each_round`, if set, is called in
/// every round of the loop; true: the next round comes soon. Flushes the transport's last messages, for at most two
/// seconds.
[[nodiscard]] WorkerEnd serve_worker(comm::Transport& transport, WorkerMachine& worker,
                                     const process::ProcessClock& clock, process::Waker& waker,
                                     process::SignalReader* signals, const std::function<bool()>& each_round = {});

// ---- What the driver says about the GPUs of this rank.

/// Asks NVML, if the rank has GPUs (`granted`: as in CUDA_VISIBLE_DEVICES) and there is a driver: a fraction of a
/// second.
[[nodiscard]] device::GpuPlace survey_own_gpus(const std::vector<std::string>& granted);

// ---- Groups of trials over MPI communicators.

/// `factory` and `devices`, in whose groups gradients on GPUs are summed, outlive the result.
[[nodiscard]] worker::FormGroup make_mpi_groups(comm::GroupFactory& factory, ddp::DeviceGroups& devices);

} // namespace ranktune::worker
