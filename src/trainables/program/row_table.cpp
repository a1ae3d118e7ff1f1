// SPDX-License-Identifier: Apache-2.0
#include "trainables/program/row_table.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/csv.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/spec.hpp"
#include "storage/file_system.hpp"

namespace ranktune::trainables {

RowTable::RowTable(const std::string& path)
    : path_(path), text_(storage::read_text(storage::posix_file_system(), path)) {
    base::CsvReader reader(text_, base::CsvReader::Cells::whole);
    const auto wrong = [&](const std::string& what) {
        throw base::FormatError(path + ":" + std::to_string(reader.row_line()) + ": " + what);
    };
    try {
        if (!reader.next(columns_)) throw base::FormatError("the file is empty; its first row names the columns");
        check_columns();
        std::vector<std::string> cells;
        while (true) {
            const std::size_t begin = reader.offset();
            if (!reader.next(cells)) break;
            begins_.push_back(begin);
        }
    } catch (const base::FormatError& error) {
        wrong(error.what());
    }
    if (begins_.empty()) wrong("there are no rows below the names of the columns");
}

void RowTable::check_columns() {
    for (std::string& column : columns_) column = base::trimmed(column);
    for (const std::string& column : columns_) {
        if (column.empty()) throw base::FormatError("a column has no name; the first row names the columns");
        if (std::ranges::count(columns_, column) > 1)
            throw base::FormatError("two columns are called '" + column + "'");
        for (const std::string& other : columns_)
            if (column.starts_with(other + "."))
                throw base::FormatError("the column '" + column + "' would be a part of the column '" + other +
                                        "': programs get a.b as the member b of a; rename one of them");
    }
}

std::vector<std::string> RowTable::cells(std::size_t row) const {
    if (row >= rows())
        throw base::UsageError("the table '" + path_ + "' has no row " + std::to_string(row) + ": it has " +
                               std::to_string(rows()) + ", from 0 on");
    base::CsvReader reader(std::string_view(text_).substr(begins_[row]), base::CsvReader::Cells::whole,
                           columns_.size());
    std::vector<std::string> cells;
    static_cast<void>(reader.next(cells));
    return cells;
}

space::Configuration with_row(space::Configuration configuration, const RowTable& table) {
    const auto row = static_cast<std::size_t>(configuration.find(study::row_parameter)->as_int());
    std::vector<std::string> cells = table.cells(row);
    space::Configuration all;
    for (const auto& [name, value] : configuration.entries())
        if (name != study::row_parameter) all.set(name, value);
    for (std::size_t i = 0; i < cells.size(); ++i) all.set(table.columns()[i], space::Value(std::move(cells[i])));
    return all;
}

} // namespace ranktune::trainables
