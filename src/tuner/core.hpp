// SPDX-License-Identifier: Apache-2.0
#pragma once
// The inside of Tuner: state, what is derived from it, and the functions that decide and apply. Included by this room
// only.

#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include "tuner/ledger.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::tuner {

inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Unplaced trials in view of which no further one is created: size is never a reason to draw again, but neither to
/// hoard.
inline constexpr std::size_t max_unplaced = 8;
/// A trial overtaken this often reserves the ranks that fall free.
inline constexpr std::uint32_t max_overtaken = 8;
/// Trials that fail before any trial has reported, after which the study stops.
inline constexpr std::uint64_t max_early_failures = 8;

/// Deaths of the job at which a trial ran before it is suspected.
inline constexpr std::uint32_t deaths_to_suspect = 2;
/// Deaths of the job while a suspect was tried alone, after which it is failed.
inline constexpr std::uint32_t deaths_to_convict = 2;
/// Different trials that fail in a row on a host before it is taken out of service.
inline constexpr std::size_t failures_to_retire = 3;
/// Different things that failures say, which are remembered in an incarnation.
inline constexpr std::size_t max_failure_words = 256;

/// The final phase of a trial that was stopped for this reason.
[[nodiscard]] TrialPhase phase_after(Reason reason);
/// The study ends for a cause that lies outside of its trials: their failures do not count meanwhile.
[[nodiscard]] bool blames_surroundings(Reason reason);
/// Why a study ends for which a checkpoint is not to be had now, and what to do.
[[nodiscard]] std::string kept_checkpoint_message(const std::string& message);
/// The same for a trainable that gives no checkpoints.
[[nodiscard]] std::string stateless_message(TrialId id, const std::string& message);

/// Whether such an end counts among the failures of the host, if the trial ran on one alone.
[[nodiscard]] inline bool speaks_against_host(AttemptOutcome outcome) {
    return outcome == AttemptOutcome::failed || outcome == AttemptOutcome::disturbed ||
           outcome == AttemptOutcome::unreachable || outcome == AttemptOutcome::unstarted;
}

/// Throws base::FormatError: a record that cannot follow those before it.
[[noreturn]] void impossible(const std::string& what);
[[noreturn]] void never_created(TrialId id);

/// What a trial said when it failed, without the place ("rank 3 on nid0041: ...").
[[nodiscard]] std::string_view without_place(std::string_view message);
/// Of these words.
[[nodiscard]] std::uint64_t digest_of_failure(const std::string& message);
/// The same without numbers: "loss is NaN at iteration 7" says what "loss is NaN at iteration 9" says.
[[nodiscard]] std::uint64_t digest_of_words(const std::string& message);

struct Tuner::Impl {
    explicit Impl(study::StudySpec spec);

    study::StudySpec spec;
    std::unique_ptr<searchers::Searcher> searcher;
    std::unique_ptr<schedulers::Scheduler> scheduler;
    State state;

    // Derived from the state, kept up by apply().
    Ledger ledger;
    std::set<TrialId> waiting;
    std::set<TrialId> suspects; ///< ran at too many deaths of the job, and are not over
    /// With checkpoint.max_bytes: paused trials that have checkpoints, those first whose checkpoints go first.
    struct Evictable {
        Iteration iteration = 0; ///< what is cheap to train again goes first
        double score = 0.0;      ///< then the worst
        TrialId trial;
        friend bool operator<(const Evictable& a, const Evictable& b) {
            if (a.iteration != b.iteration) return a.iteration < b.iteration;
            return a.score != b.score ? a.score < b.score : b.trial < a.trial;
        }
    };
    std::set<Evictable> evictable;
    std::optional<MetricId> objective;
    // Deterministic only.
    std::set<TrialId> unslotted; ///< wait for a slot: failed trials that were given another chance
    std::set<TrialId> leaving;   ///< hold ranks that will be back without further notice: winding, or told to yield
    std::uint32_t returning = 0; ///< ranks of `leaving`

    // Of the timer that was asked for last: what the slowest iteration was thought to take then.
    double slowest_known = 0.0;

