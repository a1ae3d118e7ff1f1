// SPDX-License-Identifier: Apache-2.0
#include "base/csv.hpp"

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::base {

CsvReader::CsvReader(std::string_view text, Cells cells, std::size_t columns)
    : text_(text), cells_(cells), columns_(columns) {
    if (text.starts_with("\xEF\xBB\xBF")) at_ = 3;
}

bool CsvReader::next(std::vector<std::string>& cells) {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r') && !is_empty_row()) skip_line_end();
    if (at_ >= text_.size()) return false;
    row_ = line_;
    cells.clear();
    do cells.push_back(cell());
    while (at_ < text_.size() && text_[at_] == ',' && ++at_ > 0);
    skip_line_end();
    if (columns_ == 0) columns_ = cells.size();
    if (cells.size() != columns_)
        throw FormatError("the row has " + counted(cells.size(), "cell") + ", and the first line names " +
                          std::to_string(columns_));
    return true;
}

std::string CsvReader::cell() {
    std::string value;
    if (at_ < text_.size() && text_[at_] == '"') return quoted();
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r') value += text_[at_++];
    return cells_ == Cells::whole ? value : std::string(trimmed(value));
}

/// At the end of a line.
bool CsvReader::is_empty_row() const {
    return cells_ == Cells::whole && columns_ == 1 && text_.find_first_not_of("\r\n", at_) != std::string_view::npos;
}

/// A quote inside quotes is doubled.
std::string CsvReader::quoted() {
    std::string value;
    for (++at_; at_ < text_.size(); ++at_) {
        if (text_[at_] == '\n') ++line_;
        if (text_[at_] == '"' && (at_ + 1 == text_.size() || text_[at_ + 1] != '"')) {
            ++at_;
            while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
            if (at_ < text_.size() && std::string_view(",\r\n").find(text_[at_]) == std::string_view::npos)
                throw FormatError("text follows a quoted cell: quotes inside quotes are doubled");
            return value;
        }
        if (text_[at_] == '"') ++at_;
        value += text_[at_];
    }
    throw FormatError("a quoted cell does not end");
}

void CsvReader::skip_line_end() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') {
        ++at_;
        ++line_;
    }
}

} // namespace ranktune::base
