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
#include "tuner/values/front.hpp"
#include "tuner/values/pace.hpp"
#include "tuner/values/placement.hpp"
#include "tuner/values/repeats.hpp"
#include "tuner/values/requests.hpp"
#include "tuner/values/retention.hpp"
#include "tuner/values/side_tasks.hpp"
#include "tuner/values/tickets.hpp"
#include "tuner/values/trials.hpp"

namespace ranktune::tuner {

/// A report that violates constraints, while no report keeps them.
struct Nearest {
    TrialId trial;
    Iteration iteration = 0;
    study::Score score;            ///< smallest `violation`; then the best first objective, then the lower trial
    std::vector<double> values;    ///< of the objectives, as reported
    std::vector<double> distances; ///< from each constraint, as Constraint::distance
    static void fields(auto&& each, auto& r) { each(r.trial, r.iteration, r.score, r.values, r.distances); }
};

struct State {
    std::string uuid;
    std::string version;
    std::string simulation; ///< StudyCreated::simulation
    std::string wall_time;  ///< when this incarnation began
    Incarnation incarnation;
    StudyTime now;                    ///< of the last record
    StudyTime began;                  ///< of this incarnation
    std::vector<std::string> metrics; ///< position is the MetricId
    std::uint64_t reports = 0;
    std::uint64_t records = 0;
    std::uint64_t iterations = 0;    ///< trained in all, repeated ones included
    std::uint64_t interruptions = 0; ///< starts that ended with attempts running, and losses of ranks, once per host
    std::uint64_t since_better = 0;  ///< trials that have ended without failing since the best value last improved
    std::uint64_t ended_well = 0;    ///< trials that have ended without failing before the study drained
    bool scored = false;             ///< a report that counts had the study's metric
    std::optional<TrialId> best; ///< trial with the best (first) objective so far, ties to the lower id; best_by_mean
    std::optional<Nearest> nearest; ///< for views, of a study whose best is nothing

    Trials trials;
    Placement placement;
    Pace pace;
    Blame blame;
    Retention retention;
    Front front; ///< empty in a study with one objective
    SideTasks side;

    // Where configurations come from.
    std::uint64_t suggested = 0; ///< suggestions that trials have taken, without those of tickets
    Tickets tickets;
    searchers::Observations observations;
    LastResults last_results; ///< only with searcher.repeats, for a searcher that learns

    Requests requests;

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
    /// Deterministic: how many records are the same in every run of the study file. nullopt: all.
    std::optional<std::uint64_t> deterministic_until;

    [[nodiscard]] std::uint64_t in(TrialPhase phase) const { return trials.in(phase); }
    [[nodiscard]] const Trial& trial(TrialId id) const { return trials.at(id); }
    /// Whether the trial is the best one, or one of the Pareto front.
    [[nodiscard]] bool leads(TrialId id) const { return best == id || front.contains(id); }
    /// Whether the trial is a result of the study: it leads, or its checkpoints are the result.
    [[nodiscard]] bool is_result(TrialId id) const { return leads(id) || retention.keeper() == id; }
};

/// Mean time between failures of the job: what the study file says, corrected by what the study has seen in all its
/// starts. The failure rate has a Gamma prior worth one failure in the configured time; the result is the inverse of
/// its posterior mean: (configured + running time) / (1 + interruptions).
[[nodiscard]] base::Duration mean_time_between_failures(const State& state, const study::CheckpointSpec& spec);

/// The latest start of a new trial such that its first checkpoint is saved before the deadline. nullopt: no deadline,
/// or the time of an iteration is not known yet.
[[nodiscard]] std::optional<StudyTime> last_start(const State& state);

/// The number of different trials that fail in a row, before a report of theirs counts, at which the study drains:
/// failure.in_a_row, or the sum of 10, the binary logarithm of study.num_trials (rounded up) and the number of groups
/// (how many trials fit into `ranks`, at most study.max_concurrent). The groups count because all of them may draw
/// configurations that fail at once, while a good one takes longer to report.
[[nodiscard]] std::size_t failures_to_drain(const study::StudySpec& spec, std::size_t ranks);

/// Until when a study with nothing left but trials on hold goes on waiting: a user may resume one just after a start.
/// nullopt: there is something else to do.
[[nodiscard]] std::optional<StudyTime> held_until(const State& state);

/// The study stops for a cause other than the user's wish (a signal, the end of the job's time), so a supervisor may
/// start it again.
[[nodiscard]] bool would_be_started_again(const State& state);

/// The study drains before its end, so that side tasks end, too, and those that wait do not start.
[[nodiscard]] bool stops_early(const State& state);
/// Side tasks run, or may yet start, although the study drains for a limit of its own.
[[nodiscard]] bool goes_on_beside(const State& state);

/// Such an end leaves nothing to do, so a supervisor need not start the study again. (The other reasons: the study can
/// go on after a small change.)
[[nodiscard]] constexpr bool ends_for_good(StudyOutcome outcome, Reason reason) {
    return outcome != StudyOutcome::resumable && reason != Reason::stateless && reason != Reason::before_failed &&
           reason != Reason::after_failed;
}
/// Whether the study has ended for good.
[[nodiscard]] inline bool is_over(const State& state) {
    return state.ended && ends_for_good(state.outcome, state.end_reason);
}

/// A number that grows only when a study makes progress: iterations reported for the first time, trials that are over,
/// side tasks that are over, and deaths of the job while a suspect was tried alone (each brings a conviction nearer).
/// Iterations trained again after a restart do not count. O(trials).
[[nodiscard]] std::uint64_t progress_of(const State& state);

/// More trials have failed than `failure.tolerate` allows.
[[nodiscard]] bool too_many_failed(const State& state, const study::FailureSpec& limits);
/// Tasks after trials (study::unit_of) that failed and can run again: what they read is there.
[[nodiscard]] std::vector<TrialId> tasks_to_repeat(const State& state, const study::StudySpec& spec);
/// Whether the record has a failed task after a trial wait again (Tuner::reopen).
[[nodiscard]] bool reopens(const State& state, const study::SideEnded& record);
/// Of a study of predictions: ranges of samples that have no trial.
[[nodiscard]] std::uint64_t ranges_not_begun(const State& state, const study::StudySpec& spec);
/// "2 of 6 trials failed; failure.tolerate = 0.05 allows 0"
[[nodiscard]] std::string failures_sentence(const State& state, const study::FailureSpec& limits);
/// "loss was never finite: it was nan or infinite in all 60 reports ..."
[[nodiscard]] std::string never_finite_sentence(const State& state, const study::StudySpec& spec);

} // namespace ranktune::tuner
