// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trials as a table on a terminal: which columns, which trials, in which order.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ranktune/space/configuration.hpp"
#include "report/screens/text.hpp"
#include "report/screens/text_table.hpp"
#include "report/view/last_metrics.hpp"
#include "report/view/trial_filter.hpp"
#include "studydir/notes/notes.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::report {

/// What to show. Names: `trial`, `state`, `group`, `it`, `best`, `best_it`, `last`, `time`, `attempts`, `bracket`,
/// `ranks`, `reason`, `took over`; hyper-parameters; metrics. One whose name is taken by an earlier one of this list is
/// called `parameter.NAME` or `metric.NAME`, as in exported tables.
struct TableRequest {
    std::vector<std::string> columns = {}; ///< empty: as many as fit, the others named below the table
    std::string sort = {};                 ///< a name, or NAME:desc; empty: running trials first, then by the metric
    std::string filter = {};               ///< a condition (TrialFilter); empty: all trials
    std::size_t max_rows = 20;
    const studydir::Notes* notes = nullptr; ///< outlives the table; null: there are none
    /// Where there is room, metrics beside the objective, too; what is left out is named below the table.
    bool more_columns = false;
};

class TrialTable {
  public:
    /// What a trial can be shown, sorted and selected by.
    struct Field {
        std::string name;
        std::function<std::string(study::TrialId)> cell = {};
        std::function<std::optional<space::Value>(study::TrialId)> value = {}; ///< nothing: the trial has none
        bool left = false;
        /// One of those beside the objectives, as LastMetrics counts them; then `cell` and `value` are empty.
        std::optional<std::size_t> metric = {};
        std::string title = {};                 ///< empty: its name
        std::size_t limit = TextColumn{}.limit; ///< wider cells are cut
        bool apart = false;                     ///< the study's name for it is that of another field
    };

    /// The tuner must outlive it. `interrupted`: nobody runs the study. Throws base::UsageError for an unknown name or
    /// a mistake in a condition, with the option, the column and the names that are accepted.
    TrialTable(const tuner::Tuner& tuner, const TableRequest& request, bool interrupted, const Style& style);
    TrialTable(const TrialTable&) = delete;
    TrialTable& operator=(const TrialTable&) = delete;

    /// Whether it shows, sorts or filters by a metric that is not the objective: only then `text` reads `metrics`.
    [[nodiscard]] bool needs_metrics() const;
    /// A blank line, the titles, the trials, and what is not shown. Without a trial to show, what there is instead.
    /// `directory`: of the study, as the user would type it. Without chosen columns, lines fit the terminal.
    [[nodiscard]] std::string text(const LastMetrics& metrics, const std::string& directory) const;

  private:
    void add_metrics();
    /// Gives hyper-parameters and metrics names of their own.
    void name_apart();
    [[nodiscard]] const Field* find(const std::string& name) const;
    [[nodiscard]] const Field& field(const std::string& name, const std::string& where) const;
    void choose_columns();
    void take_sort();
    void take_filter();
    [[nodiscard]] std::vector<study::TrialId> selected(const LastMetrics& last) const;
    [[nodiscard]] static std::optional<space::Value> value_of(const Field& field, study::TrialId id,
                                                              const LastMetrics& last);
    [[nodiscard]] static TextColumn column_of(const Field& field, const std::vector<study::TrialId>& ids,
                                              const LastMetrics* last);
    static std::vector<std::string> drop_to_fit(std::vector<TextColumn>& columns, std::size_t width);
    [[nodiscard]] std::string hidden_text(std::size_t trials, std::vector<std::string> columns,
                                          const std::string& directory) const;

    const tuner::Tuner& tuner_;
    TableRequest request_;
    Style style_;
    std::vector<Field> own_;
    std::vector<Field> metrics_; ///< the objectives first
    std::vector<Field> parameters_;
    std::vector<std::string> left_out_; ///< names of further columns, of which the table tells below
    std::vector<const Field*> shown_;   ///< columns, where they were chosen; else those that may be dropped, too
    const Field* sort_ = nullptr;
    bool descending_ = false;
    std::optional<TrialFilter> filter_;
    bool filters_metrics_ = false;
};

} // namespace ranktune::report
