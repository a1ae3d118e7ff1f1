// SPDX-License-Identifier: Apache-2.0
#pragma once
// How far a searcher has read the table of observations.

#include <cstddef>
#include <limits>
#include <utility>

#include "ranktune/searchers/observations.hpp"

namespace ranktune::searchers {

/// The value of a report, whether it keeps the constraints or not: larger is better; -infinity: none.
[[nodiscard]] inline double reported_value(const Observation& report) {
    const auto& values = report.score.values();
    return values.empty() ? -std::numeric_limits<double>::infinity() : values.front();
}

/// A searcher that keeps what follows from the lines that it has read needs to read each line only once. What it keeps
/// is no state: another table is read from its beginning.
class Reading {
  public:
    /// The first line to read of this table, up to its end; 0 means: forget what followed from other lines. From now on
    /// they count as read.
    [[nodiscard]] std::size_t next(const Observations& table) {
        if (table.size() < read_ || !table.continues(begin_)) read_ = 0;
        if (read_ == 0) begin_ = table.first(1);
        return std::exchange(read_, table.size());
    }

  private:
    Observations begin_; ///< first line of the table
    std::size_t read_ = 0;
};

} // namespace ranktune::searchers
