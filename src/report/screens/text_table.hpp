// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tables of text: columns whose widths follow from their cells.

#include <cstddef>
#include <string>
#include <vector>

#include "report/screens/text.hpp"

namespace ranktune::report {

struct TextColumn {
    std::string title;
    bool left = false; ///< cells begin at the left
    std::vector<std::string> cells = {};
    std::size_t limit = 16; ///< wider cells are cut
    [[nodiscard]] std::size_t width() const;
};

/// Columns that a row takes on a terminal.
[[nodiscard]] std::size_t width_of(const std::vector<TextColumn>& columns);

/// The rows of a table, as lines without line ends. Widths are computed once, however many rows there are.
class TextRows {
  public:
    /// The columns must outlive it.
    explicit TextRows(const std::vector<TextColumn>& columns);
    [[nodiscard]] std::string titles() const;
    /// Titles and cells, one line each.
    [[nodiscard]] std::string all(const Style& style) const;
    /// The cells at `index`, which must be there.
    [[nodiscard]] std::string cells(std::size_t index) const;

  private:
    template <class Cell>
    [[nodiscard]] std::string line(Cell cell) const;

    const std::vector<TextColumn>& columns_;
    std::vector<std::size_t> widths_;
};

} // namespace ranktune::report
