// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records: decisions of the core, written to the journal and applied to the state, live and in replay.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ranktune/space/configuration.hpp"
#include "ranktune/study/side_task.hpp"
#include "ranktune/study/steering.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::study {

/// First record of a study.
struct StudyCreated {
    std::string uuid;
    std::string spec;            ///< the resolved study file (TOML): replay parses it again
    std::uint64_t digest = 0;    ///< XXH64 of `spec`
    std::string version;         ///< of the program that created it
    std::string simulation = {}; ///< what was simulated, in words; empty: a real study
    static void fields(auto&& each, auto& r) { each(r.uuid, r.spec, fixed(r.digest), r.version, r.simulation); }
    friend bool operator==(const StudyCreated&, const StudyCreated&) = default;
};

/// A head took over: every rank is free, every attempt of an earlier incarnation is over, its trial waits again.
struct IncarnationBegan {
    Incarnation incarnation;
    StudyTime at;
    std::string wall_time;
    std::vector<RankInfo> workers;
    static void fields(auto&& each, auto& r) { each(r.incarnation, r.at, r.wall_time, r.workers); }
    friend bool operator==(const IncarnationBegan&, const IncarnationBegan&) = default;
};

/// A metric name that is reported for the first time gets the next number.
struct MetricDefined {
    MetricId id;
    std::string name;
    static void fields(auto&& each, auto& r) { each(r.id, r.name); }
    friend bool operator==(const MetricDefined&, const MetricDefined&) = default;
};

struct TrialCreated {
    TrialId trial;
    StudyTime at;
    std::uint32_t ranks = 1; ///< wanted
    std::uint32_t bracket = 0;
    Iteration target = 0; ///< where its training stops first; 0: as for all trials of the bracket
    Origin origin;
    space::Configuration configuration;
    static void fields(auto&& each, auto& r) {
        each(r.trial, r.at, r.ranks, r.bracket, r.target, r.origin, r.configuration);
    }
    friend bool operator==(const TrialCreated&, const TrialCreated&) = default;
};

/// A trial got ranks; the lowest is the group's leader.
struct TrialStarted {
    TrialId trial;
    AttemptId attempt;
    StudyTime at;
    std::vector<Rank> ranks; ///< ascending
    StartFrom from;
    std::uint32_t gpu_share = 0;  ///< of a GPU for each rank, in thousandths; 0: unspecified
    std::vector<Role> roles = {}; ///< how `ranks` divide, in their order; empty: all do the same
    static void fields(auto&& each, auto& r) { each(r.trial, r.attempt, r.at, r.ranks, r.from, r.gpu_share, r.roles); }
    friend bool operator==(const TrialStarted&, const TrialStarted&) = default;
};

/// A report and the verdict on it: one record, so that no crash can separate them.
struct Reported {
    TrialId trial;
    AttemptId attempt;
    StudyTime at;
    Iteration iteration = 0;
    double seconds = 0.0;
    std::vector<MetricValue> metrics;
    Verdict verdict;
    static void fields(auto&& each, auto& r) {
        each(r.trial, r.attempt, r.at, r.iteration, r.seconds, r.verdict, r.metrics);
    }
    friend bool operator==(const Reported&, const Reported&) = default;
};

/// A checkpoint is valid only with this record.
struct CheckpointCommitted {
    TrialId trial;
    AttemptId attempt;
    StudyTime at;
    CheckpointRef checkpoint;
    static void fields(auto&& each, auto& r) { each(r.trial, r.attempt, r.at, r.checkpoint); }
    friend bool operator==(const CheckpointCommitted&, const CheckpointCommitted&) = default;
};

/// The file may be unlinked once this record is synced.
struct CheckpointReleased {
    TrialId trial;
    std::string path;
    bool stays = false;       ///< the file is damaged and kept for diagnosis
    std::uint32_t shards = 0; ///< 0: one file
    static void fields(auto&& each, auto& r) { each(r.trial, r.path, r.stays, r.shards); }
    friend bool operator==(const CheckpointReleased&, const CheckpointReleased&) = default;
};

