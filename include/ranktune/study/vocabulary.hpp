// SPDX-License-Identifier: Apache-2.0
#pragma once
// Words shared by events, records and commands: verdicts with their reasons, states, checkpoint references, placements.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ranktune/base/ids.hpp"
#include "ranktune/base/time.hpp"
#include "ranktune/study/fixed.hpp"

namespace ranktune::study {

using base::AttemptId;
using base::Duration;
using base::Incarnation;
using base::Iteration;
using base::MetricId;
using base::Rank;
using base::StudyTime;
using base::TrialId;

/// What a trial is told after a report. Defined by what happens to its ranks and its checkpoint: go_on: keeps both.
/// pause: saves a checkpoint, gives its ranks back, may be resumed. stop: saves a last checkpoint, gives its ranks
/// back, never resumed. discard: as stop or pause, without the checkpoint; only sent to groups, records say stop or
/// pause. exploit: replaces its state by that of a donor, and goes on with another configuration (record Exploited);
/// only in records, the group is told discard.
enum class Verb : std::uint8_t { go_on = 0, pause = 1, stop = 2, discard = 3, exploit = 4 };
inline constexpr Verb last_verb = Verb::exploit;
/// "go on"
[[nodiscard]] std::string_view name(Verb verb);

/// Reasons of verdicts and ends. Codes are written to the journal: append only, never renumber. Readers render the
/// words (`describe`).
enum class Reason : std::uint8_t {
    none = 0,
    below_rung = 1,       ///< between two decision points
    in_top = 2,           ///< goes on at a rung: among the best a of the rung's b entries, its own included
    rung = 3,             ///< paused at a rung; a = rung's iteration, b = entries of the rung
    not_in_top = 4,       ///< stopped at a rung; a = rung's iteration, b = entries of the rung
    below_median = 5,     ///< a = best so far, b = median
    max_iterations = 6,   ///< a = the ceiling
    metric_threshold = 7, ///< a = value, b = threshold
    plateau = 8,          ///< a = standard deviation, b = number of results
    trial_time = 9,       ///< a = seconds used, b = limit in seconds
    study_time = 10,      ///< a = limit in seconds
    draining = 11,        ///< the study was asked to stop (signal, walltime)
    not_promoted = 12,    ///< left paused when the study ended
    promoted = 13,        ///< a = from iteration, b = to iteration
    finish_top = 14,      ///< trained to the end after everything else; a = from iteration
    trainable_done = 15,  ///< the trainable ended by itself
    exception = 16,       ///< the trainable threw
    lost = 17,            ///< its ranks were lost
    early_failures = 18,  ///< the first trials all failed before a first report; a = how many
    study_complete = 19,
    no_ranks = 20,       ///< too few ranks are left for any trial
    missing_metric = 21, ///< the first report lacked the study's metric
    first_arrival = 22,  ///< nothing to compare with yet
    no_trial_succeeded = 23,
    parameters_differ = 24, ///< the ranks of a trial hold different parameters
    unsaved = 25,           ///< a checkpoint could not be written
    deadline = 26,          ///< the job ends before more could be done
    yielded = 27,           ///< gives its ranks to a trial whose turn comes earlier
    unread_parameter = 28,  ///< the first trial never looked at a parameter of the study file
    unreachable = 29,       ///< a checkpoint could not be read, but is not known to be damaged
    unstarted = 30,         ///< ranktune could not set up an attempt: an input or output error of its own
    failures_in_a_row = 31, ///< trials failed one after the other before their first report
    never_finite = 32,      ///< no report of the study had a finite value of its metric
    stateless = 33,         ///< a trial had to pause, and its trainable gives no checkpoints
    exploited = 34,         ///< a = donor, b = its iteration
    no_donor = 35,          ///< goes on: the donor to exploit has no such checkpoint; a = donor, b = iteration
    scheduler_limit = 36,   ///< a scheduler's own rule; a = the trial's value, b = the value compared with
    published = 37,         ///< goes on, and saves its state for others; a = its place among b members
    kept = 38,              ///< goes on with its state; a = its place among b members
    unpublished = 39,       ///< goes on: none of the better ones has saved its state; a = its place among b members
    turn = 40,              ///< gives its ranks to a trial that has trained less; a = iterations of that trial
    scheduled = 41,         ///< saves its state, to go on with other hyper-parameters; a = its iteration
    cancelled = 42,         ///< a user cancelled the trial
    on_hold = 43,           ///< users have paused all trials that are left; a = how many
    paused_by_user = 44,
    // Limits of [stop.study]:
    target_reached = 45,  ///< the best value is good enough
    no_better = 46,       ///< so many trials have ended since it last improved
    iterations_used = 47, ///< all trials together have trained enough
    enough_trials = 48,   ///< so many trials have ended well
    before_failed = 49,   ///< the command that prepares the study failed: no trial was created
    after_failed = 50     ///< all is done, but for the command after the last trial, which failed
};

/// Why a trial cannot go on with a state that it took over. unreadable: no file of it can be read. evicted: all were
/// deleted for want of room (checkpoint.max_bytes). anew: a user has the trial begin from scratch. Codes are written to
/// the journal: append only.
enum class StateLoss : std::uint8_t { unreadable = 0, evicted = 1, anew = 2 };
inline constexpr StateLoss last_state_loss = StateLoss::anew;

/// Who or what asks a study to stop. Codes are written to the journal: append only.
enum class Asker : std::uint8_t {
    none = 0,     ///< nobody outside the study, or unknown
    verb = 1,     ///< `ranktune stop`
    keyboard = 2, ///< Ctrl-C
    sigint = 3,
    sigterm = 4,
    sighup = 5,
    sigusr1 = 6,
    sigusr2 = 7
};
inline constexpr Asker last_asker = Asker::sigusr2;
/// "ranktune stop", "Ctrl-C", "SIGTERM"; empty for none.
[[nodiscard]] std::string_view name(Asker asker);
/// nullopt: no asker has this name.
[[nodiscard]] std::optional<Asker> asker_named(std::string_view name);
/// Whether the asker is a person, who expects that nothing starts the study again.
[[nodiscard]] constexpr bool is_person(Asker asker) { return asker == Asker::verb || asker == Asker::keyboard; }

/// A verdict with its reason; `a` and `b` are the numbers documented at the code (0 where unused).
struct Verdict {
    Verb verb = Verb::go_on;
    Reason reason = Reason::none;
    double a = 0.0;
    double b = 0.0;
    friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// One sentence for people, with the numbers filled in: "not among the best 3 of 9 at iteration 3".
[[nodiscard]] std::string describe(Reason reason, double a, double b);

/// The workers that a trial can use. Only studies with GpuUse::some tell them apart.
enum class WorkerKind : std::uint8_t { any, with_gpu, without_gpu };

/// waiting: has a configuration, wants ranks (new, promoted or retried). running: its ranks train. paused: until it is
/// promoted. The last three are final. (A trial that is told to pause or stop is paused or over at once, while its
/// ranks still save its state.)
enum class TrialPhase : std::uint8_t { waiting = 0, running = 1, paused = 2, finished = 3, stopped = 4, failed = 5 };
inline constexpr std::size_t phase_count = 6;
[[nodiscard]] constexpr bool is_final(TrialPhase phase) { return phase >= TrialPhase::finished; }
[[nodiscard]] std::string_view name(TrialPhase phase);

/// How an attempt ended, as its group reports it (or the driver: lost). unreadable: the checkpoint to start from is
/// damaged (it did not verify); nothing was trained. unreachable: that checkpoint could not be read, although it may be
/// intact (the file system, a newer format); nothing was trained. unsaved: told to pause or stop, it could not write
/// its checkpoint. disturbed: failed for a cause outside the trial (out of memory, a time-out, an input or output
/// error). unstarted: ranktune itself could not set it up (a folder, a file or a pipe of its own). stateless: told to
/// pause, but its trainable gave no checkpoint. oversized: it needs more memory than its GPU has. resized: its ranks
/// are to change; the trial goes on with others from what was saved. permanent: failed with an exit code that
/// failure.retry_on does not list. Codes are written to the journal: append only.
enum class AttemptOutcome : std::uint8_t {
    paused = 0,
    stopped = 1,
    finished = 2,
    failed = 3,
    lost = 4,
    unreadable = 5,
    unsaved = 6,
    disturbed = 7,
    unreachable = 8,
    unstarted = 9,
    stateless = 10,
    oversized = 11,
    resized = 12,
    permanent = 13
};
inline constexpr AttemptOutcome last_attempt_outcome = AttemptOutcome::permanent;
[[nodiscard]] std::string_view name(AttemptOutcome outcome);

/// A part of a trial's ranks that do the same work, with a name of its own.
struct Role {
    std::string name;
    std::uint32_t size = 0; ///< ranks
    static void fields(auto&& each, auto& r) { each(r.name, r.size); }
    friend bool operator==(const Role&, const Role&) = default;
};

/// A committed checkpoint. `path` is relative to the study directory.
struct CheckpointRef {
    Iteration iteration = 0;
    std::string path;
    std::uint64_t bytes = 0;  ///< of all its files
    std::uint64_t digest = 0; ///< of the parameters, equal on all ranks; with shards, of `shards`
    /// The objective at `iteration`; nullopt: the report lacked it, or it was not finite.
    std::optional<double> value = {};
    /// Digest of each shard's state; empty: one file, written by rank 0. Shard k lies in `path` with ".k" before its
    /// ending.
    std::vector<std::uint64_t> shards = {};
    std::uint32_t generation = 0; ///< of the trial: how often it had exploited another one
    static void fields(auto&& each, auto& r) {
        each(r.iteration, r.path, r.bytes, fixed(r.digest), r.value, fixed(r.shards), r.generation);
    }
    friend bool operator==(const CheckpointRef&, const CheckpointRef&) = default;
};

/// Where an attempt starts from.
struct Fresh {
    friend bool operator==(const Fresh&, const Fresh&) = default;
};
/// The state of another trial (population-based training).
struct Donor {
    TrialId trial;
    CheckpointRef checkpoint; ///< of that trial
    static void fields(auto&& each, auto& r) { each(r.trial, r.checkpoint); }
    friend bool operator==(const Donor&, const Donor&) = default;
};
using StartFrom = std::variant<Fresh, CheckpointRef, Donor>;
/// The checkpoint to load; null: none.
[[nodiscard]] inline const CheckpointRef* checkpoint_of(const StartFrom& from) {
    if (const auto* donor = std::get_if<Donor>(&from)) return &donor->checkpoint;
    return std::get_if<CheckpointRef>(&from);
}

/// Where the configuration of a trial comes from.
struct Origin {
    /// searcher: its suggestion `index`. ticket: prepared ahead, with this number. stopgap: suggestion `index` of a
    /// searcher that had failed to prepare one, `count` times in a row; 0: none was ready in time. start: point `index`
    /// to try first. user: a user asked for it. repeat: repetition `count` of trial `index`.
    enum class Kind : std::uint8_t { searcher = 0, ticket = 1, stopgap = 2, start = 3, user = 4, repeat = 5 };
    Kind kind = Kind::searcher;
    std::uint64_t index = 0;
    std::uint32_t count = 0;
    static void fields(auto&& each, auto& r) { each(r.kind, r.index, r.count); }
    friend bool operator==(const Origin&, const Origin&) = default;
};
inline constexpr Origin::Kind last_origin = Origin::Kind::repeat;
[[nodiscard]] std::string_view name(Origin::Kind kind);

/// One worker rank as the head sees it. A plain value, so that tests and the simulator can build any cluster.
struct RankInfo {
    Rank rank;
    std::string host;
    std::uint32_t gpus = 0;    ///< devices granted to this rank
    std::uint32_t domain = 0;  ///< of its host: NVLink domain, if there are several, otherwise NUMA domain; 0: unknown
    std::string switches = {}; ///< above its host, the outermost first: "s0.s2"; empty: not known. (An NVLink domain of
                               ///< several hosts is the innermost.)
    /// Its GPU: the UUID, or the name on the host where no driver tells one. Ranks with the same one share the GPU.
    /// Empty: no GPU.
    std::string device = {};
    static void fields(auto&& each, auto& r) { each(r.rank, r.host, r.gpus, r.domain, r.switches, r.device); }
    friend bool operator==(const RankInfo&, const RankInfo&) = default;
};

/// The message of a failed attempt, and the rank that it came from. Equal messages are the same failure, whichever rank
/// they came from.
struct Failure {
    std::string message; ///< without the rank: "loss is NaN"
    /// Rank within its trial; in a crash note, of the job. nullopt: from no rank.
    std::optional<std::uint32_t> rank = {};
    /// Of the program that ended, as a shell counts: 128 + N for signal N. nullopt: none has ended by itself.
    std::optional<std::uint32_t> exit_code = {};
    [[nodiscard]] bool empty() const { return message.empty() && !rank; }
    static void fields(auto&& each, auto& r) { each(r.rank, r.message, r.exit_code); }
    friend bool operator==(const Failure&, const Failure&) = default;
};
/// The failure in words, for users: "rank 3: loss is NaN".
[[nodiscard]] std::string describe(const Failure& failure);

/// The cause of the death of a whole job: a rank that crashes or hangs in user code leaves this note.
struct CrashNote {
    TrialId trial;
    AttemptId attempt;
    Failure failure; ///< {"killed by signal 11 (SIGSEGV)", 3}: rank 3 of the job
    static void fields(auto&& each, auto& r) { each(r.trial, r.attempt, r.failure); }
    friend bool operator==(const CrashNote&, const CrashNote&) = default;
};

/// How a study ended; the value is the exit code of every rank.
enum class StudyOutcome : std::uint8_t {
    ok = 0,
    runtime_error = 1,
    usage = 2,
    too_many_failures = 3,
    no_success = 4,
    resumable = 75
};

/// One metric of a report, as the trainable names it.
struct NamedMetric {
    std::string name;
    double value = 0.0;
    static void fields(auto&& each, auto& r) { each(r.name, r.value); }
    friend bool operator==(const NamedMetric&, const NamedMetric&) = default;
};

/// The same after the study has given its name a number (record MetricDefined).
struct MetricValue {
    MetricId id;
    double value = 0.0;
    friend bool operator==(const MetricValue&, const MetricValue&) = default;
};

/// What a suggestion rests on, as the searcher says. It is for readers only: no decision uses it.
struct SuggestionBasis {
    std::string model = {};              ///< "gp", "tpe", "sobol", ...; empty: the searcher does not say
    std::uint64_t results = 0;           ///< that the model learned from
    std::optional<double> expected = {}; ///< score of the objective that it expects: larger is better
    std::optional<double> gain = {};     ///< what was maximised, a logarithm: gp: improvement; tpe: good / bad
    std::string note = {};               ///< a sentence; why no model was asked
    static void fields(auto&& each, auto& r) { each(r.model, r.results, r.expected, r.gain, r.note); }
    friend bool operator==(const SuggestionBasis&, const SuggestionBasis&) = default;
};

} // namespace ranktune::study
