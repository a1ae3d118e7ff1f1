// SPDX-License-Identifier: Apache-2.0
#include "drivers/run.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "comm/transport/mpi_transport.hpp"
#include "comm/transport/shared.hpp"
#include "drivers/binding.hpp"
#include "drivers/environment.hpp"
#include "drivers/group/crash_note.hpp"
#include "drivers/group/mpi_groups.hpp"
#include "drivers/group/serve_worker.hpp"
#include "drivers/group/worker_output.hpp"
#include "drivers/group/worker_runner.hpp"
#include "drivers/head/head_run.hpp"
#include "drivers/keep_alive.hpp"
#include "drivers/outbox.hpp"
#include "drivers/signals.hpp"
#include "drivers/wake.hpp"
#include "trainables/program/environment.hpp"

namespace ranktune::drivers {
namespace {

[[noreturn]] void leave_without_mpi(int code) {
    comm::mpi::Environment::abandon();
    _exit(code);
}

/// Trainables of this process find the GPUs of their rank and no others, counted from 0. Before any thread is started.
void show_own_gpus(const std::vector<std::string>& gpus) {
    if (gpus.empty()) return;
    std::string list;
    for (const auto& gpu : gpus) list += (list.empty() ? "" : ",") + gpu;
    for (const auto& [name, value] : trainables::gpu_variables(list)) {
        if (value)
            setenv(name.c_str(), value->c_str(), 1);
        else
            unsetenv(name.c_str());
    }
}

int run_worker(comm::Transport& wire, comm::GroupFactory& groups, SignalReader& signals, const RunOptions& options) {
    comm::SharedTransport transport(wire);
    WorkerOptions worker_options;
    worker_options.rank = transport.rank();
    worker_options.version = options.version;
    worker_options.host = host_name();
    worker_options.gpus = static_cast<std::uint32_t>(options.layout.gpus_of(worker_options.rank).size());
    Waker waker;
    WorkerLog log(worker_options.rank);
    WorkerOutput output(log);
    TransportOutbox outbox(transport);
    const ProcessClock clock;
    const auto bind = [&](const study::StudySpec& spec) { // before the trial thread is started
        const std::string problem = bind_as_planned(plan_binding(options.layout, spec.resources), worker_options.rank);
        if (!problem.empty()) log.write(base::LogLevel::warning, "bind", {{"problem", problem}});
    };
    MakeRunner make_runner =
        make_trial_runner(storage::posix_file_system(), make_mpi_groups(groups), worker_options.host, log, waker,
                          {options.layout.gpus_of(worker_options.rank), options.layout.job_has_gpus}, bind);
    WorkerMachine worker(
        worker_options, outbox,
        [&](const Welcome& welcome) {
            prepare_crash_note(welcome.directory, welcome.incarnation, worker_options.rank);
            return make_runner(welcome);
        },
        log, clock.now());
    // What user code prints is written to a disk in the rounds of the loop.
    KeepAlive keep_alive(transport, Heartbeat{}, {base::head_rank});
    const WorkerEnd end = serve_worker(transport, worker, clock, waker, &signals, [&] {
        keep_alive.loop_is_here();
        const auto key = worker.working_on();
        note_attempt(key);
        output.drain(key.attempt.value() == 0 ? std::nullopt : std::optional(key.trial));
    });
    keep_alive.stop();
    if (end.guilty) leave_crash_note(end.message.c_str());
    if (!end.at_once) std::fflush(nullptr); // a hung thread may hold a stream's lock
    output.drain(std::nullopt);
    if (end.at_once) trace_trial(worker.runner(), log);
    // With user code still running, or a peer dead, nothing here may be destroyed.
    if (end.at_once || !end.clean) leave_without_mpi(end.exit_code());
    return end.exit_code();
}

} // namespace

int run_study(const comm::mpi::Environment& environment, const RunOptions& options) {
    SignalReader signals(options.signal_meanings);
    auto transport = comm::make_mpi_transport(environment); // collective, like the next
    if (options.wrap) transport = options.wrap(std::move(transport));
    comm::GroupFactory groups(environment);
    if (environment.rank() != 0) {
        show_own_gpus(options.layout.gpus_of(transport->rank()));
        return run_worker(*transport, groups, signals, options);
    }
    if (options.refused) {
        send_all_away(*transport, *options.refused, "");
        return static_cast<int>(*options.refused);
    }
    const HeadRunEnd end = run_head(*transport, &signals, options, comm::mpi::library_version());
    if (!end.clean) {
        std::fflush(nullptr);
        leave_without_mpi(static_cast<int>(end.outcome));
    }
    return static_cast<int>(end.outcome);
}

} // namespace ranktune::drivers
