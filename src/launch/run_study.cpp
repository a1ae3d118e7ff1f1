// SPDX-License-Identifier: Apache-2.0
#include "launch/run_study.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "comm/exchange/block_exchange.hpp"
#include "comm/layout/binding.hpp"
#include "comm/mpi/faults.hpp"
#include "comm/mpi/launch.hpp"
#include "comm/mpi/pmix.hpp"
#include "comm/transport/bell.hpp"
#include "comm/transport/flush.hpp"
#include "comm/transport/mpi_transport.hpp"
#include "comm/transport/shared.hpp"
#include "comm/wire/keep_alive.hpp"
#include "data/staging/stager.hpp"
#include "ddp/gradients/device_groups.hpp"
#include "head/head_run.hpp"
#include "process/background.hpp"
#include "process/environment.hpp"
#include "process/guard.hpp"
#include "process/process_watch.hpp"
#include "process/program/environment.hpp"
#include "process/signal_note.hpp"
#include "process/signals.hpp"
#include "process/wake.hpp"
#include "ranktune/base/text.hpp"
#include "studydir/crash_note.hpp"
#include "worker/serve_worker.hpp"
#include "worker/worker_output.hpp"
#include "worker/worker_runner.hpp"

namespace ranktune::launch {
namespace {

[[noreturn]] void leave_without_mpi(int code) {
    comm::mpi::Environment::abandon();
    comm::mpi::leave_pmix();
    // Open MPI 5's mpirun drops what it has read of the end screen, but not yet shown, when a rank ends by an error.
    if (code != 0 && comm::mpi::reports_deaths()) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    _exit(code);
}

/// This rank is about to wait for the others in MPI_Finalize: for ever, if one of them dies now and the launcher lets
/// the rest live. Returns `code`.
int leave_soon(int code) {
    if (!comm::mpi::outlives_ranks(process::environment_variables(), comm::mpi::library_version())) return code;
    static process::Background watch([code]() -> process::Background::Clock::time_point { leave_without_mpi(code); },
                                     process::Background::Clock::now() + std::chrono::seconds(10));
    return code;
}

/// Lets trainables of this process see only their rank's GPUs, numbered from 0. Call before any thread is started.
/// `any`: the job has GPUs. A rank without one must not take that of another.
void show_own_gpus(const std::vector<std::string>& gpus, bool any) {
    if (!any) return;
    for (const auto& [name, value] : process::gpu_variables(base::join(gpus, ","))) {
        if (value)
            setenv(name.c_str(), value->c_str(), 1);
        else
            unsetenv(name.c_str());
    }
}

/// Ranks on the node of `rank`, itself included.
std::uint32_t ranks_beside(const comm::Layout& layout, base::Rank rank) {
    const auto& nodes = layout.nodes;
    return rank.value() < nodes.size() ? static_cast<std::uint32_t>(std::ranges::count(nodes, nodes[rank.value()])) : 1;
}

/// By rank: the GPUs of ranks on the node of `rank`.
std::vector<std::vector<std::string>> gpus_on_node(const comm::Layout& layout, base::Rank rank) {
    auto gpus = layout.gpus;
    for (std::size_t r = 0; r < gpus.size(); ++r)
        if (layout.nodes[r] != layout.nodes[rank.value()]) gpus[r].clear();
    return gpus;
}

/// `neighbours` outlives the result.
worker::WorkerOptions options_of_worker(const comm::Transport& transport, const head::RunOptions& options,
                                        comm::Listening& neighbours) {
    worker::WorkerOptions worker;
    worker.rank = transport.rank();
    worker.ranks = transport.size();
    worker.version = options.version;
    worker.host = process::host_name();
    worker.gpus = static_cast<std::uint32_t>(options.layout.gpus_of(worker.rank).size());
    worker.gpu = worker::survey_own_gpus(options.layout.gpus_of(worker.rank));
    worker.signal_rank = [&neighbours](base::Rank rank, int signal) { neighbours.signal(rank, signal); };
    worker.kill_silent = [&neighbours](base::Rank rank, bool at_once) { return neighbours.kill_silent(rank, at_once); };
    return worker;
}

/// Ranks with trials, by node.
data::Nodes nodes_of_workers(const comm::Layout& layout, base::Rank self) {
    std::map<std::string, std::vector<base::Rank>> by_name;
    for (std::uint32_t r = 1; r < layout.nodes.size(); ++r) by_name[layout.nodes[r]].push_back(base::Rank(r));
    if (by_name.empty()) return {{{self}}, 0}; // the layout is unknown
    data::Nodes nodes;
    for (auto& [name, ranks] : by_name) {
        if (name == layout.nodes[self.value()]) nodes.own = nodes.ranks.size();
        nodes.ranks.push_back(std::move(ranks));
    }
    return nodes;
}

/// The copies of data that this rank makes and uses, and what the head is told of them.
class DataCopies {
  public:
    explicit DataCopies(comm::Outbox& outbox) : outbox_(outbox) {}

