// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tuning core: events in, records and commands out. No clock, no files, no network, no threads.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ranktune/schedulers/objective_reader.hpp"
#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/study/command.hpp"
#include "ranktune/study/event.hpp"
#include "ranktune/study/record.hpp"
#include "ranktune/study/spec.hpp"
#include "tuner/admission/admission.hpp"
#include "tuner/outcomes.hpp"
#include "tuner/round.hpp"
#include "tuner/state.hpp"

namespace ranktune::tuner {

/// What the driver must do after a step, in this order:
///   1. append `records` to the journal; they must be *written* before
///   2. any of `commands` leaves.
/// The driver clears it between steps, or lets several steps collect in it (group commit).
struct Output {
    std::vector<study::Record> records;
    std::vector<study::Command> commands;
    /// Events that were dropped: of another incarnation or attempt, or reported before. A running count, never cleared.
    std::uint64_t stale = 0;
    void clear() {
        records.clear();
        commands.clear();
    }
};

/// One study. The same object runs under a driver, a simulator and a replay.
///
/// Duties of a driver: (1) `create` once for a new study, or `apply` every record of the journal (from a `restore`d
/// snapshot on), then `change` and `reopen` as asked; (2) `step` with
/// Began; (3) `step` with every event, `now` never decreasing, and with TimerFired at `timer()`; (4) the order above;
/// (5) after a command was lost with its connection, send `pending_commands()` again: each is idempotent.
///
/// Inside, deciding is const and yields records, and `apply` alone changes the state. A round takes the next record
/// until there is none.
class Tuner {
  public:
    explicit Tuner(study::StudySpec spec);
    /// With the given algorithms; null: as the study file says. Throws base::UsageError for a combination that cannot
    /// work.
    Tuner(study::StudySpec spec, std::unique_ptr<schedulers::Scheduler> scheduler,
          std::unique_ptr<searchers::Searcher> searcher);
    Tuner(const Tuner&) = delete;
    Tuner& operator=(const Tuner&) = delete;

    /// The first record of a new study. `simulation`: what is simulated, in words; empty: a real study.
    void create(const std::string& uuid, const std::string& resolved_spec, const std::string& version, Output& out,
                const std::string& simulation = {});
    /// Right after `create`: results of earlier studies, which the searcher learns from.
    void warm_start(study::WarmStarted earlier, Output& out);
    /// Between two lives (after `apply` of the journal, before Began): the study file changed. Only keys that may
    /// change take effect. Throws base::FormatError when `resolved_spec` cannot be parsed.
    void change(const std::string& resolved_spec, const std::string& version, StudyTime now, Output& out);
    /// Between two lives: the failed trial `id` waits again, from its last checkpoint if it has one and not
    /// `from_scratch`. Requires that it failed.
    void reopen(TrialId id, bool from_scratch, StudyTime now, Output& out);
    /// Decides and applies. Stale events (another incarnation, attempt, or an iteration already reported) are counted
    /// and dropped.
    void step(const study::Event& event, Output& out);
    /// Why this request of a user cannot take effect, in words that end in what to do; empty: it can. A request that
    /// took effect before has no objection, and does nothing.
    [[nodiscard]] std::string objection(const study::Steering& ask) const;
    /// The only mutator, live and in replay. Throws base::FormatError when the record contradicts the state.
    void apply(const study::Record& record);
    /// All commands that the state implies and whose effect has not been seen: StartTrial of attempts without a sign of
    /// life, the last Decide of each, Interrupt, Abandon, Prepare, EndStudy after the end. Changes nothing.
    [[nodiscard]] std::vector<study::Command> pending_commands() const;
    /// The work that the command Prepare asks for. It may run on another thread: it does not use this object. nullopt:
    /// nobody waits for this ticket (any more).
    [[nodiscard]] std::optional<searchers::Searcher::Preparation> preparation(std::uint64_t ticket) const;
    /// What the searcher's suggestion for the next trial rests on, if it has this origin (of kind searcher); for
    /// readers.
    [[nodiscard]] study::SuggestionBasis basis_of(const study::Origin& origin) const;
    /// When an event TimerFired is due; nullopt: never. May change with every record. O(1).
    [[nodiscard]] std::optional<StudyTime> timer() const;

