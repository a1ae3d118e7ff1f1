// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of a journal by replay: whether the algorithms decide the same again, and a digest of the study's logical
// content, without times, hosts and attempts.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "report/screens/text.hpp"
#include "storage/journal/journal.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::report {

struct Verification {
    std::uint64_t records = 0;   ///< checked
    std::uint64_t decisions = 0; ///< made again by an algorithm: verdicts, suggestions, promotions, starts
    std::uint64_t snapshots = 0; ///< whose digest was compared
    std::uint64_t foreign = 0;   ///< snapshots of another version, which cannot be compared
    std::uint64_t rounded = 0;   ///< suggestions that differ by one unit in the last place
    /// Suggestions that were prepared ahead: how many were recorded, how many of these were computed again, and how
    /// many of those came out otherwise. That is no difference: models add up what libraries round otherwise on other
    /// processors. Those of other programs are not computed again, and no more than the first thousand.
    struct Prepared {
        std::uint64_t recorded = 0;
        std::uint64_t computed = 0;
        std::uint64_t otherwise = 0;
    } prepared;
    std::string difference;          ///< the first difference, in words; empty: none
    std::uint64_t difference_at = 0; ///< number of the record
};

/// Reconstructs the events from the records, gives them to a new tuner, and compares its decisions record by record, up
/// to `until` records. Throws base::UsageError without a journal, base::FormatError for a damaged one.
[[nodiscard]] Verification verify_journal(storage::FileSystem& files, const std::string& directory,
                                          std::uint64_t until = std::numeric_limits<std::uint64_t>::max());

/// What was checked, in lines.
[[nodiscard]] std::string verified_text(const Verification& found);

/// Explains a difference and what to do. `wrote`: the version that created the study; `version`: this one.
[[nodiscard]] std::string difference_text(const Verification& found, const std::string& wrote,
                                          const std::string& version, const std::string& directory, const Style& style);

/// Digest of a study's results: per trial its configuration, the metrics at every iteration (from the first report of
/// that iteration), decisions on it, what it took over, and how it ended. Times, hosts, ranks, attempts and starts are
/// left out.
class LogicalDigest {
  public:
    void add(const study::Record& record);
    [[nodiscard]] std::uint64_t value() const;

  private:
    struct Iteration {
        base::Iteration iteration = 0;
        std::vector<study::MetricValue> metrics;
    };
    struct Trial {
        space::Configuration configuration;
        std::vector<Iteration> reports; ///< ascending iterations
        study::Bytes decisions;
        study::TrialPhase phase = study::TrialPhase::waiting;
        study::Reason reason = study::Reason::none;
    };
    std::vector<std::string> metrics_;
    std::vector<Trial> trials_;
};

// ---- A study that trains one trial from scratch, as a trial of another study was trained.

/// One trial with the configuration that the weights of the newest report of `trial` began with. It changes as theirs
/// did, whoever trained them (`lineage`), after as many iterations of training, and ends when they have been trained as
/// long. Searcher, scheduler, name and limits of the study as a whole are its own; everything else is as in the study
/// of `tuner`. Throws base::UsageError for a trial that is not there or has not reported.
[[nodiscard]] study::StudySpec repeated(const tuner::Tuner& tuner, study::TrialId trial);
/// The study that trains these trials further: their configurations as starting points, `fifo`, no limits of trials or
/// of the study but `max_iterations`, no schedule (values stay what they are), and no promise to repeat exactly.
[[nodiscard]] study::StudySpec extended(const tuner::Tuner& tuner, const std::vector<study::TrialId>& trials,
                                        study::Iteration max_iterations);
/// So that the weights of the best report arise again. The study has a best trial.
[[nodiscard]] study::StudySpec repeated_best(const tuner::Tuner& tuner);

} // namespace ranktune::report
