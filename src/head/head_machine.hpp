// SPDX-License-Identifier: Apache-2.0
#pragma once
// HeadMachine: the messages and timers of the head, without sockets, clocks and threads. It turns messages into events
// of the core, writes the records, and only then turns the commands into messages.
//
// The loop around it:
//
//   HeadMachine head(options, ..., now);
//   while (!head.end()) {
//       while (auto message = transport.poll()) head.on_message(message->from, message->bytes, now());
//       if (signal) head.on_stop_request({.why = "SIGTERM", .by = *signal}, now());
//       head.on_tick(now());               // one group commit per round: step, append, send
//       nap until head.wake_at(), at most;
//   }
//   flush the transport; finalise MPI only if end()->clean.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/transport/transport.hpp"
#include "comm/wire/protocol.hpp"
#include "head/named_places.hpp"
#include "head/observer.hpp"
#include "head/rank_table.hpp"
#include "head/workers.hpp"
#include "process/process_watch.hpp"
#include "ranktune/base/log.hpp"
#include "ranktune/study/record.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::head {

struct HeadOptions {
    base::Incarnation incarnation;
    std::uint32_t workers = 0;           ///< ranks 1 .. workers
    std::string version;                 ///< of this program; a worker of another version is refused
    std::string wall_time;               ///< RFC 3339, for the record IncarnationBegan
    std::string study;                   ///< resolved study file, for Welcome
    std::string study_directory;         ///< absolute, for Welcome
    std::vector<study::RankInfo> places; ///< by rank: NUMA domain, switches, name of its GPU; no entry: unknown
    base::Duration hello_timeout = std::chrono::seconds(120); ///< for all workers to say Hello
    base::Duration deadline_timeout{0}; ///< how long the first trials wait for on_deadline, while Slurm is asked
    base::Duration heartbeat_interval = std::chrono::seconds(1);
    base::Duration heartbeat_timeout = std::chrono::seconds(60); ///< silence after which a rank counts as gone
    base::Duration abort_grace = std::chrono::seconds(30);
    base::Duration progress_timeout{};    ///< of user code, for Welcome; 0: none
    std::optional<study::JobDeath> death; ///< if the previous incarnation ended by the death of its job
    base::Duration observer_interval = std::chrono::milliseconds(500);
    /// Who is behind a signal that reached a worker; empty function: the signal itself.
    std::function<study::Asker(study::Asker signal)> signal_meaning;
    bool check_invariants = false; ///< of the core, after every event (O(trials) each), also in release builds
};

/// What only the loop can do. No call may block.
class HeadDuties {
  public:
    virtual ~HeadDuties() = default;
    /// Unlinks the checkpoint's files (relative to the study directory) once every record appended so far is synced.
    /// Throws base::Error when the journal has failed.
    virtual void delete_checkpoint(const study::DeleteCheckpoint& checkpoint) = 0;
    /// The state in a checkpoint may be that of another trial: whoever opens it reads `why`. Never throws.
    virtual void set_aside(const std::string& /*checkpoint*/, const std::string& /*why*/) noexcept {}
    /// The note that a process wrote when it crashed. guilty: user code crashed, which is the fault of its trial.
    struct LastWords {
        study::CrashNote note;
        bool guilty = false;
    };
    /// Of the process of a rank, which has ended; nothing: it left none.
    [[nodiscard]] virtual std::optional<LastWords> last_words(base::Rank /*rank*/) { return std::nullopt; }
    /// Kills the process of a silent rank on this node (process::kill_silent); nobody: it is not here, or has ended.
    [[nodiscard]] virtual process::Killing end_rank(base::Rank /*rank*/, bool /*at_once*/) {
        return process::Killing::nobody;
    }
    /// Computes a suggestion in the background, however long it takes.
    virtual void prepare(std::uint64_t ticket, searchers::Searcher::Preparation work) = 0;
    /// The next suggestion that is ready.
    [[nodiscard]] virtual std::optional<study::Prepared> prepared() = 0;
    /// The study is over: starts to sync the journal and to publish the results. Called once.
    virtual void publish(const study::EndStudy& end) = 0;
    /// Whether publishing is done. Workers are told to leave only then.
    [[nodiscard]] virtual bool published() = 0;
    /// The end that replaces the one given to `publish`, because its results could not be stored.
    struct Instead {
        study::EndStudy end;
        bool tables = false; ///< only the tables are missing: the journal is complete
    };
    [[nodiscard]] virtual std::optional<Instead> instead() { return std::nullopt; }
};

