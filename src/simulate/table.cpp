// SPDX-License-Identifier: Apache-2.0
// Measured curves from CSV and HDF5.

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/csv.hpp"
#include "base/number_in.hpp"
#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/space/value.hpp"
#include "simulate/recordings.hpp"
#include "storage/results.hpp"

namespace ranktune::simulate {
namespace {

/// A table, row by row; the first row has the names of the columns.
class Rows {
  public:
    explicit Rows(const std::string& file) : file_(file) {}
    virtual ~Rows() = default;
    /// False at the end.
    virtual bool next(std::vector<std::string>& cells) = 0;
    [[noreturn]] void fail(const std::string& what) const {
        throw base::UsageError(file_ + (row_ == 0 ? "" : ":" + std::to_string(row_)) + ": " + what);
    }

  protected:
    std::size_t row_ = 0; ///< for messages

  private:
    const std::string& file_;
};

/// The row for messages is that of the first data, counted from 1.
class ColumnRows final : public Rows {
  public:
    ColumnRows(const std::vector<storage::Column>& columns, const std::string& file) : Rows(file), columns_(columns) {
        for (const auto& column : columns)
            if (column.size() != columns.front().size())
                throw base::UsageError(file + ": '" + column.name + "' has " + base::counted(column.size(), "row") +
                                       ", '" + columns.front().name + "' has " +
                                       std::to_string(columns.front().size()));
    }

    bool next(std::vector<std::string>& cells) override {
        cells.clear();
        if (std::exchange(header_, false)) {
            for (const auto& column : columns_) cells.push_back(column.name);
            return !columns_.empty();
        }
        if (row_ == columns_.front().size()) return false;
        for (const auto& column : columns_)
            cells.push_back(std::visit([&](const auto& values) { return text(values[row_]); }, column.values));
        ++row_;
        return true;
    }

  private:
    static std::string text(std::int64_t value) { return std::to_string(value); }
    static std::string text(double value) { return space::Value(value).text(); }
    static std::string text(const std::string& value) { return value; }

    const std::vector<storage::Column>& columns_;
    bool header_ = true;
};

class CsvRows final : public Rows {
  public:
    CsvRows(const std::string& text, const std::string& file) : Rows(file), reader_(text) {}

    bool next(std::vector<std::string>& cells) override {
        try {
            const bool any = reader_.next(cells);
            row_ = reader_.row_line();
            return any;
        } catch (const base::FormatError& error) {
            row_ = reader_.row_line();
            fail(error.what());
        }
    }

