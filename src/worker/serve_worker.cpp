// SPDX-License-Identifier: Apache-2.0
#include "worker/serve_worker.hpp"

#include <chrono>
#include <string>

#include "comm/transport/flush.hpp"
#include "ddp/collective.hpp"
#include "ddp/collective/mpi_collective.hpp"

namespace ranktune::worker {

WorkerEnd serve_worker(comm::Transport& transport, WorkerMachine& worker, const process::ProcessClock& clock,
                       process::Waker& waker, process::SignalReader* signals, const std::function<bool()>& each_round) {
    using namespace std::chrono_literals;
    process::AdaptiveNap naps(50us, 2000us, 2000us); // ranks that ask for blocks do not ring
    std::chrono::steady_clock::time_point next_signals{};
    while (!worker.end()) {
        int taken = 0;
        for (; taken < comm::messages_per_round && !worker.end(); ++taken) {
            const auto message = transport.poll();
            if (!message) break;
            worker.on_message(message->from, message->bytes, clock.now());
        }
        if (const auto now = std::chrono::steady_clock::now(); signals != nullptr && now >= next_signals) {
            next_signals = now + process::between_signals;
            while (const auto signal = signals->poll()) worker.on_stop_request(*signal, clock.now());
        }
        if (worker.end()) break;
        worker.on_tick(clock.now());
        const bool soon = each_round && each_round();
        const auto now = std::chrono::steady_clock::now();
        if (soon || taken > 0) naps.busy(now);
        // A message that comes now ends the nap, if it rings.
        const bool quiet = !soon && taken < comm::messages_per_round && transport.is_quiet();
        const bool woken =
            (taken == 0 || quiet) && waker.nap(process::nap_until(worker.wake_at(), clock.now(), naps.next(now, quiet)),
                                               signals != nullptr ? signals->fd() : -1, transport.bell());
        if (woken) naps.busy(std::chrono::steady_clock::now());
    }
    comm::flush_transport(transport, waker);
    return *worker.end();
}

device::GpuPlace survey_own_gpus(const std::vector<std::string>& granted) {
    return granted.empty() ? device::GpuPlace{} : device::place_of(granted, device::survey_gpus());
}

worker::FormGroup make_mpi_groups(comm::GroupFactory& factory, ddp::DeviceGroups& devices) {
    return [&factory, &devices](const worker::Assignment& assignment,
                                const std::atomic<bool>& abort) -> std::unique_ptr<ddp::Collective> {
        const auto& start = assignment.start;
        if (start.ranks.size() == 1) return ddp::make_self_collective(&abort);
        return ddp::form_mpi_collective(factory, start.ranks,
                                        comm::formation_ticket(start.trial, start.attempt, start.incarnation), abort,
                                        &devices, "trial " + std::to_string(start.trial.value()));
    };
}

} // namespace ranktune::worker
