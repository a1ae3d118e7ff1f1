// SPDX-License-Identifier: Apache-2.0
#pragma once
// The generated pages of the reference, from the tables that the program itself reads: keys, options of trainables,
// files of a simulation. (Those of algorithms: algorithm_text.hpp; of the command line: cli/manual.)

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/study/algorithm.hpp"
#include "ranktune/study/trainable_info.hpp"
#include "study/parse/keys.hpp"

namespace ranktune::report {

/// The heading of a generated page, and where it comes from.
[[nodiscard]] std::string page_begin(std::string_view title, std::string_view about);
/// "| a | b |", with a line end.
[[nodiscard]] std::string table_row(const std::vector<std::string>& cells);
/// The header of a table and the line below it.
[[nodiscard]] std::string table_head(const std::vector<std::string>& cells);
/// A value as a cell: literals in back quotes.
[[nodiscard]] std::string literal_cell(std::string_view text);

/// Markdown pages, in docs/reference/generated.
[[nodiscard]] std::string study_keys_page();
[[nodiscard]] std::string trainables_page(const std::vector<study::TrainableInfo>& trainables);
[[nodiscard]] std::string simulation_page();

/// Keys for a terminal, `width` columns wide: those of a table, one key, or, for an empty name, all. Throws
/// base::UsageError for a name that is neither; options of algorithms are not among them.
[[nodiscard]] std::string keys_text(std::string_view name, std::size_t width);

/// Text without back quotes, and links as their words.
[[nodiscard]] std::string without_marks(std::string_view markdown);

} // namespace ranktune::report
