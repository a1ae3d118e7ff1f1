// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tables of comma-separated values (RFC 4180).

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ranktune::base {

/// Reads a table row by row; the first one names the columns, and others have as many cells. Quoted cells may hold
/// commas, quotes (doubled) and line ends; blanks behind them are dropped. Empty lines and a byte order mark are
/// skipped.
class CsvReader {
  public:
    enum class Cells : std::uint8_t {
        trimmed, ///< for numbers: without blanks around cells that are not quoted
        whole,   ///< for texts; in a table of one column an empty line is a row, unless only such lines follow
    };

    /// `text` outlives the reader. `columns`: of a text without the first row.
    explicit CsvReader(std::string_view text, Cells cells = Cells::trimmed, std::size_t columns = 0);

    /// False at the end. Throws base::FormatError, without a place, for a quoted cell that does not end, or is
    /// followed by more than blanks, and for another number of cells than the first row has.
    [[nodiscard]] bool next(std::vector<std::string>& cells);
    /// Where the row of the last `next` began, counted from 1; 0: no row yet.
    [[nodiscard]] std::size_t row_line() const { return row_; }
    /// The byte behind the row of the last `next`: a row, or empty lines before it, begins there.
    [[nodiscard]] std::size_t offset() const { return at_; }

  private:
    std::string cell();
    std::string quoted();
    void skip_line_end();
    [[nodiscard]] bool is_empty_row() const;

    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t line_ = 1;
    std::size_t row_ = 0;
    Cells cells_;
    std::size_t columns_; ///< 0: no row yet
};

} // namespace ranktune::base