    // ---- apply.cpp: the only mutators. `apply(record)` dispatches, then tells scheduler and searcher.
    void apply(const study::Record& record);
    void apply_one(const study::StudyCreated&);
    void apply_one(const study::IncarnationBegan&);
    void apply_one(const study::MetricDefined&);
    void apply_one(const study::TrialCreated&);
    void apply_one(const study::TrialStarted&);
    void apply_one(const study::Reported&);
    void apply_one(const study::CheckpointCommitted&);
    void apply_one(const study::CheckpointReleased&);
    void apply_one(const study::AttemptEnded&);
    void apply_one(const study::TrialPromoted&);
    void apply_one(const study::TrialClosed&);
    void apply_one(const study::RankLost&);
    void apply_one(const study::DrainBegan&);
    void apply_one(const study::StudyEnded&);
    void apply_one(const study::Snapshot&);
    void apply_one(const study::StudyChanged&);
    void apply_one(const study::TrialReopened&);
    void apply_one(const study::DeadlineSet&);
    void apply_one(const study::ReportHeld&);
    void apply_one(const study::JobDied&);
    void apply_one(const study::HostRetired&);
    TrialState& trial(TrialId id) {
        if (id.value() >= state.trials.size()) never_created(id);
        return state.trials[id.value()];
    }
    void set_phase(TrialId id, TrialPhase phase);
    void free_ranks(TrialId id);
    void after_lost_attempt(TrialId id);
    void rebuild_derived();
    void note_progress(TrialId id, Iteration iteration);

    // ---- turns.cpp: the part of apply() that concerns logical time.
    void apply_turn(const study::Record& record);
    void apply_turn_of(const study::Reported& record);
    void set_decision_point(TrialId id);
    void end_attempt_of_turn(const study::AttemptEnded& record);
    void forget_failure(TrialId id);
    void enter_slot(TrialId id);
    void leave_slot(TrialId id);
    void wind(TrialId id);
    void set_leaving(TrialId id, bool leaves);
    void refresh_turn(TrialId id);
    [[nodiscard]] bool needs_ranks(TrialId id) const;
    [[nodiscard]] bool is_parked(TrialId id) const;
    void mark_nondeterministic();
    void clear_of_suspicion(TrialId id);
    void note_on_hosts(TrialId id, AttemptOutcome outcome, const std::string& message);
    void note_failure(std::uint32_t host, TrialId id, AttemptOutcome outcome, const std::string& message);
    [[nodiscard]] bool serves(const WorkerState& worker) const; ///< may get a trial when it is free

    // ---- breaker.cpp: trials that fail one after the other before they report.
    void begin_silence(TrialId id);
    void end_silence(TrialId id);
    void forgive_failures_in_a_row(StudyTime now, Output& out);
    [[nodiscard]] std::string row_message() const;

    // ---- pace.cpp: how long things take, and what there is still time for.
    void learn_from_report(TrialState& trial, StudyTime at, Iteration iteration, double seconds, double before);
    void learn_from_checkpoint(TrialState& trial, StudyTime at, Iteration iteration);
    void learn_from_pause(TrialState& trial);
    [[nodiscard]] Iteration whole(const TrialState* trial) const;
    [[nodiscard]] Iteration stretch_of(const TrialState& trial) const;
    void learn_from_loss(TrialState& trial, StudyTime at);
    [[nodiscard]] bool in_time(const TrialState& trial, StudyTime now) const;
    [[nodiscard]] bool in_time_for_another(StudyTime now) const;
    [[nodiscard]] double slowest_running() const;
    [[nodiscard]] StudyTime drain_at(double slowest) const;
    [[nodiscard]] std::optional<StudyTime> next_timer(double slowest) const;
    void set_timer(Output& out);
    [[nodiscard]] bool waits_for_time(StudyTime now) const;
    void end_for_want_of_time(StudyTime now, Output& out);