    std::shared_ptr<data::Stager> start(const study::StudySpec& spec, const comm::Layout& layout, base::Rank self,
                                        comm::BlockExchange& exchange, base::LogSink& log, process::Waker& waker) {
        if (!spec.staging.stage || spec.data.empty()) return nullptr;
        data::Nodes nodes = nodes_of_workers(layout, self);
        const auto write = [&log](std::string_view line) {
            log.write(base::LogLevel::info, "data", {{"text", std::string(line)}});
        };
        data::StagerOptions options;
        options.speaks = nodes.ranks[nodes.own].front() == self;
        comm::BlockExchange* const way = nodes.ranks.size() > 1 ? &exchange : nullptr;
        stager_ = std::make_shared<data::Stager>(
            spec, std::move(nodes), way, write, [&waker] { waker.wake(); }, std::move(options));
        return stager_;
    }
    /// Call in every round. Tells twice a second, and at the end.
    void tell() {
        if (!stager_ || told_.over) return;
        const auto now = std::chrono::steady_clock::now();
        const data::StagingFigures figures = stager_->figures();
        if (figures == told_ || (!figures.over && now < next_)) return;
        next_ = now + std::chrono::milliseconds(500);
        told_ = figures;
        comm::encode_message(comm::Staging{figures.bytes, figures.copied, figures.read, figures.over, figures.problem},
                             buffer_);
        outbox_.send(base::head_rank, buffer_);
    }
    /// User code that still runs keeps what it has open.
    void give_back() {
        if (stager_) stager_->give_back();
    }

