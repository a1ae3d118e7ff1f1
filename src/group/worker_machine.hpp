// SPDX-License-Identifier: Apache-2.0
#pragma once
// WorkerMachine: the messages and timers of a worker's service thread, without sockets, clocks and threads. It joins,
// forms groups, passes reports and verdicts between the runner and the head, and ends.
//
// The loop around it:
//
//   WorkerMachine worker(options, outbox, make_runner, log, now);
//   while (!worker.end()) {
//       while (auto message = transport.poll()) worker.on_message(message->from, message->bytes, now());
//       if (signal) worker.on_stop_request(*signal, now());
//       worker.on_tick(now());             // heartbeats, time-outs, and what the runner has to say
//       nap until worker.wake_at(), at most, or until the runner has something;
//   }
//   flush the transport (bounded); `_exit` when end()->at_once, finalise MPI only if end()->clean.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "device/survey.hpp"
#include "ranktune/base/log.hpp"
#include "trial/runner.hpp"
#include "wire/protocol.hpp"

namespace ranktune::group {

struct WorkerOptions {
    base::Rank rank;
    std::string version; ///< of this program
    std::string host;
    std::uint32_t gpus = 0;
    /// How long the head may be silent before Welcome. After that the limits in Welcome apply.
    base::Duration join_timeout = std::chrono::seconds(120);
    device::GpuPlace gpu = {}; ///< what the driver says about its GPUs
};

/// Makes this rank's runner from the head's Welcome. A base::Error it throws is sent to the head and ends the worker.
using MakeRunner = std::function<std::unique_ptr<trial::Runner>(const wire::Welcome&)>;

/// How a worker ended.
struct WorkerEnd {
    study::StudyOutcome outcome = study::StudyOutcome::ok;
    std::string message;
    bool clean = true;      ///< every rank lives: MPI may be finalised
    bool at_once = false;   ///< user code did not return in time, or the head is dead: `_exit`, without destructors
    bool guilty = false;    ///< user code hung, which is the trial's fault: for a crash note
    bool device = false;    ///< this rank's GPU failed, which may not be the trial's fault: likewise
    bool lost_head = false; ///< the head is dead, or was held up for too long

    /// Exit code of the process.
    [[nodiscard]] int exit_code() const { return lost_head ? wire::head_lost_code : static_cast<int>(outcome); }
};

/// `now` is this process's monotonic time; it never decreases. References must outlive it.
class WorkerMachine {
  public:
    WorkerMachine(WorkerOptions options, wire::Outbox& outbox, MakeRunner make_runner, base::LogSink& log,
                  base::StudyTime now);
    ~WorkerMachine();
    WorkerMachine(const WorkerMachine&) = delete;
    WorkerMachine& operator=(const WorkerMachine&) = delete;

    void on_message(base::Rank from, std::span<const std::byte> bytes, base::StudyTime now);
    /// Passes the request on to the head, which decides for all.
    void on_stop_request(study::Asker signal, base::StudyTime now);
    void on_tick(base::StudyTime now);

    /// When to call on_tick at the latest, even if no message comes and the runner is silent.
    [[nodiscard]] base::StudyTime wake_at() const;
    [[nodiscard]] const std::optional<WorkerEnd>& end() const;
    /// The attempt this rank works on; attempt zero: none.
    [[nodiscard]] wire::AttemptKey working_on() const;
    /// Messages dropped because they belong to another attempt or incarnation.
    [[nodiscard]] std::uint64_t stale_messages() const;
    /// Null before Welcome.
    [[nodiscard]] trial::Runner* runner();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace ranktune::group
