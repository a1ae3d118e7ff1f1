// SPDX-License-Identifier: Apache-2.0
#pragma once
// RowTable: a CSV file whose rows are configurations (`table` of [trainable]).

#include <cstddef>
#include <string>
#include <vector>

#include "ranktune/space/configuration.hpp"

namespace ranktune::trainables {

/// The whole file in memory, as text; a row is split into its cells when it is asked for.
class RowTable {
  public:
    /// The first row names the columns; blanks around names do not count, those of cells do. Throws base::IoError when
    /// the file cannot be read; base::FormatError, with file and line, for a table without columns or rows, a column
    /// without a name, named twice or that is a part of another (x, x.1), and a row of another length.
    explicit RowTable(const std::string& path);

    [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
    [[nodiscard]] std::size_t rows() const { return begins_.size(); }
    /// Of row 0 .. rows()-1, as they are written. Throws base::UsageError for another row.
    [[nodiscard]] std::vector<std::string> cells(std::size_t row) const;

  private:
    void check_columns();

    std::string path_;
    std::string text_;
    std::vector<std::string> columns_;
    std::vector<std::size_t> begins_; ///< of each row in the text
};

/// The configuration with the cells of its row, as texts, in place of the row's number; a column may have that name.
/// Requires study::row_parameter. Throws as RowTable::cells.
[[nodiscard]] space::Configuration with_row(space::Configuration configuration, const RowTable& table);

} // namespace ranktune::trainables
