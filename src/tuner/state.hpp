// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of a study: what `apply` keeps, for the core itself and for views (status, best, end screen).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ranktune/searchers/observations.hpp"
#include "ranktune/study/spec.hpp"
#include "tuner/values/blame.hpp"
#include "tuner/values/pace.hpp"
#include "tuner/values/placement.hpp"
#include "tuner/values/retention.hpp"
#include "tuner/values/trials.hpp"

namespace ranktune::tuner {

/// A suggestion that is prepared ahead.
struct Ticket {
    std::uint64_t number = 0;
    std::uint64_t seen = 0; ///< lines of the table of observations that it may see
    bool answered = false;
    std::optional<space::Configuration> configuration; ///< answered; none: it failed
};

struct State {
    std::string uuid;
    std::string version;
    std::string wall_time; ///< when this incarnation began
    Incarnation incarnation;
    StudyTime now;                    ///< of the last record
    StudyTime began;                  ///< of this incarnation
    std::vector<std::string> metrics; ///< position is the MetricId
    std::uint64_t reports = 0;
    std::uint64_t records = 0;
    std::uint64_t iterations = 0;    ///< trained in all, repeated ones included
    std::uint64_t interruptions = 0; ///< ends of a start with attempts under way, and losses of ranks, once for a host
    bool scored = false;             ///< a report that counts had the study's metric
    std::optional<TrialId> best;     ///< trial with the best objective so far, ties to the lower id

    Trials trials;
    Placement placement;
    Pace pace;
    Blame blame;
    Retention retention;

    // Where configurations come from.
    std::uint64_t suggested = 0;   ///< suggestions that trials have taken, those of tickets apart
    std::uint64_t next_ticket = 0; ///< number of the next one
    std::vector<Ticket> tickets;   ///< that no trial has taken, oldest first
    searchers::Observations observations;

    // How the study goes, and how it ended.
    bool draining = false;
    StudyTime drain_began;
    Reason drain_reason = Reason::none;
    std::string drain_message;
    study::Asker drain_by = study::Asker::none;
    bool ended = false;
    StudyOutcome outcome = StudyOutcome::ok;
    Reason end_reason = Reason::none;
    std::string end_message;
    /// Deterministic: the number of records that any run of the study file would make alike. None: all.
    std::optional<std::uint64_t> deterministic_until;

    [[nodiscard]] std::uint64_t in(TrialPhase phase) const { return trials.in(phase); }
    [[nodiscard]] const TrialState& trial(TrialId id) const { return trials.at(id); }
    /// The result of the study: the best trial, and the one whose checkpoints stand for it.
    [[nodiscard]] bool is_result(TrialId id) const { return best == id || retention.keeper() == id; }
};

/// Mean time between failures of the job: what the study file says, corrected by what the study has seen in all its
/// starts. The rate of failures has a Gamma distribution that is worth one failure in the configured time; this is one
/// over its mean after `interruptions` in the study's running time: (configured + running time) / (1 + interruptions).
[[nodiscard]] base::Duration mean_time_between_failures(const State& state, const study::CheckpointSpec& spec);

/// Until when a new trial may begin, so that its first checkpoint is safe before the deadline. Nothing: there is no
/// deadline, or nobody knows yet how long an iteration takes.
[[nodiscard]] std::optional<StudyTime> last_start(const State& state);

/// So many different trials fail in a row before a report of theirs counts, until the study drains: failure.in_a_row,
/// or 10 and the binary logarithm of study.num_trials (rounded up) and the number of groups, which is how many trials
/// `ranks` have room for, at most study.max_concurrent. The groups count because all of them may draw configurations
/// that fail at once, while a good one takes its time for a first report.
[[nodiscard]] std::size_t failures_to_drain(const study::StudySpec& spec, std::size_t ranks);

/// The study stops for a cause that says nothing about what its user wants (a signal, the end of the job's time): what
/// started it may start it again.
[[nodiscard]] bool would_be_started_again(const State& state);

/// Such an end leaves nothing to do: what started the study need not start it again. (`stateless`: a small change, and
/// it goes on.)
[[nodiscard]] constexpr bool ends_for_good(StudyOutcome outcome, Reason reason) {
    return outcome != StudyOutcome::resumable && reason != Reason::stateless;
}
/// The study has ended so.
[[nodiscard]] inline bool is_over(const State& state) {
    return state.ended && ends_for_good(state.outcome, state.end_reason);
}

/// A figure that grows whenever a study gets on, and only then: iterations reported for the first time, trials that are
/// over, and deaths of the job that a single trial was tried for (each brings the study nearer to a conviction). What
/// is trained again after a restart does not count. O(trials).
[[nodiscard]] std::uint64_t progress_of(const State& state);

} // namespace ranktune::tuner
