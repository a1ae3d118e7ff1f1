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
#include <unordered_map>
#include <vector>

#include "device/survey.hpp"
#include "group/part.hpp"
#include "process/process_watch.hpp"
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
    std::uint32_t ranks = 0;   ///< of the world
    /// Sends a signal to the process of a rank, if it is on this node. Empty: nobody is here.
    std::function<void(base::Rank, int signal)> signal_rank = {};
    /// layout::Neighbours::kill_silent. Empty: likewise.
    std::function<process::Killing(base::Rank, bool at_once)> kill_silent = {};
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
    bool lost_head = false; ///< the head has ended, or was held up for too long

    /// Exit code of the process.
    [[nodiscard]] int exit_code() const { return lost_head ? wire::head_lost_code : static_cast<int>(outcome); }
};

/// `now` is this process's monotonic time; it never decreases. References must outlive it.
class WorkerMachine {
  public:
    WorkerMachine(WorkerOptions options, wire::Outbox& outbox, MakeRunner make_runner, base::LogSink& log,
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
    [[nodiscard]] wire::AttemptKey working_on() const { return current_ ? current_->key : wire::AttemptKey{}; }
    /// Messages dropped because they belong to another attempt or incarnation.
    [[nodiscard]] std::uint64_t stale_messages() const { return stale_; }
    /// Null before Welcome.
    [[nodiscard]] trial::Runner* runner() { return runner_.get(); }

  private:
    /// A message to a leader that came before its own StartTrial.
    struct Early {
        wire::AttemptKey key;
        base::Rank from;
        std::optional<wire::MemberOver> over; ///< absent: a Ready
    };

    template <class T>
    void send(base::Rank to, const T& what);
    void finish(study::StudyOutcome outcome, std::string text, bool clean, bool at_once);
    void give_up(const std::string& why, bool at_once, bool guilty = false);
    [[nodiscard]] Part* find(const wire::AttemptKey& key);
    [[nodiscard]] bool is_new(const wire::AttemptKey& key) const;

    // the life of a part
    void stop_user_code(base::StudyTime now);
    void become_ready(Part& part);
    void end_unprepared(Part& part, const study::Verdict& verdict);
    void go_if_ready(Part& part);
    void run(Part& part);
    void over_here(Part& part, study::AttemptOutcome outcome, const study::Failure& failure, base::StudyTime now);
    void member_over(Part& part, base::Rank rank, study::AttemptOutcome outcome, const study::Failure& failure);
    [[nodiscard]] std::optional<base::StudyTime> closes_at() const;
    void close_lost(base::StudyTime now);
    void close_if_all_over(Part& part);
    void drop(Part& part);
    void move_up();
    void abandon(Part& part, const std::vector<base::Rank>& living, base::StudyTime now);
    void count_stale() { ++stale_; }

    // messages
    void on(const wire::Welcome& m, base::StudyTime now);
    void on(const study::StartTrial& m, base::StudyTime now);
    void take_early(Part& part);
    void on(const study::Decide& m, base::StudyTime);
    void on(const wire::ReportsTaken& m, base::StudyTime);
    void on(const study::Interrupt& m, base::StudyTime);
    void on(const wire::PlaceContested& m, base::StudyTime);
    void on(const study::Abandon& m, base::StudyTime now);
    void on(const wire::Alive&, base::StudyTime);
    void on(const wire::Leave& m, base::StudyTime now);
    void say_bye();
    void on(base::Rank from, const wire::Ready& m);
    void on(base::Rank from, const wire::Go& m);
    void on(base::Rank from, const wire::MemberOver& m);
    void on(base::Rank from, const wire::RankEnded& m);
    void on(const wire::EndRank& m, base::StudyTime);
    void dispatch(base::Rank from, base::StudyTime now);

    // the runner
    void poll_runner(base::StudyTime now);
    /// The trial waits until the head has taken its reports.
    [[nodiscard]] bool held_up() const {
        return current_ && current_->stage == Part::Stage::running && current_->held_up();
    }
    void note_progress(base::StudyTime now);
    [[nodiscard]] std::optional<base::StudyTime> hung_at() const;
    void on_runner(trial::RunnerReported& happened, base::StudyTime now);
    void on_runner(trial::RunnerSaved& happened, base::StudyTime);
    void on_runner(trial::RunnerUnsaved& happened, base::StudyTime);
    void on_runner(trial::RunnerNamed& happened, base::StudyTime);
    void on_runner(trial::RunnerEnded& happened, base::StudyTime now);

    // time
    [[nodiscard]] base::Duration head_timeout() const {
        return welcome_ ? welcome_->head_timeout : options_.join_timeout;
    }
    void heartbeat(base::StudyTime now);
    void watch(base::StudyTime now);
    void lose_head(const std::string& why, bool silent);

    WorkerOptions options_;
    wire::Outbox& outbox_;
    MakeRunner make_runner_;
    base::LogSink& log_;
    std::unique_ptr<trial::Runner> runner_;
    std::optional<wire::Welcome> welcome_;
    std::optional<wire::Leave> leave_;
    std::optional<WorkerEnd> end_;
    std::optional<Part> current_;                             ///< the attempt whose user code may run here
    std::optional<Part> next_;                                ///< waits until `current_` is over
    std::unordered_map<base::TrialId, base::AttemptId> seen_; ///< newest attempt of each trial started here
    std::vector<Early> early_;
    base::StudyTime heard_head_;
    base::StudyTime last_tick_;
    base::StudyTime next_heartbeat_;
    std::optional<base::StudyTime> grace_until_; ///< user code was told to return by then
    bool prepares_ = false;                      ///< what trials need came, or comes, after the first of them
    std::uint64_t stale_ = 0;
    study::Bytes buffer_;
    wire::Message message_;
};

} // namespace ranktune::group