  private:
    base::CsvReader reader_;
};

/// Where the columns are.
struct Columns {
    std::size_t curve = 0;
    std::size_t iteration = 0;
    std::size_t value = 0;
    std::optional<std::size_t> seconds;
    std::vector<std::size_t> parameters;
};

Columns columns_of(const std::vector<std::string>& header, const std::vector<std::string>& parameters, Recordings& out,
                   const Rows& rows) {
    const auto find = [&](const std::string& name) -> std::optional<std::size_t> {
        const auto at = std::ranges::find(header, name);
        if (at == header.end()) return std::nullopt;
        if (std::find(at + 1, header.end(), name) != header.end())
            rows.fail("two columns have the name '" + name + "'");
        return static_cast<std::size_t>(at - header.begin());
    };
    const auto need = [&](const std::string& name, const std::string& what) {
        const auto at = find(name);
        if (!at) rows.fail("there is no column '" + name + "' (" + what + ")");
        return *at;
    };
    Columns columns;
    columns.curve = need("curve", "which curve a line belongs to");
    columns.iteration = need("iteration", "counted from 1");
    columns.value = need(out.metric, "the study's metric");
    columns.seconds = find("seconds");
    out.has_seconds = columns.seconds.has_value();
    for (const std::string& name : parameters) {
        const auto at = find(name);
        if (!at) continue;
        columns.parameters.push_back(*at);
        out.parameters.push_back(name);
    }
    return columns;
}

double number(const std::string& cell, const char* what, const Rows& rows) {
    const auto value = base::number_in<double>(cell);
    if (!value) rows.fail(std::string(what) + " needs a number, not '" + cell + "'");
    return *value;
}

Recording::Point point_of(const std::vector<std::string>& cells, const Columns& columns, const Rows& rows) {
    Recording::Point point;
    const double iteration = number(cells[columns.iteration], "iteration", rows);
    if (!(iteration >= 1.0 && iteration <= 1e9 && iteration == std::floor(iteration)))
        rows.fail("iteration needs a whole number from 1, not '" + cells[columns.iteration] + "'");
    point.iteration = static_cast<base::Iteration>(iteration);
    point.value = number(cells[columns.value], "the metric", rows);
    if (columns.seconds) point.seconds = number(cells[*columns.seconds], "seconds", rows);
    constexpr double longest_s = 1e9;
    if (!(point.seconds >= 0.0 && point.seconds <= longest_s))
        rows.fail("seconds need a number from 0 to 1e9, not '" + cells[*columns.seconds] + "'");
    return point;
}

/// Sorts the points. Training time does not fall.
void put_in_order(const std::string& name, Recording& curve, const std::string& file) {
    std::ranges::sort(curve.points, {}, &Recording::Point::iteration);
    for (std::size_t i = 1; i < curve.points.size(); ++i) {
        const auto& before = curve.points[i - 1];
        const auto& point = curve.points[i];
        const std::string where = "curve '" + name + "', iteration " + std::to_string(point.iteration);
        if (point.iteration == before.iteration) throw base::UsageError(file + ": " + where + " is there twice");
        if (point.seconds < before.seconds)
            throw base::UsageError(file + ": " + where + ": its seconds are fewer than those of an earlier iteration " +
                                   "(seconds: training time of the curve so far)");
    }
}

Recordings read_rows(Rows& rows, const std::string& file, const std::string& metric,
                     const std::vector<std::string>& parameters) {
    Recordings out;
    out.origin = file;
    out.metric = metric;
    std::vector<std::string> cells;
    if (!rows.next(cells)) throw base::UsageError(file + " is empty: it needs the names of its columns");
    const Columns columns = columns_of(cells, parameters, out, rows);
    std::map<std::string, std::size_t> numbers;
    std::vector<std::string> names;
    base::Digest digest;
    while (rows.next(cells)) {
        for (const std::string& cell : cells) digest.add(base::digest_of(cell));
        const auto [at, is_new] = numbers.try_emplace(cells[columns.curve], out.curves.size());
        std::vector<std::optional<std::string>> configuration;
        for (const std::size_t i : columns.parameters)
            configuration.push_back(cells[i].empty() ? std::nullopt : std::optional(cells[i]));
        if (is_new) {
            names.push_back(at->first);
            out.curves.push_back({std::move(configuration), {}});
        } else if (out.curves[at->second].configuration != configuration) {
            rows.fail("curve '" + at->first + "' has other hyper-parameters in an earlier line");
        }
        out.curves[at->second].points.push_back(point_of(cells, columns, rows));
    }
    if (out.curves.empty()) throw base::UsageError(file + " has no curves");
    for (std::size_t i = 0; i < names.size(); ++i) put_in_order(names[i], out.curves[i], file);
    out.identity = std::to_string(digest.value());
    return out;
}

} // namespace

Recordings read_csv(const std::string& text, const std::string& file, const std::string& metric,
                    const std::vector<std::string>& parameters) {
    CsvRows rows(text, file);
    return read_rows(rows, file, metric, parameters);
}

Recordings read_hdf5(const std::string& file, const std::string& metric, const std::vector<std::string>& parameters) {
    const auto columns = storage::read_columns(file);
    ColumnRows rows(columns, file);
    return read_rows(rows, file, metric, parameters);
}

} // namespace ranktune::simulate
