// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loop of a worker's service thread: it owns the transport, the clock and the signals.

#include <functional>

#include "comm/transport/transport.hpp"
#include "group/worker_machine.hpp"
#include "process/signals.hpp"
#include "process/wake.hpp"

namespace ranktune::group {

/// Runs a worker to its end. `signals` may be null (several workers in one process). `each_round`, if set, is called in
/// every round of the loop; true: the next round comes soon. Flushes the transport's last messages, for at most two
/// seconds.
[[nodiscard]] WorkerEnd serve_worker(comm::Transport& transport, WorkerMachine& worker,
                                     const process::ProcessClock& clock, process::Waker& waker,
                                     process::SignalReader* signals, const std::function<bool()>& each_round = {});

} // namespace ranktune::group