/// An attempt is over and its living ranks are free. A trial that ran waits again (retry), or is closed by a record
/// that follows, in a deterministic study when its turn comes. What a trial was judged has taken effect before, with
/// Reported and TrialClosed; one that was told to stop and whose ranks fail now has failed.
struct AttemptEnded {
    TrialId trial;
    AttemptId attempt;
    StudyTime at;
    AttemptOutcome outcome = AttemptOutcome::finished;
    bool retry = false; ///< the trial waits for another attempt
    Failure failure;    ///< empty unless it failed
    static void fields(auto&& each, auto& r) { each(r.trial, r.attempt, r.at, r.outcome, r.retry, r.failure); }
    friend bool operator==(const AttemptEnded&, const AttemptEnded&) = default;
};

/// A paused trial is to go on to `target`. It waits for ranks, through retries, until it gets there.
struct TrialPromoted {
    TrialId trial;
    StudyTime at;
    Iteration from = 0;
    Iteration target = 0;
    Reason reason = Reason::promoted; ///< promoted or finish_top
    static void fields(auto&& each, auto& r) { each(r.trial, r.at, r.from, r.target, r.reason); }
    friend bool operator==(const TrialPromoted&, const TrialPromoted&) = default;
};

/// A trial reached a final phase.
struct TrialClosed {
    TrialId trial;
    StudyTime at;
    TrialPhase phase = TrialPhase::finished;
    Reason reason = Reason::none;
    double a = 0.0;
    double b = 0.0;
    Failure failure; ///< empty unless it failed
    static void fields(auto&& each, auto& r) { each(r.trial, r.at, r.phase, r.reason, r.a, r.b, r.failure); }
    friend bool operator==(const TrialClosed&, const TrialClosed&) = default;
};

/// `guilty`: user code hung there, so the attempt counts as failed.
struct RankLost {
    Rank rank;
    StudyTime at;
    std::string why;
    bool guilty = false;
    static void fields(auto&& each, auto& r) { each(r.rank, r.at, r.why, r.guilty); }
    friend bool operator==(const RankLost&, const RankLost&) = default;
};

/// From here on no trial is started or promoted; running trials checkpoint and pause at their next report. A second
/// record in the same incarnation means that a person also asked for the stop.
struct DrainBegan {
    StudyTime at;
    Reason reason = Reason::draining; ///< draining, study_time, early_failures, missing_metric, unsaved, deadline ...
    std::string why;
    Asker by = Asker::none;
    static void fields(auto&& each, auto& r) { each(r.at, r.reason, r.why, r.by); }
    friend bool operator==(const DrainBegan&, const DrainBegan&) = default;
};

/// Nothing runs any more. Last record of an incarnation (of the study, unless the outcome is resumable).
struct StudyEnded {
    StudyTime at;
    StudyOutcome outcome = StudyOutcome::ok;
    Reason reason = Reason::study_complete;
    std::string message;
    static void fields(auto&& each, auto& r) { each(r.at, r.outcome, r.reason, r.message); }
    friend bool operator==(const StudyEnded&, const StudyEnded&) = default;
};