    [[nodiscard]] const State& state() const { return state_; }
    [[nodiscard]] const study::StudySpec& spec() const { return spec_; }
    [[nodiscard]] const schedulers::Scheduler& scheduler() const { return *scheduler_; }

    /// Throws std::logic_error naming what does not hold. O(trials + ranks).
    void check_invariants() const;
    /// XXH64 of the whole state: equal after `step` and after applying the same records.
    [[nodiscard]] std::uint64_t digest() const;
    void snapshot(study::Encoder& out) const;
    void restore(study::Decoder& in);

  private:
    using Next = std::optional<study::Record>;

    // ---- apply.cpp: the only mutators. `apply(record)` dispatches, then tells scheduler, searcher and admission.
    void apply_one(const study::StudyCreated& r);
    void apply_one(const study::IncarnationBegan& r);
    void apply_one(const study::MetricDefined& r);
    void apply_one(const study::TrialCreated& r);
    void apply_one(const study::TrialStarted& r);
    void apply_one(const study::Reported& r);
    void apply_one(const study::CheckpointCommitted& r);
    void apply_one(const study::CheckpointReleased& r);
    void apply_one(const study::AttemptEnded& r);
    void apply_one(const study::TrialPromoted& r);
    void apply_one(const study::TrialClosed& r);
    void apply_one(const study::RankLost& r);
    void apply_one(const study::DrainBegan& r);
    void apply_one(const study::StudyEnded& r);
    void apply_one(const study::Snapshot&) {}
    void apply_one(const study::StudyChanged& r);
    void apply_one(const study::TrialReopened& r);
    void apply_one(const study::DeadlineSet& r);
    void apply_one(const study::ReportHeld& r);
    void apply_one(const study::JobDied& r);
    void apply_one(const study::HostRetired& r);
    void apply_one(const study::YieldAsked& r);
    void apply_one(const study::Exploited& r);
    void apply_one(const study::ExploitUndone& r);
    void apply_one(const study::TicketOpened& r);
    void apply_one(const study::TicketPrepared& r);
    void apply_one(const study::Steered& r);
    void apply_one(const study::WarmStarted& r);
    void observe(const study::Record& record);
    void observe_repeats(TrialId id);
    Trial& trial(TrialId id) { return state_.trials.at(id); }
    void set_phase(TrialId id, TrialPhase phase);
    void set_decision_point(TrialId id, Iteration from);
    void end_attempt(TrialId id);
    void note_pace(double before, double after);
    void receive(TrialId id, StudyTime at, Iteration iteration, double seconds, double before);
    void take_value(TrialId id, Iteration iteration, const schedulers::ObjectiveReader::Reading& reading);
    void take_nearest(const study::Reported& r, const schedulers::ObjectiveReader::Reading& reading);
    void take_mean(TrialId id);
    [[nodiscard]] study::Ranked ranked(TrialId id) const;
    [[nodiscard]] std::optional<TrialId> best_of_all() const;
    void lose_determinism();
    void steer_spec(const std::string& resolved);

    // ---- step.cpp: the round.
    void take_in(const study::Event& event, Round& round, Output& out);
    void run(Round& round, Output& out);
    void commit(const study::Record& record, Round& round, Output& out);
    [[nodiscard]] bool is_current(TrialId id, AttemptId attempt, Incarnation incarnation) const;

    // ---- take.cpp: events into their own records.
    Next take(const study::Began& event, Round& round) const;
    Next take(const study::ReportArrived& event, Round& round) const;
    Next take(const study::CheckpointSaved& event, Round& round) const;
    Next take(const study::AttemptOver& event, Round& round) const;
    Next take(const study::RankGone& event, Round& round) const;
    Next take(const study::TimerFired& event, Round& round) const;
    Next take(const study::StopRequested& event, Round& round) const;
    Next take(const study::DeadlineKnown& event, Round& round) const;
    [[nodiscard]] Told told(TrialId id) const;
    Next take(const study::Prepared& event, Round& round) const;
    Next take(const study::SteerAsked& event, Round& round) const;
    [[nodiscard]] study::AttemptEnded end_of(TrialId id, AttemptOutcome outcome, const Failure& failure,
                                             StudyTime now) const;
    [[nodiscard]] study::JobDied death_of_job(const study::JobDeath& death, StudyTime now) const;
    [[nodiscard]] bool may_retry(TrialId id, const std::string& message) const;
    [[nodiscard]] study::DrainBegan for_want_of_time(StudyTime now) const;

