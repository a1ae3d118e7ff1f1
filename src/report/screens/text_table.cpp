// SPDX-License-Identifier: Apache-2.0
#include "report/screens/text_table.hpp"

#include <algorithm>

namespace ranktune::report {
namespace {

constexpr std::size_t gap = 2; // columns

} // namespace

std::size_t TextColumn::width() const {
    std::size_t width = display_width(title);
    for (const auto& cell : cells) width = std::max(width, display_width(cell));
    return std::min(width, limit);
}

std::size_t width_of(const std::vector<TextColumn>& columns) {
    std::size_t sum = 1;
    for (const auto& column : columns) sum += column.width() + gap;
    return sum - gap;
}

TextRows::TextRows(const std::vector<TextColumn>& columns) : columns_(columns) {
    for (const TextColumn& column : columns) widths_.push_back(column.width());
}

template <class Cell>
std::string TextRows::line(Cell cell) const {
    std::string text = " ";
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        if (i > 0) text.append(gap, ' ');
        const std::string& word = cell(columns_[i]);
        text += columns_[i].left ? pad_right(word, widths_[i]) : pad_left(word, widths_[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
}

std::string TextRows::all(const Style& style) const {
    std::string text = titles() + "\n";
    const std::size_t rows = columns_.empty() ? 0 : columns_.front().cells.size();
    for (std::size_t i = 0; i < rows; ++i) text += cells(i) + "\n";
    return encoded(std::move(text), style);
}

std::string TextRows::titles() const {
    return line([](const TextColumn& column) -> const std::string& { return column.title; });
}

std::string TextRows::cells(std::size_t index) const {
    return line([index](const TextColumn& column) -> const std::string& { return column.cells[index]; });
}

} // namespace ranktune::report
