// SPDX-License-Identifier: Apache-2.0
#pragma once
// AttemptMachine: the attempts of this rank, from StartTrial to GroupOver: forms groups, passes reports and verdicts
// between the runner and the head, and ends what hangs.

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/transport/transport.hpp"
#include "comm/wire/protocol.hpp"
#include "worker/part.hpp"
#include "worker/trial/runner.hpp"

namespace ranktune::worker {

/// Part of WorkerMachine, which owns it, joins the study and leaves it. `now` as there. `outbox` must outlive it.
class AttemptMachine {
  public:
    AttemptMachine(base::Rank self, comm::Outbox& outbox, base::StudyTime now)
        : self_(self), outbox_(outbox), last_tick_(now) {}

    /// The head has welcomed this rank. No attempt starts before.
    void begin(std::unique_ptr<worker::Runner> runner, const comm::Welcome& welcome);
    /// A message about attempts; any other one counts as stale.
    void on_message(base::Rank from, const comm::Message& message, base::StudyTime now);
    /// No attempt starts any more, and user code is told to return; soon, unless `clean`.
    void leave(bool clean, base::StudyTime now);
    /// What the runner has to say, at most once a round. Returns why its GPU is of no use any more; empty: it is.
    [[nodiscard]] std::string poll(base::StudyTime now);

    /// Why this process must be ended: its user code does not return.
    struct Overdue {
        std::string why;
        bool hung = false; ///< by itself; otherwise after it was told to return
    };
    /// After `poll`. `suspended`: time since the last round in which this process did not run.
    [[nodiscard]] std::optional<Overdue> watch(base::Duration suspended, base::StudyTime now);
    /// When to call `watch` at the latest, if before `latest`.
    [[nodiscard]] base::StudyTime wake_at(base::StudyTime latest) const;

    /// User code runs here, or may.
    [[nodiscard]] bool runs() const { return current_ && current_->stage == Part::Stage::running; }
    /// The attempt this rank works on; attempt zero: none.
    [[nodiscard]] comm::AttemptKey working_on() const { return current_ ? current_->key : comm::AttemptKey{}; }
    [[nodiscard]] comm::Heartbeat heartbeat() const;
    /// Messages and events dropped because they belong to another attempt or incarnation.
    [[nodiscard]] std::uint64_t stale() const { return stale_; }
    /// Null before `begin`.
    [[nodiscard]] worker::Runner* runner() const { return runner_.get(); }

  private:
    /// A message to a leader that came before its own StartTrial.
    struct Early {
        comm::AttemptKey key;
        base::Rank from;
        std::optional<comm::MemberOver> over; ///< absent: a Ready
    };

    template <class T>
    void send(base::Rank to, const T& what);
    void count_stale() { ++stale_; }
    [[nodiscard]] Part* find(const comm::AttemptKey& key);
    [[nodiscard]] bool is_new(const comm::AttemptKey& key) const;

    // the life of a part
    void become_ready(Part& part);
    void take_early(Part& part);
    void end_unprepared(Part& part, const study::Verdict& verdict);
    void go_if_ready(Part& part);
    void run(Part& part);
    void stop_user_code(base::StudyTime now);
    void over_here(Part& part, study::AttemptOutcome outcome, const study::Failure& failure, base::StudyTime now);
    void member_over(Part& part, base::Rank rank, study::AttemptOutcome outcome, const study::Failure& failure);
    void close_lost(base::StudyTime now);
    void close_if_all_over(Part& part);
    void drop(Part& part);
    void move_up();

    // messages
    void on(const study::StartTrial& m, base::StudyTime now);
    void on(const study::Decide& m, base::StudyTime);
    void on(const comm::ReportsTaken& m, base::StudyTime);
    void on(const comm::Stage&, base::StudyTime);
    void on(const study::Interrupt& m, base::StudyTime);
    void on(const comm::PlaceContested& m, base::StudyTime);
    void on(const study::Abandon& m, base::StudyTime now);
    void on(base::Rank from, const comm::Ready& m);
    void on(base::Rank from, const comm::Go& m);
    void on(base::Rank from, const comm::MemberOver& m);

    // the runner
    /// The trial waits until the head has taken its reports.
    [[nodiscard]] bool held_up() const { return runs() && current_->held_up(); }
    void note_progress(base::StudyTime now);
    void on_runner(worker::RunnerReported& happened, base::StudyTime now);
    void on_runner(worker::RunnerSaved& happened, base::StudyTime);
    void on_runner(worker::RunnerUnsaved& happened, base::StudyTime);
    void on_runner(worker::RunnerNamed& happened, base::StudyTime);
    void on_runner(worker::RunnerEnded& happened, base::StudyTime now);

    // time
    [[nodiscard]] std::optional<base::StudyTime> hung_at() const;
    [[nodiscard]] std::optional<base::StudyTime> closes_at() const;

    base::Rank self_;
    comm::Outbox& outbox_;
    std::unique_ptr<worker::Runner> runner_;
    std::optional<base::Incarnation> incarnation_;
    base::Duration abort_grace_{}; ///< Welcome::abort_grace, at the end perhaps less
    base::Duration progress_timeout_{};
    bool leaving_ = false;
    std::string sick_device_;                                 ///< RunnerEnded
    std::optional<Part> current_;                             ///< the attempt whose user code may run here
    std::optional<Part> next_;                                ///< waits until `current_` is over
    std::unordered_map<base::TrialId, base::AttemptId> seen_; ///< newest attempt of each trial started here
    std::vector<Early> early_;
    std::optional<base::StudyTime> grace_until_; ///< user code was told to return by then
    base::StudyTime last_tick_;
    bool prepares_ = false; ///< what trials need came, or comes, after the first of them
    std::uint64_t stale_ = 0;
    study::Bytes buffer_;
};

} // namespace ranktune::worker