/// How the head ended.
struct HeadEnd {
    /// Whose end it is: the study's, as in the journal; the study's, but its tables could not be written; or that of a
    /// head that could not or should not continue.
    enum class Whose : std::uint8_t { study, study_without_tables, head };
    study::StudyOutcome outcome = study::StudyOutcome::ok;
    std::string message; ///< for people; empty when the study's state says it all
    bool clean = true;   ///< every worker finalises MPI
    study::Reason reason = study::Reason::study_complete;
    Whose whose = Whose::head;
};

/// All references must outlive it. `now` never decreases and is not earlier than the tuner's last record. When the
/// journal fails (base::Error from the sink or a duty), the study ends as resumable and commands of unwritten records
/// are never sent. Other exceptions pass through.
class HeadMachine {
  public:
    /// `tuner` holds a created or replayed study.
    HeadMachine(HeadOptions options, tuner::Tuner& tuner, study::RecordSink& sink, comm::Outbox& outbox,
                HeadDuties& duties, Observer& observer, base::LogSink& log, base::StudyTime now);
    HeadMachine(const HeadMachine&) = delete;
    HeadMachine& operator=(const HeadMachine&) = delete;

    void on_message(base::Rank from, std::span<const std::byte> bytes, base::StudyTime now);
    /// Ends early and resumably: running trials checkpoint at their next report.
    void on_stop_request(const study::StopRequested& what, base::StudyTime now);
    /// The end of the job as found out now; nothing: no limit, or no longer known.
    void on_deadline(std::optional<base::StudyTime> at, base::StudyTime now);
    /// Whether a request of a user can take effect now; otherwise it waits, for the next start if need be.
    [[nodiscard]] bool may_be_steered() const;
    /// Requires may_be_steered(), and that the core has no objection.
    void on_steering(study::SteerAsked what, base::StudyTime now);
    /// Ends now and resumably: waits only for the workers' Bye.
    void on_stop_at_once(const study::StopRequested& what, base::StudyTime now);
    /// The process of a rank on this node has ended.
    void on_rank_ended(base::Rank rank, base::StudyTime now);
    /// Runs time-outs and timers; appends the records of all events since the last call, then sends their commands.
    void on_tick(base::StudyTime now);

    /// When to call on_tick at the latest, even if no message comes.
    [[nodiscard]] base::StudyTime wake_at() const;
    [[nodiscard]] const std::optional<HeadEnd>& end() const { return end_; }
    /// All workers have said Hello and the core has begun.
    [[nodiscard]] bool began() const { return begun(); }
    /// Figures up to `now`; `head_cpu_s` is what the loop has set by `set_head_cpu`.
    [[nodiscard]] HeadFigures figures(base::StudyTime now) const;
    void set_head_cpu(double seconds) { head_cpu_s_ = seconds; }
    /// Why workers left after this head was silent for too long; empty: none did. If the launcher then ends the other
    /// ranks, that is not a request to stop.
    [[nodiscard]] std::string desertion() const { return workers_.desertion(); }
    /// Ranks that count as gone, ascending.
    [[nodiscard]] std::vector<base::Rank> gone() const { return workers_.gone(); }