    // ---- steer.cpp: requests of users.
    [[nodiscard]] std::string objection_to_trial(const study::Steering& ask) const;
    [[nodiscard]] std::string objection_to_settings(const study::Steering& ask) const;
    [[nodiscard]] study::StudySpec steered_spec(const study::Steering& ask) const;

    // ---- judge.cpp: what an admitted fact means.
    [[nodiscard]] study::Reported judged(ReportFact&& fact, Round& round) const;
    [[nodiscard]] std::optional<study::Exploited> takeover(TrialId id, Iteration iteration,
                                                           const schedulers::Exploit& wanted, StudyTime now) const;
    [[nodiscard]] study::TrialClosed judged(const EndFact& fact, StudyTime now) const;
    [[nodiscard]] Next judged(Fact& fact, Round& round) const;
    [[nodiscard]] Verdict verdict_on(const ReportFact& fact, Round& round) const;
    [[nodiscard]] Iteration next_decision_point(TrialId id, Iteration current) const;
    [[nodiscard]] std::vector<std::string> metric_names(const study::Reported& report) const;

    // ---- tasks.cpp: the other tasks.
    Next decide(EndAttempt& task, Round& round) const;
    Next decide(Retain& task, Round& round) const;
    Next decide(Release& task, Round& round) const;
    Next decide(Evict& task, Round& round) const;
    Next decide(Close& task, Round& round) const;
    Next decide(Drain& task, Round& round) const;
    Next decide(CountFailure& task, Round& round) const;
    Next decide(Reopen& task, Round& round) const;
    Next decide(TakeOver& task, Round& round) const;
    Next decide(UndoExploit& task, Round& round) const;
    Next decide(FindDonor& task, Round& round) const;
    Next decide(JudgePlace& task, Round& round) const;
    Next decide(JudgeSetUp& task, Round& round) const;
    Next decide(Convict& task, Round& round) const;
    Next decide(End& task, Round& round) const;
    [[nodiscard]] study::StudyEnded verdict_on_study(StudyTime now) const;
    [[nodiscard]] std::size_t longest_row() const;

    // ---- fill.cpp: new work, and who gets free ranks.
    Next decide(Fill& task, Round& round) const;
    [[nodiscard]] Next next_work(Round& round) const;
    [[nodiscard]] std::optional<TrialId> to_repeat() const;
    [[nodiscard]] std::size_t configurations() const;
    [[nodiscard]] bool has_starting_point() const;
    [[nodiscard]] space::Configuration completed(const space::Configuration& given) const;
    [[nodiscard]] Next new_trial(const schedulers::Create& create, StudyTime now) const;
    [[nodiscard]] Next open_ticket(StudyTime now) const;
    [[nodiscard]] std::size_t tickets_wanted() const;
    [[nodiscard]] schedulers::Pool pool() const;
    [[nodiscard]] bool waits_for_ticket() const;
    [[nodiscard]] Next place(StudyTime now) const;
    [[nodiscard]] Next place_suspect(StudyTime now) const;
    [[nodiscard]] Next place_in_line(StudyTime now) const;
    [[nodiscard]] Next started(TrialId id, StudyTime now) const;
    [[nodiscard]] std::optional<study::Exploited> replaced(TrialId id, StudyTime now) const;
    [[nodiscard]] bool too_many_wait() const;
    [[nodiscard]] std::span<const study::WorkerKind> kinds_of_workers() const;
    [[nodiscard]] bool fits(const Trial& t) const;
    [[nodiscard]] bool is_possible(const Trial& t) const;
    /// Whether other workers are enough for every trial that may come. `beside`: how many there are of a kind.
    [[nodiscard]] bool are_enough(const std::function<std::uint32_t(study::WorkerKind)>& beside) const;
    /// After a change of its configuration.
    void choose_workers(Trial& t) const;
    [[nodiscard]] std::vector<Rank> ranks_for(const Trial& t, const study::StartFrom& from) const;
    [[nodiscard]] bool suspects_come_first() const;
    [[nodiscard]] bool is_training(TrialId id) const;
    [[nodiscard]] bool waits_for_ranks(TrialId id) const;
    [[nodiscard]] bool ranks_are_left_over(StudyTime now) const;
    [[nodiscard]] bool room_for_one_more() const;
    [[nodiscard]] bool can_create() const;
    [[nodiscard]] bool in_time(TrialId id, StudyTime now) const;
    [[nodiscard]] bool waits_for_time(StudyTime now) const;
    [[nodiscard]] Iteration trained_up_to(const Trial* trial) const;
    [[nodiscard]] double slowest_running() const;
    [[nodiscard]] Iteration stretch_of(TrialId id) const;

