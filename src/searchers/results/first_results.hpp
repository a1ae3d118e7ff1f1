// SPDX-License-Identifier: Apache-2.0
#pragma once
// One result of each trial, for searchers that learn from whole trainings in the order in which they end.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ranktune/searchers/observations.hpp"

namespace ranktune::searchers {

/// "#7"
[[nodiscard]] inline std::string named(base::TrialId trial) {
    return is_earlier(trial) ? "a trial of an earlier study" : "#" + std::to_string(trial.value());
}

/// Follows a table of observations. A trial has its result when it first stops: when it is over, or when the scheduler
/// first pauses it. That is its last score then; of a failed trial, of one that reported nothing, and of a last value
/// that is not finite, the worst. What the trial reports later, after a promotion, does not count: it would be compared
/// with results of trials that trained less.
///
///   #0 reports 1: 0.5, pauses -> {#0, 0.5}     #1 fails -> {#1, -inf}     #0 is promoted, reports 3: 0.9, ends ->
///   nothing
///
/// A function of the lines that were read. Cost: O(1) per line.
class FirstResults {
  public:
    struct Result {
        base::TrialId trial;
        std::uint64_t point = 0; ///< see Observations::point
        double score = 0.0;      ///< Score::order of `whole`: larger is better; -infinity: failed or not finite
        study::Score whole{};    ///< without values: failed
    };
    /// The next line; the result that it completes.
    [[nodiscard]] std::optional<Result> read(const Observation& line);

  private:
    struct Trial {
        study::Score last{};
        bool counted = false;
    };
    std::vector<Trial> trials_;
    std::vector<Trial> earlier_; ///< those of earlier studies
};

} // namespace ranktune::searchers