/// The whole state of the core, so that a resume need not start at record 0.
struct Snapshot {
    std::uint64_t digest = 0; ///< Tuner::digest() of that state
    std::string state;        ///< Tuner::snapshot()
    std::string spec;         ///< the resolved study file at that time: no earlier record is needed
    static void fields(auto&& each, auto& r) { each(fixed(r.digest), r.state, r.spec); }
    friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

/// A later start came with another study file. Only keys that may change (study/change.hpp) take effect.
struct StudyChanged {
    StudyTime at;
    std::string spec;         ///< the resolved study file from here on
    std::uint64_t digest = 0; ///< XXH64 of `spec`
    std::string version;      ///< of the program that changed it
    static void fields(auto&& each, auto& r) { each(r.at, r.spec, fixed(r.digest), r.version); }
    friend bool operator==(const StudyChanged&, const StudyChanged&) = default;
};

/// A failed trial is tried again: it waits as if it had never failed. Or a finished one, from scratch, of which what it
/// wrote outside the study directory is lost.
struct TrialReopened {
    TrialId trial;
    StudyTime at;
    bool from_scratch = false; ///< its checkpoints are released by the records that follow
    static void fields(auto&& each, auto& r) { each(r.trial, r.at, r.from_scratch); }
    friend bool operator==(const TrialReopened&, const TrialReopened&) = default;
};

/// When the job ends; nullopt: no longer known. Written when it changes by more than Slurm's rounding. Decides whether
/// trials can still start, and when the study drains.
struct DeadlineSet {
    StudyTime at;
    std::optional<StudyTime> deadline;
    static void fields(auto&& each, auto& r) { each(r.at, r.deadline); }
    friend bool operator==(const DeadlineSet&, const DeadlineSet&) = default;
};

/// A report whose turn has not come (deterministic mode), or that is judged together with those of other trials (a
/// synchronous scheduler). It is kept until the record Reported admits it.
struct ReportHeld {
    TrialId trial;
    AttemptId attempt;
    StudyTime at;
    Iteration iteration = 0;
    double seconds = 0.0;
    std::vector<MetricValue> metrics;
    static void fields(auto&& each, auto& r) { each(r.trial, r.attempt, r.at, r.iteration, r.seconds, r.metrics); }
    friend bool operator==(const ReportHeld&, const ReportHeld&) = default;
};

/// The job of the previous incarnation died with trials running, without an outside cause. With notes, each of their
/// trials has failed once and no other is suspected. Without notes, the death counts against every trial that ran, or
/// only against the suspect, if one was being tried. Comes right before IncarnationBegan.
struct JobDied {
    StudyTime at;
    struct Note {
        CrashNote note;
        bool retry = false; ///< the trial waits for another attempt; otherwise it is closed
        static void fields(auto&& each, auto& r) { each(r.note, r.retry); }
        friend bool operator==(const Note&, const Note&) = default;
    };
    std::vector<Note> notes;
    static void fields(auto&& each, auto& r) { each(r.at, r.notes); }
    friend bool operator==(const JobDied&, const JobDied&) = default;
};

/// Different trials failed one after the other on a host, or on a GPU of it: the host, or that GPU, gets no more trials
/// in this incarnation, and the failures there are forgiven.
struct HostRetired {
    std::string host;
    StudyTime at;
    std::vector<TrialId> trials; ///< that failed there
    std::string device = {};     ///< RankInfo::device; empty: the whole host
    static void fields(auto&& each, auto& r) { each(r.host, r.at, r.trials, r.device); }
    friend bool operator==(const HostRetired&, const HostRetired&) = default;
};

/// The group of a trial whose report is held was asked to save its state and to give its ranks to another trial: one
/// whose turn comes earlier (deterministic mode), or that is still on its way (a synchronous scheduler).
struct YieldAsked {
    TrialId trial;
    StudyTime at;
    static void fields(auto&& each, auto& r) { each(r.trial, r.at); }
    friend bool operator==(const YieldAsked&, const YieldAsked&) = default;
};

/// Follows the verdict `exploit`, or TrialPromoted: the trial takes over the state of `donor` (of another trial, or one
/// of its own) and has this configuration from now on. It keeps counting its own iterations from `iteration`.
struct Exploited {
    TrialId trial;
    StudyTime at;
    Iteration iteration = 0; ///< of the trial, as of its verdict or promotion
    Donor donor;
    std::uint32_t generation = 1; ///< of the trial from now on
    space::Configuration configuration;
    static void fields(auto&& each, auto& r) {
        each(r.trial, r.at, r.iteration, r.donor, r.generation, r.configuration);
    }
    friend bool operator==(const Exploited&, const Exploited&) = default;
};

/// Neither the trial nor its donor has a state of this generation (any more): the trial gets its earlier state and
/// configuration back.
struct ExploitUndone {
    TrialId trial;
    StudyTime at;
    std::uint32_t generation = 0; ///< of the trial from now on
    StateLoss why = StateLoss::unreadable;
    static void fields(auto&& each, auto& r) { each(r.trial, r.at, r.generation, r.why); }
    friend bool operator==(const ExploitUndone&, const ExploitUndone&) = default;
};

/// A searcher was asked to prepare a suggestion from the first `seen` lines of the table of observations.
struct TicketOpened {
    std::uint64_t ticket = 0; ///< 0, 1, 2, ...
    StudyTime at;
    std::uint64_t seen = 0;
    static void fields(auto&& each, auto& r) { each(r.ticket, r.at, r.seen); }
    friend bool operator==(const TicketOpened&, const TicketOpened&) = default;
};

/// The suggestion is prepared, or failed. The trial that takes it names it in its origin.
struct TicketPrepared {
    std::uint64_t ticket = 0;
    StudyTime at;
    std::optional<space::Configuration> configuration; ///< nullopt: it failed
    std::string why;                                   ///< why it failed
    SuggestionBasis basis = {};                        ///< of a configuration
    static void fields(auto&& each, auto& r) { each(r.ticket, r.at, r.configuration, r.why, r.basis); }
    friend bool operator==(const TicketPrepared&, const TicketPrepared&) = default;
};

/// A user steered the study; what was asked takes effect with this record.
struct Steered {
    StudyTime at;
    std::string who;  ///< "ada@login1"
    std::string what; ///< in words
    Steering ask;
    std::string spec; ///< add, set: the resolved study file from here on
    static void fields(auto&& each, auto& r) { each(r.at, r.who, r.what, r.ask, r.spec); }
    friend bool operator==(const Steered&, const Steered&) = default;
};

/// A configuration of an earlier study, and what was reported for it.
struct EarlierTrial {
    space::Configuration configuration;
    struct Result {
        Iteration iteration = 0;
        double value = 0.0; ///< of this study's metric; may be NaN or infinite
        static void fields(auto&& each, auto& r) { each(r.iteration, r.value); }
        friend bool operator==(const Result&, const Result&) = default;
    };
    std::vector<Result> results; ///< ascending in the iteration
    bool failed = false;         ///< its training failed, after these results
    static void fields(auto&& each, auto& r) { each(r.configuration, r.results, r.failed); }
    friend bool operator==(const EarlierTrial&, const EarlierTrial&) = default;
};

/// Results of earlier studies ([searcher] warm_start), which searchers learn from. Comes right after StudyCreated, so
/// that neither a resume nor a replay reads the files again.
struct WarmStarted {
    struct Source {
        std::string path;
        std::uint64_t trials = 0;   ///< how many of `trials` come from it
        std::uint64_t left_out = 0; ///< trials of the file that the study cannot use
        std::string why;            ///< why they were left out, and what else was ignored, in words; empty: nothing
        static void fields(auto&& each, auto& r) { each(r.path, r.trials, r.left_out, r.why); }
        friend bool operator==(const Source&, const Source&) = default;
    };
    std::vector<Source> sources;
    std::vector<EarlierTrial> trials; ///< in the order of the sources
    static void fields(auto&& each, auto& r) { each(r.sources, r.trials); }
    friend bool operator==(const WarmStarted&, const WarmStarted&) = default;
};

/// A side task got a rank.
struct SideStarted {
    SideTask task;
    AttemptId attempt;
    StudyTime at;
    Rank rank;
    std::optional<CheckpointRef> checkpoint; ///< of its trial, which it reads; kept until the task is over
    static void fields(auto&& each, auto& r) { each(r.task, r.attempt, r.at, r.rank, r.checkpoint); }
    friend bool operator==(const SideStarted&, const SideStarted&) = default;
};

/// Metrics that a side task reported. They are no metrics of the study, so they have names instead of numbers.
struct SideReported {
    SideTask task;
    AttemptId attempt;
    StudyTime at;
    std::vector<NamedMetric> metrics;
    static void fields(auto&& each, auto& r) { each(r.task, r.attempt, r.at, r.metrics); }
    friend bool operator==(const SideReported&, const SideReported&) = default;
};

/// An attempt of a side task is over, or the task can have none (its trial saved no checkpoint: attempt zero).
struct SideEnded {
    SideTask task;
    AttemptId attempt;
    StudyTime at;
    AttemptOutcome outcome = AttemptOutcome::finished;
    bool retry = false; ///< the task waits for another attempt, also if it had failed; otherwise it is over
    Failure failure;    ///< empty unless it failed
    static void fields(auto&& each, auto& r) { each(r.task, r.attempt, r.at, r.outcome, r.retry, r.failure); }
    friend bool operator==(const SideEnded&, const SideEnded&) = default;
};

/// The position is the number on disk: append only.
using Record = std::variant<StudyCreated, IncarnationBegan, MetricDefined, TrialCreated, TrialStarted, Reported,
                            CheckpointCommitted, CheckpointReleased, AttemptEnded, TrialPromoted, TrialClosed, RankLost,
                            DrainBegan, StudyEnded, Snapshot, StudyChanged, TrialReopened, DeadlineSet, ReportHeld,
                            JobDied, HostRetired, YieldAsked, Exploited, ExploitUndone, TicketOpened, TicketPrepared,
                            Steered, WarmStarted, SideStarted, SideReported, SideEnded>;

/// Takes records in order. Storage implements it; the simulator and tests use their own.
class RecordSink {
  public:
    virtual ~RecordSink() = default;
    /// When this returns, the records are *written*: they survive the death of every process. Throws base::IoError.
    virtual void append(const std::vector<Record>& records) = 0;
};

} // namespace ranktune::study
