// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trials as a table on a terminal: which columns, which trials, in which order.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "report/screens/text.hpp"
#include "report/view/last_metrics.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::report {

/// What to show. Names: `trial`, `state`, `group`, `it`, `best`, `best_it`, `last`, `time`, `attempts`, `bracket`,
/// `ranks`, `reason`, `took over`; metrics; hyper-parameters. `metric.NAME` and `parameter.NAME` for names that clash.
struct TableRequest {
    std::vector<std::string> columns = {}; ///< empty: as many as fit, the others named below the table
    std::string sort = {};                 ///< a name, or NAME:desc; empty: running trials first, then by the metric
    std::string filter = {};               ///< a condition (TrialFilter); empty: all trials
    std::size_t max_rows = 20;
    bool offers = false;       ///< tells below the table how to see more columns
    bool wide_metrics = false; ///< metrics beside the objective, too, where there is room
};

class TrialTable {
  public:
    /// The tuner must outlive it. `interrupted`: nobody runs the study. Throws base::UsageError for an unknown name or
    /// a mistake in a condition, with the option, the column and the names that are accepted.
    TrialTable(const tuner::Tuner& tuner, const TableRequest& request, bool interrupted, const Style& style);
    ~TrialTable();

    /// Whether it shows, sorts or filters by a metric that is not the objective: only then `text` reads `metrics`.
    [[nodiscard]] bool needs_metrics() const;
    /// A blank line, the titles, the trials, and what is not shown. Without a trial to show, what there is instead.
    /// `directory`: of the study, as the user would type it. Without chosen columns, lines fit the terminal.
    [[nodiscard]] std::string text(const LastMetrics& metrics, const std::string& directory) const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace ranktune::report
