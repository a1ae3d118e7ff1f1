// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a study's state forgets and pictures need: curves, decisions, the ends of attempts, how the best value grew.

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "report/view/rank_time.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::report {

/// A report of the study's metric.
struct CurvePoint {
    study::Iteration iteration = 0;
    double value = 0.0; ///< infinite or NaN, too
    double at_s = 0.0;  ///< study time
};

/// A verdict that is more than "go on, below a rung", or the promotion of a paused trial.
struct Decision {
    study::TrialId trial;
    study::Iteration iteration = 0;
    study::Verb verb = study::Verb::go_on;
    study::Reason reason = study::Reason::none;
    double a = 0.0; ///< the numbers of the reason
    double b = 0.0;
    double value = 0.0; ///< of the metric in that report; NaN: none, or a promotion
    double at_s = 0.0;
    bool promotion = false;   ///< of a trial that was paused
    std::uint64_t record = 0; ///< its number in the journal
};

struct AttemptEnd {
    study::TrialId trial;
    study::AttemptId attempt;
    double at_s = 0.0;
    study::AttemptOutcome outcome = study::AttemptOutcome::finished;
    std::string message = {}; ///< of a failure; empty: none
    std::uint64_t record = 0; ///< its number in the journal
};

/// A report that improved the best value; with repeats, the end of the last trial of a configuration.
struct BestStep {
    double at_s = 0.0;
    std::uint64_t iterations = 0; ///< trained by all trials until then
    study::TrialId trial;
    double value = 0.0;
};

/// One start of a head.
struct StartOfHead {
    double at_s = 0.0;
    double end_s = 0.0;      ///< its last record
    std::string wall_time;   ///< RFC 3339
    std::uint64_t ranks = 0; ///< workers
};

/// Something that happened to the study as a whole, in words.
struct Incident {
    double at_s = 0.0;
    std::string text;
};

/// Collects while a journal is read, record by record; can go on with the records of a journal that has grown.
class History {
  public:
    /// `number`: of the record in the journal. `tuner`: with the record applied.
    void add(const study::Record& record, std::uint64_t number, const tuner::Tuner& tuner);

    /// By trial; trials that have not reported may be missing at the end. A point for each iteration: where one was
    /// trained again, after a loss, the newest counts.
    [[nodiscard]] std::vector<std::vector<CurvePoint>> take_curves() { return std::move(curves_); }
    [[nodiscard]] const std::vector<Decision>& decisions() const { return decisions_; }
    [[nodiscard]] std::vector<Decision> take_decisions() { return std::move(decisions_); }
    [[nodiscard]] const std::vector<AttemptEnd>& ends() const { return ends_; }
    [[nodiscard]] const std::vector<BestStep>& best() const { return best_; }
    [[nodiscard]] const std::vector<StartOfHead>& starts() const { return starts_; }
    [[nodiscard]] const std::vector<Incident>& incidents() const { return incidents_; }
    /// Numbers of the records in which a trial took over states, for each of its generations but the first.
    [[nodiscard]] std::span<const std::uint64_t> takeovers(study::TrialId trial) const;
    /// Number of the record that closed a trial; 0: none.
    [[nodiscard]] std::uint64_t closed(study::TrialId trial) const;
    [[nodiscard]] const RankTime& rank_time() const { return rank_time_; }
    /// The versions of the programs that created or changed the study, each once.
    [[nodiscard]] const std::vector<std::string>& versions() const { return versions_; }

  private:
    void take(const study::Reported& report, std::uint64_t number, const tuner::Tuner& tuner);
    void take_number(const study::Record& record, std::uint64_t number);
    void take_best(study::TrialId trial, double at, const tuner::Tuner& tuner);
    void take_incident(const study::Record& record);
    void take_version(const std::string& version);

    std::vector<std::vector<CurvePoint>> curves_;
    std::vector<Decision> decisions_;
    std::vector<AttemptEnd> ends_;
    std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> takeovers_; ///< by trial
    std::vector<std::uint64_t> closed_;                                       ///< by trial; may be shorter
    std::vector<BestStep> best_;
    std::vector<StartOfHead> starts_;
    std::vector<Incident> incidents_;
    std::vector<std::string> versions_;
    RankTime rank_time_;
};

// ---- The value of a study's best trial, alone or with the other trials of its configuration (searcher.repeats).

/// With repeats: all configurations, complete ones first, then by their means, the best first.
[[nodiscard]] std::vector<tuner::Repetitions> configurations_by_mean(const tuner::Tuner& tuner);
/// The best trial's value; with repeats, the mean over the trials of its configuration. NaN: there is no best trial.
[[nodiscard]] double value_of_best(const tuner::Tuner& tuner);
/// "0.9120"; with repeats "0.9120 +- 0.0041 (mean of 3)": mean and sample standard deviation.
[[nodiscard]] std::string text_of_best(const tuner::Tuner& tuner);
/// The same text for this trial's configuration, from those of its trials that have values; empty without repeats.
[[nodiscard]] std::string text_of_mean(const tuner::Tuner& tuner, study::TrialId trial);

} // namespace ranktune::report