    // ---- follow.cpp: the tasks that follow from a record.
    void add_tasks(const study::Record& record, Round& round) const;
    void follow(const study::Reported& r, Round& round) const;
    void follow(const study::ReportHeld& r, Round& round) const;
    void follow(const study::CheckpointCommitted& r, Round& round) const;
    void follow(const study::CheckpointReleased& r, Round& round) const;
    void follow(const study::AttemptEnded& r, Round& round) const;
    void follow(const study::TrialClosed& r, Round& round) const;
    void follow(const study::DrainBegan& r, Round& round) const;
    void follow(const study::HostRetired& r, Round& round) const;
    void follow(const study::TrialReopened& r, Round& round) const;
    void follow(const study::RankLost& r, Round& round) const;
    void follow(const study::JobDied& r, Round& round) const;
    void follow(const study::IncarnationBegan& r, Round& round) const;
    void follow(const study::ExploitUndone& r, Round& round) const;
    void follow(const study::TicketPrepared& r, Round& round) const;
    void follow(const study::Steered& r, Round& round) const;
    void reopen_row(Round& round) const;
    [[nodiscard]] std::string reason_to_end(const study::AttemptEnded& record) const;

    // ---- commands.cpp: what groups are owed, by the state.
    /// What was sent to the group of an attempt. Not part of the state: the same function of the state yields what is
    /// owed, live and in pending_commands().
    struct Sent {
        bool start = false;
        Iteration decided = 0;     ///< newest report whose verdict it got
        Reason end = Reason::none; ///< why it was told to end
        std::size_t left = 0;      ///< of its ranks, when they were told to give up
    };
    struct SentTo {
        TrialId trial;
        AttemptId attempt; ///< zero: nobody
        Sent sent;
    };
    void send(const study::Record& record, Output& out);
    void tell(TrialId id, Output& out);
    void tell(TrialId id, Sent& sent, std::vector<study::Command>& commands) const;
    void tell_all(const std::function<void(TrialId)>& tell) const;
    [[nodiscard]] std::vector<Rank> holders_of(const study::StartFrom& from) const;
    [[nodiscard]] study::StartTrial start_command(TrialId id) const;
    [[nodiscard]] std::optional<double> to_beat(TrialId id) const;
    [[nodiscard]] bool may_come_to_lead(TrialId id) const;
    [[nodiscard]] Verdict as_told(TrialId id, const Verdict& verdict) const;
    [[nodiscard]] Verdict interruption(TrialId id) const;

    study::StudySpec spec_;
    std::unique_ptr<searchers::Searcher> searcher_;
    std::unique_ptr<schedulers::Scheduler> scheduler_;
    State state_;
    std::unique_ptr<Admission> admission_;
    bool learns_;              ///< the searcher reads the table of observations
    bool exploits_;            ///< the scheduler has trials take over the state of others
    std::vector<Task> spare_;  ///< empty: memory of the round before
    std::vector<SentTo> sent_; ///< by the rank of the leader
    /// The ranks that wrote a trial's newest checkpoint in this incarnation; only where trials take over states.
    std::unordered_map<TrialId, std::vector<Rank>> holders_;
    // Derived.
    std::unordered_map<std::string, MetricId> metric_ids_; ///< of state_.metrics
    schedulers::ObjectiveReader objective_; ///< knows the numbers of the study's metric and those of constraints
    double slowest_ = 0.0; ///< seconds of the slowest iteration among the trials that run; 0 without a deadline
};

} // namespace ranktune::tuner
