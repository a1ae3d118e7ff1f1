// SPDX-License-Identifier: Apache-2.0
// Earlier results from a CSV table.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/csv.hpp"
#include "base/number_in.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "space/foreign_value.hpp"
#include "storage/results.hpp"
#include "studydir/earlier/found.hpp"

namespace ranktune::studydir {
namespace {

/// The first columns of the table of trials that `export` writes; the next one, of several objectives.
const std::vector<std::string> own_columns = {"trial",          "state", "reason",  "iterations", "best",
                                              "best_iteration", "last",  "seconds", "attempts",   "ranks",
                                              "start",          "end",   "message"};
constexpr const char* rank_column = "pareto_rank";

class TableReader {
  public:
    TableReader(const std::string& text, const study::WarmSource& source, const study::StudySpec& spec)
        : rows_(text), source_(source), spec_(spec) {}

    Found read() {
        if (!next()) refuse(source_, "is empty: it needs the names of its columns");
        header_ = cells_;
        find_columns();
        while (next()) {
            found_.trials.push_back(trial());
            found_.trials.back().values.share_names(found_.trials.front().values);
        }
        return std::move(found_);
    }

  private:
    using Column = std::optional<std::size_t>;

    [[noreturn]] void fail(const std::string& what) const { refuse(source_, rows_.row_line(), what); }

    bool next() {
        try {
            return rows_.next(cells_);
        } catch (const base::FormatError& error) {
            fail(error.what());
        }
    }

    /// Searches from column `begin` on.
    [[nodiscard]] Column find(const std::string& name, std::size_t begin = 0) const {
        const auto at = std::find(header_.begin() + static_cast<std::ptrdiff_t>(begin), header_.end(), name);
        if (at == header_.end()) return {};
        if (std::find(at + 1, header_.end(), name) != header_.end()) fail("two columns have the name '" + name + "'");
        return static_cast<std::size_t>(at - header_.begin());
    }

    /// A column for the table itself, which no hyper-parameter has the name of.
    [[nodiscard]] Column own(const std::string& name) const {
        return own_table_ || spec_.space.find(name) == nullptr ? find(name) : Column{};
    }

    void find_columns() {
        own_table_ =
            header_.size() >= own_columns.size() && std::equal(own_columns.begin(), own_columns.end(), header_.begin());
        find_metric();
        iteration_ = own(own_table_ ? "iterations" : "iteration");
        state_ = own("state");
        found_.only_known_names = true;
        std::vector<storage::ChosenName> chosen;
        for (const auto& parameter : spec_.space.parameters()) chosen.push_back({parameter.name, "parameter"});
        std::vector<std::string> first = own_columns;
        if (own_table_ && header_.size() > first.size() && header_[first.size()] == rank_column)
            first.emplace_back(rank_column);
        const auto names =
            own_table_ ? storage::column_names({first.begin(), first.end()}, chosen) : std::vector<std::string>();
        for (std::size_t i = 0; i < spec_.space.parameters().size(); ++i) {
            const std::string& name = spec_.space.parameters()[i].name;
            Column at = own_table_ ? find(names[i], first.size()) : find(name);
            if (!at && !own_table_) at = find("params_" + name);
            parameters_.push_back(at);
            if (at) found_.names.insert(name);
        }
    }

    void find_metric() {
        const std::string name = !source_.metric.empty() ? source_.metric
                                 : own_table_            ? "last"
                                                         : spec_.objective.metric;
        const Column at = find(name);
        if (!at)
            fail("there is no column '" + name + "'" +
                 (source_.metric.empty() ? ", the study's metric; name the column that stands for it: { path = ..., "
                                           "metric = \"COLUMN\" }"
                                         : base::suggestion(name, header_)));
        metric_ = *at;
    }

    [[nodiscard]] std::optional<double> number(std::size_t column) const {
        const std::string& cell = cells_[column];
        if (cell.empty()) return {};
        const auto value = base::number_in<double>(cell);
        if (!value) fail("column '" + header_[column] + "' needs a number, not '" + cell + "'");
        return value;
    }

    [[nodiscard]] base::Iteration iteration() const {
        if (!iteration_) return spec_.max_iterations;
        const double value = number(*iteration_).value_or(-1.0);
        constexpr double most = 1e15;
        if (!(value >= 0.0 && value <= most && value == std::floor(value)))
            fail("column '" + header_[*iteration_] + "' needs a whole number, not '" + cells_[*iteration_] + "'");
        return static_cast<base::Iteration>(value);
    }

    [[nodiscard]] FoundTrial trial() const {
        FoundTrial trial;
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            if (!parameters_[i] || cells_[*parameters_[i]].empty()) continue;
            const space::Parameter& parameter = spec_.space.parameters()[i];
            const space::Value value = space::as_meant(parameter.domain, std::string_view(cells_[*parameters_[i]]));
            const bool is_list = std::holds_alternative<space::Choice>(parameter.domain) ||
                                 std::holds_alternative<space::Grid>(parameter.domain) ||
                                 std::holds_alternative<space::Constant>(parameter.domain);
            if (!is_list && !value.is_number())
                fail("column '" + header_[*parameters_[i]] + "' needs a number, not '" + cells_[*parameters_[i]] + "'");
            trial.values.set(parameter.name, value);
        }
        if (const auto value = number(metric_)) trial.results.push_back({iteration(), *value});
        trial.failed = state_ && (cells_[*state_] == "failed" || cells_[*state_] == "FAIL");
        return trial;
    }

    base::CsvReader rows_;
    const study::WarmSource& source_;
    const study::StudySpec& spec_;
    std::vector<std::string> header_;
    std::vector<std::string> cells_;
    bool own_table_ = false;
    std::size_t metric_ = 0;
    Column iteration_;
    Column state_;
    std::vector<Column> parameters_; ///< in the order of the space
    Found found_;
};

} // namespace

Found read_table(const std::string& text, const study::WarmSource& source, const study::StudySpec& spec) {
    return TableReader(text, source, spec).read();
}

} // namespace ranktune::studydir