    // ---- step.cpp: events into records and commands.
    void step(const study::Event& event, Output& out);
    void on(const study::Began&, StudyTime now, Output& out);
    void on(const study::ReportArrived&, StudyTime now, Output& out);
    void on(const study::CheckpointSaved&, StudyTime now, Output& out);
    void on(const study::AttemptOver&, StudyTime now, Output& out);
    void on(const study::RankGone&, StudyTime now, Output& out);
    void on(const study::TimerFired&, StudyTime now, Output& out);
    void on(const study::StopRequested&, StudyTime now, Output& out);
    void on(const study::DeadlineKnown&, StudyTime now, Output& out);
    void commit(study::Record record, Output& out);
    void reopen(TrialId id, bool from_scratch, StudyTime now, Output& out);
    [[nodiscard]] Iteration last_report(TrialId id) const;
    [[nodiscard]] bool may_retry(TrialId id, const std::string& message) const;
    [[nodiscard]] bool is_current(TrialId id, Attempt attempt, Incarnation incarnation) const;
    void attempt_ended(TrialId id, AttemptOutcome outcome, const std::string& message, StudyTime now, Output& out);
    void attempt_lost(TrialId id, StudyTime now, Output& out);
    std::vector<TrialId> job_died(const study::JobDeath& death, StudyTime now, Output& out);
    void retire_bad_host(TrialId id, StudyTime now, Output& out);
    void judge_set_up(TrialId id, const std::string& message, StudyTime now, Output& out);
    [[nodiscard]] std::uint32_t ranks_beside(std::uint32_t host) const;
    [[nodiscard]] std::optional<std::uint32_t> only_host_of(TrialId id) const;
    void close(TrialId id, TrialPhase phase, const Verdict& why, const std::string& message, StudyTime now,
               Output& out);
    [[nodiscard]] Verdict as_told(TrialId id, const Verdict& verdict) const;
    void drain(Reason reason, const std::string& why, StudyTime now, Output& out);

    // ---- decide.cpp: pure.
    [[nodiscard]] Verdict decide(TrialId id, const study::ReportArrived& report, std::optional<double> value) const;
    [[nodiscard]] Iteration next_decision_point(TrialId id, Iteration current) const;
    [[nodiscard]] std::optional<double> objective_of(const study::ReportArrived& report) const;
    [[nodiscard]] std::string missing_metric_message(const study::ReportArrived& report) const;

    // ---- fill.cpp: who gets free ranks, and when the study is over.
    void fill(StudyTime now, Output& out);
    bool place_waiting(StudyTime now, Output& out);
    bool place_suspect(StudyTime now, Output& out);
    [[nodiscard]] bool suspects_come_first() const;
    [[nodiscard]] bool is_training(TrialId id) const;
    [[nodiscard]] bool waits_for_ranks(TrialId id) const;
    bool promote_or_create(StudyTime now, Output& out);
    bool next_work(bool active, StudyTime now, Output& out);
    void start(TrialId id, std::vector<Rank> ranks, StudyTime now, Output& out);
    [[nodiscard]] bool can_create() const;
    [[nodiscard]] study::StartTrial start_command(TrialId id) const;
    [[nodiscard]] bool room_for_one_more() const;
    void end_if_over(StudyTime now, Output& out);
    void close_what_is_left(StudyTime now, Output& out);
    [[nodiscard]] StudyEnded verdict_on_study(StudyTime now) const;
    [[nodiscard]] bool someone_holds_ranks() const;

    // ---- admit.cpp: deterministic mode. Reports and ends take effect in the order of their keys.
    void take_report(const study::ReportArrived& event, StudyTime now, Output& out);
    void take_end(TrialId id, AttemptOutcome outcome, const std::string& message, StudyTime now, Output& out);
    void settle(StudyTime now, Output& out);
    bool admit_next(StudyTime now, Output& out);
    void admit_report(TrialId id, Attempt attempt, const study::ReportArrived& report,
                      std::vector<study::MetricValue> metrics, StudyTime now, Output& out);
    void admit_end(TrialId id, StudyTime now, Output& out);
    void let_go(TrialId id, Output& out);
    void place_by_turn(StudyTime now, Output& out);
    void ask_to_yield(UnitKey before, std::uint32_t wanted, Output& out);
    [[nodiscard]] std::vector<study::MetricValue> numbered(const std::vector<study::NamedMetric>& metrics, Output& out);

    // ---- retention.cpp: which checkpoints stay.
    [[nodiscard]] bool is_result(TrialId id) const { return state.best == id || state.keeper == id; }
    [[nodiscard]] std::vector<const CheckpointRef*> to_release(TrialId id) const;
    [[nodiscard]] Evictable as_evictable(TrialId id) const;
    [[nodiscard]] bool is_evictable(TrialId id) const;
    void list_evictable();
    void list_if_evictable(TrialId id);
    void retain(TrialId id, Output& out);
    void release_all(TrialId id, Output& out);
    void evict(Output& out);

    // ---- the rest, a file each.
    [[nodiscard]] std::vector<study::Command> pending_commands() const;
    void check_invariants() const;
    void check_turns() const;
    void check_evictable() const;
    void snapshot(study::Encoder& out) const;
    void restore(study::Decoder& in);
};

} // namespace ranktune::tuner