  private:
    comm::Outbox& outbox_;
    std::shared_ptr<data::Stager> stager_;
    data::StagingFigures told_;
    std::chrono::steady_clock::time_point next_;
    study::Bytes buffer_;
};

/// Slurm would kill the step as soon as this worker is killed: its guard keeps the connection to PMIx.
void keep_step_alive(const comm::Layout& layout, base::Rank rank) {
    if (!comm::mpi::outlives_ranks(process::environment_variables(), comm::mpi::library_version())) return;
    storage::FileDescriptor connection(comm::mpi::connection_to_pmix());
    if (!connection) return;
    std::vector<std::uint64_t> pids;
    for (const auto& other : comm::processes_of(layout, comm::ring_of(layout, rank))) pids.push_back(other.pid);
    process::Guard::instance().hold(std::move(connection), pids);
}

int run_worker(comm::Transport& wire, comm::GroupFactory& groups, comm::BlockExchange& exchange,
               process::SignalReader& signals, const head::RunOptions& options) {
    comm::SharedTransport transport(wire);
    process::Waker waker;
    comm::Listening neighbours(options.neighbours, waker);
    const worker::WorkerOptions worker_options = options_of_worker(transport, options, neighbours);
    // NCCL takes this variable for the name of the node, too: with one per rank, ranks may share a GPU (tests do).
    const std::string node = process::environment_variable("NCCL_HOSTID");
    ddp::DeviceGroups device_groups({.host = node.empty() ? worker_options.host : node});
    worker::WorkerLog log(worker_options.rank);
    worker::WorkerOutput output(log);
    const process::ProcessClock clock;
    std::optional<base::StudyTime> dies_at;
    DataCopies copies(transport);
    const auto on_study = [&](const study::StudySpec& spec) { // before the trial thread starts
        device_groups.set_form_within(spec.failure.forming_timeout);
        const std::string problem =
            comm::bind_as_planned(comm::plan_binding(options.layout, spec.resources), worker_options.rank);
        if (!problem.empty()) log.write(base::LogLevel::warning, "bind", {{"problem", problem}});
    };
    const auto stage = [&](const study::StudySpec& spec) {
        return copies.start(spec, options.layout, worker_options.rank, exchange, log, waker);
    };
    worker::MakeRunner make_runner = worker::make_trial_runner(
        storage::posix_file_system(), worker::make_mpi_groups(groups, device_groups), worker_options.host, log, waker,
        {options.layout.gpus_of(worker_options.rank), options.layout.job_has_gpus,
         gpus_on_node(options.layout, worker_options.rank)},
        on_study, stage, {&exchange, ranks_beside(options.layout, worker_options.rank)});
    worker::WorkerMachine worker(
        worker_options, transport,
        [&](const comm::Welcome& welcome) {
            studydir::prepare_crash_note(welcome.directory, welcome.incarnation, worker_options.rank);
            return make_runner(welcome);
        },
        log, clock.now());
    // The loop also writes user output to disk, which may take long: another thread keeps the heartbeat.
    comm::KeepAlive keep_alive(transport, comm::Heartbeat{}, {base::head_rank});
    const worker::WorkerEnd end = worker::serve_worker(transport, worker, clock, waker, &signals, [&] {
        keep_alive.loop_is_here();
        while (const auto rank = neighbours.ended()) worker.on_rank_ended(*rank);
        const auto key = worker.working_on();
        // From its first trial on: a death before all have joined would end the start, and say nothing to a log.
        if (options.dies_after && !dies_at && key.attempt.value() != 0) dies_at = clock.now() + *options.dies_after;
        if (dies_at && clock.now() >= *dies_at) process::die_on_purpose(log, [&] { output.drain(std::nullopt); });
        studydir::note_attempt(key);
        output.tend(key.attempt.value() == 0 ? std::nullopt : std::optional(key.trial));
        device_groups.tend();
        copies.tell();
        return exchange.serve() == comm::BlockExchange::Served::by_hand;
    });
    keep_alive.stop();
    if (end.guilty) studydir::leave_crash_note(studydir::CrashCause::trial, end.message.c_str());
    if (end.device) studydir::leave_crash_note(studydir::CrashCause::device, end.message.c_str());
    if (!end.at_once) std::fflush(nullptr); // a hung thread may hold a stream's lock
    output.drain(std::nullopt);
    if (end.at_once) worker::trace_trial(worker.runner(), log);
    copies.give_back();
    // While user code runs or a peer is dead, nothing here may be destroyed.
    if (end.at_once || !end.clean) leave_without_mpi(end.exit_code());
    return leave_soon(end.exit_code());
}

} // namespace

int run_study(const comm::mpi::Environment& environment, const head::RunOptions& options) {
    process::SignalReader signals(options.signal_meanings);
    auto transport = comm::make_mpi_transport(environment); // collective, like `groups` and `exchange`
    if (options.wrap) transport = options.wrap(std::move(transport));
    const comm::Bell bell(comm::processes_near(options.layout, transport->rank()));
    comm::RingingTransport ringing(*transport, bell);
    comm::GroupFactory groups(environment);
    comm::BlockExchange exchange(environment);
    if (environment.rank() != 0) {
        show_own_gpus(options.layout.gpus_of(transport->rank()), options.layout.job_has_gpus);
        keep_step_alive(options.layout, transport->rank());
        return run_worker(ringing, groups, exchange, signals, options);
    }
    if (options.refused) {
        process::Waker waker;
        const comm::Listening neighbours(options.neighbours, waker); // they may leave before this rank
        head::send_all_away(ringing, *options.refused, "");
        return leave_soon(static_cast<int>(*options.refused));
    }
    const head::HeadRunEnd end = head::run_head(ringing, &signals, options, comm::mpi::library_version());
    if (!end.clean) {
        std::fflush(nullptr);
        process::leave_exit_code(static_cast<int>(end.outcome));
        leave_without_mpi(static_cast<int>(end.outcome));
    }
    return leave_soon(static_cast<int>(end.outcome));
}

} // namespace ranktune::launch
