// SPDX-License-Identifier: Apache-2.0
#pragma once
// metrics.h5: the tables of a study for people and their scripts. Derived from the journal and published whole; the
// journal stays the truth. Layout: docs/reference/files.md.

#include <cstdint>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "storage/file_system.hpp"
#include "storage/results.hpp"

namespace ranktune::storage {

/// Version of the layout, in the root attribute `schema_version`.
inline constexpr std::uint64_t results_schema = 1;

/// One field of a table: a 1-D data set.
struct Column {
    /// Kind of values. A metric or parameter with the name of a field gets a prefix in the file ("metric.time").
    enum class Role : unsigned char { field, metric, parameter };
    /// Missing values: NaN, an empty text. Integers have none.
    using Values = std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>>;

    std::string name;
    Role role = Role::field;
    std::string units;     ///< "s", "iterations"; empty: the attribute is "1" (no unit)
    std::string long_name; ///< one sentence; empty: same as `name`
    Values values;

    [[nodiscard]] std::size_t size() const;
};

/// A column name that a user chose, and the prefix it gets when the name is taken: "metric", "parameter".
struct ChosenName {
    std::string name;
    std::string role;
};
/// Column names of a table, one per chosen name. `taken` are the table's own names. A chosen name that is free is kept;
/// the others get their role as a prefix ("metric.time"), repeated while the result is taken too. The returned names
/// are UTF-8 (base::as_utf8).
[[nodiscard]] std::vector<std::string> column_names(std::set<std::string> taken, std::vector<ChosenName> chosen);

/// A group of columns of equal length; row i of all of them belongs together.
struct ResultTable {
    std::string name; ///< of the group: "reports", "trials"
    std::string long_name;
    std::vector<Column> columns;
};

struct Results {
    std::string study; ///< its name
    std::string uuid;
    std::string metric;  ///< of the objective, or of the first of several
    std::string mode;    ///< "min" or "max"
    std::string version; ///< of the program
    std::string written; ///< wall time, RFC 3339
    std::vector<ResultTable> tables;
    std::string objectives = {}; ///< of several, for people: "accuracy (max), latency (min)"; empty: one
};

/// Writes a temporary file, syncs it, renames it to `path`, syncs the directory. Throws base::IoError; throws
/// std::invalid_argument when the columns of a table differ in length or two have the same name.
void publish_results(FileSystem& files, const std::string& path, const Results& results);

// ---- Columns of a table that a user made: the one-dimensional data sets in the root of an HDF5 file.

/// Integers, floating-point numbers and strings (fixed or variable length); other data sets and groups are left out. In
/// the order of their names. Throws base::FormatError, naming the file.
[[nodiscard]] std::vector<Column> read_columns(const std::string& path);

} // namespace ranktune::storage