  private:
    /// joining: some workers have not said Hello. publishing: the study is over, its results are not synced yet.
    /// leaving: workers were told to leave.
    enum class Phase : std::uint8_t { joining, running, publishing, leaving, over };

    void count_stale() { ++stale_; }

    // events for the core
    /// Whether the state is about this start of the study, not an earlier one.
    [[nodiscard]] bool begun() const { return tuner_.state().incarnation == options_.incarnation; }
    template <class T>
    void step(T& body);
    void begin();
    void begin_when_ready();
    void stop(study::StopRequested what);
    void lose(base::Rank rank, const std::string& why, bool guilty = false);
    void lose_dead(const Workers::Lost& lost);

    // messages
    void on(base::Rank from, comm::Hello& m);
    void on(base::Rank from, comm::Heartbeat& m);
    void on(base::Rank, comm::StopAsked& m);
    void on(base::Rank from, study::ReportArrived& m);
    void on(base::Rank, comm::RankEnded& m);
    void on(base::Rank from, comm::RankWaits& m);
    void on(base::Rank, study::CheckpointSaved& m);
    void on(base::Rank from, comm::PlaceNamed& m);
    void on(base::Rank, comm::CheckpointMissed& m);
    void on(base::Rank from, comm::Staging& m);
    void on(base::Rank from, comm::GroupOver& m);
    void on(base::Rank from, comm::Bye& m);
    void receive(base::Rank from, std::span<const std::byte> bytes);

    // records, then commands
    void flush();
    void carry_out(const study::StartTrial& c);
    [[nodiscard]] base::Rank leader_of(const comm::AttemptKey& key) const;
    template <class T>
    void to_leader(const T& c);
    void carry_out(const study::Decide& c);
    void carry_out(const study::Interrupt& c);
    void carry_out(const study::Abandon& c);
    void carry_out(const study::DeleteCheckpoint& c);
    void carry_out(const study::Prepare& c);
    void carry_out(const study::EndStudy& c);

    // the end
    void end_without_journal(const base::Error& error);
    void finish(study::EndStudy how, HeadEnd::Whose end_of = HeadEnd::Whose::head);
    void tell_to_leave(base::Rank rank, bool clean);
    void leave(bool clean);
    void leave_or_end();

    // time
    void tick();
    void stage_what_is_made();
    void watch();

    HeadOptions options_;
    tuner::Tuner& tuner_;
    study::RecordSink& sink_;
    comm::Outbox& outbox_;
    HeadDuties& duties_;
    Observer& observer_;
    base::LogSink& log_;

    Phase phase_ = Phase::joining;
    HeadEnd::Whose whose_ = HeadEnd::Whose::head; ///< of `result_`
    bool deadline_told_ = false;                  ///< on_deadline was called, with or without a deadline
    bool staged_ = false;                         ///< workers were told that the files of [data] are made
    bool leave_clean_ = true;                     ///< as workers were told
    RankTable table_;
    NamedPlaces places_;
    Workers workers_;
    std::optional<study::StopRequested> early_stop_; ///< requested before the study began
    std::optional<base::StudyTime> deadline_;        ///< of the job
    study::EndStudy result_;
    std::optional<base::StudyTime> leave_until_;
    std::optional<HeadEnd> end_;
    std::uint64_t stale_ = 0;
    std::uint64_t missed_ = 0; ///< checkpoints
    std::string missed_why_;
    std::uint64_t missed_told_ = 1; ///< next count that is logged: the first, the tenth, ...
    std::uint64_t fallbacks_ = 0;
    std::uint64_t events_ = 0;
    double head_cpu_s_ = 0.0;
    double data_s_ = 0.0;

    std::uint64_t iterations_before_; ///< in earlier starts
    base::StudyTime began_at_;
    base::StudyTime now_;
    base::StudyTime next_view_;

    // Reused between calls.
    comm::Message message_;
    study::Event event_;
    tuner::Output output_;
    std::vector<base::Rank> living_;
};

} // namespace ranktune::head
