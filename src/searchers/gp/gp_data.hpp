// SPDX-License-Identifier: Apache-2.0
#pragma once
// The results that a Gaussian process learns from, in the order of their arrival, and the trials that are under way.

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "searchers/results/largest_budget.hpp"
#include "searchers/results/reading.hpp"
#include "searchers/results/startup.hpp"

namespace ranktune::searchers {

/// Follows a table. Its results are those of LargestBudget, where `startup` finite ones are enough; if wanted, also
/// those at other iterations at which a trial stopped: was paused, finished or was stopped.
class GpData {
  public:
    struct Result {
        std::uint64_t number = 0;      ///< see Observations::point
        double score = 0.0;            ///< larger is better, whether it keeps the constraints or not; -infinity: failed
        std::size_t line = 0;          ///< of the table: its report, or the end of a trial that failed
        base::Iteration iteration = 0; ///< of a trial that failed: `iteration()` below
        friend bool operator==(const Result&, const Result&) = default;
    };

    explicit GpData(std::size_t startup, bool all_stops = false)
        : all_stops_(all_stops), budget_(enough_to_start(startup), LargestBudget::Violators::as_reported) {}

    void read(const Observations& table);
    /// The largest iteration with enough results; 0: none yet.
    [[nodiscard]] base::Iteration iteration() const { return budget_.iteration(); }
    /// In the order in which they came. Empty: not enough.
    [[nodiscard]] std::vector<Result> results() const;
    /// Points of the trials that train and have no result yet, ascending.
    [[nodiscard]] std::vector<std::uint64_t> under_way() const;

  private:
    void read(const Observation& line, std::size_t number);
    /// A trial goes no further for now: its last report counts.
    void stop(base::TrialId trial);

    bool all_stops_;
    Reading reading_;
    LargestBudget budget_;
    std::map<std::pair<base::Iteration, base::TrialId>, std::size_t>
        lines_;                                       ///< first report of a trial at an iteration
    std::map<base::TrialId, std::size_t> ends_;       ///< line of the end of a trial
    std::map<base::TrialId, std::uint64_t> training_; ///< point of a trial that trains
    // With all_stops_ only:
    std::map<base::TrialId, Result> last_; ///< report of a trial that trains
    std::vector<Result> stops_;            ///< in the order of the stops
};

} // namespace ranktune::searchers
