// SPDX-License-Identifier: Apache-2.0
#pragma once
// WorkerMachine: the messages and timers of a worker's service thread, without sockets, clocks and threads. It joins
// the study, watches the head and leaves; its AttemptMachine trains.
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
#include <vector>

#include "comm/transport/transport.hpp"
#include "comm/wire/protocol.hpp"
#include "device/survey.hpp"
#include "process/process_watch.hpp"
#include "ranktune/base/log.hpp"
#include "worker/attempt_machine.hpp"
#include "worker/trial/runner.hpp"

namespace ranktune::worker {

struct WorkerOptions {
    base::Rank rank;
    std::string version; ///< of this program
    std::string host;
    std::uint32_t gpus = 0;
    /// How long the head may be silent before Welcome. After that the limits in Welcome apply.
    base::Duration join_timeout = std::chrono::seconds(120);
    device::GpuPlace gpu = {}; ///< what the driver says about its GPUs
    std::uint32_t ranks = 0;   ///< of the world
    /// Sends a signal to the process of a rank, if it is on this node. Empty: nobody is here.
    std::function<void(base::Rank, int signal)> signal_rank = {};
    /// comm::Neighbours::kill_silent. Empty: likewise.
    std::function<process::Killing(base::Rank, bool at_once)> kill_silent = {};
};

/// Makes this rank's runner from the head's Welcome. A base::Error it throws is sent to the head and ends the worker.
using MakeRunner = std::function<std::unique_ptr<worker::Runner>(const comm::Welcome&)>;

/// How a worker ended.
struct WorkerEnd {
    study::StudyOutcome outcome = study::StudyOutcome::ok;
    std::string message;
    bool clean = true;      ///< every rank lives: MPI may be finalised
    bool at_once = false;   ///< user code did not return in time, or the head is dead: `_exit`, without destructors
    bool guilty = false;    ///< user code hung, which is the trial's fault: for a crash note
    bool device = false;    ///< this rank's GPU failed, which may not be the trial's fault: likewise
    bool lost_head = false; ///< the head has ended, or was held up for too long

    /// Exit code of the process.
    [[nodiscard]] int exit_code() const { return lost_head ? comm::head_lost_code : static_cast<int>(outcome); }
};

/// `now` is this process's monotonic time; it never decreases. References must outlive it.
class WorkerMachine {
  public:
    WorkerMachine(WorkerOptions options, comm::Outbox& outbox, MakeRunner make_runner, base::LogSink& log,
                  base::StudyTime now);
    WorkerMachine(const WorkerMachine&) = delete;
    WorkerMachine& operator=(const WorkerMachine&) = delete;

    void on_message(base::Rank from, std::span<const std::byte> bytes, base::StudyTime now);
    /// Passes the request on to the head, which decides for all.
    void on_stop_request(study::Asker signal, base::StudyTime now);
    /// The process of a rank on this node has ended. The head's end is told to all workers, and ends this one.
    void on_rank_ended(base::Rank rank);
    void on_tick(base::StudyTime now);

    /// When to call on_tick at the latest, even if no message comes and the runner is silent.
    [[nodiscard]] base::StudyTime wake_at() const;
    [[nodiscard]] const std::optional<WorkerEnd>& end() const { return end_; }
    /// The attempt this rank works on; attempt zero: none.
    [[nodiscard]] comm::AttemptKey working_on() const { return attempts_.working_on(); }
    /// Messages dropped because they belong to another attempt or incarnation.
    [[nodiscard]] std::uint64_t stale_messages() const { return stale_ + attempts_.stale(); }
    /// Null before Welcome.
    [[nodiscard]] worker::Runner* runner() { return attempts_.runner(); }

  private:
    template <class T>
    void send(base::Rank to, const T& what);
    void finish(study::StudyOutcome outcome, std::string text, bool clean, bool at_once);
    void give_up(const std::string& why, bool at_once, bool guilty = false);
    void count_stale() { ++stale_; }

    // messages
    void on(const comm::Welcome& m, base::StudyTime now);
    void on(const comm::Alive&, base::StudyTime);
    void on(const comm::Leave& m, base::StudyTime now);
    void say_bye();
    void on(const comm::RankEnded& m);
    void on(const comm::EndRank& m, base::StudyTime);

    // time
    [[nodiscard]] base::Duration head_timeout() const {
        return welcome_ ? welcome_->head_timeout : options_.join_timeout;
    }
    void heartbeat(base::StudyTime now);
    void watch(base::StudyTime now);
    void lose_head(const std::string& why, bool silent);

    WorkerOptions options_;
    comm::Outbox& outbox_;
    MakeRunner make_runner_;
    base::LogSink& log_;
    AttemptMachine attempts_;
    std::optional<comm::Welcome> welcome_;
    std::optional<comm::Leave> leave_;
    std::optional<WorkerEnd> end_;
    base::StudyTime heard_head_;
    base::StudyTime last_tick_;
    base::StudyTime next_heartbeat_;
    std::uint64_t stale_ = 0;
    study::Bytes buffer_;
    comm::Message message_;
};

} // namespace ranktune::worker
