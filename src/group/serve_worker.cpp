// SPDX-License-Identifier: Apache-2.0
#include "group/serve_worker.hpp"

#include <chrono>

#include "wire/outbox.hpp"

namespace ranktune::group {

WorkerEnd serve_worker(comm::Transport& transport, WorkerMachine& worker, const process::ProcessClock& clock,
                       process::Waker& waker, process::SignalReader* signals, const std::function<bool()>& each_round) {
    using namespace std::chrono_literals;
    process::AdaptiveNap naps(50us, 2000us);
    while (!worker.end()) {
        bool busy = false;
        for (int n = 0; n < wire::messages_per_round && !worker.end(); ++n) {
            const auto message = transport.poll();
            if (!message) break;
            worker.on_message(message->from, message->bytes, clock.now());
            busy = true;
        }
        if (signals != nullptr)
            while (const auto signal = signals->poll()) worker.on_stop_request(*signal, clock.now());
        if (worker.end()) break;
        worker.on_tick(clock.now());
        const bool soon = each_round && each_round();
        const auto now = std::chrono::steady_clock::now();
        if (soon) naps.busy(now);
        if (busy)
            naps.busy(now);
        else if (waker.nap(process::nap_until(worker.wake_at(), clock.now(), naps.next(now)),
                           signals != nullptr ? signals->fd() : -1))
            naps.busy(std::chrono::steady_clock::now());
    }
    wire::flush_transport(transport, waker);
    return *worker.end();
}

} // namespace ranktune::group
