// SPDX-License-Identifier: Apache-2.0
#pragma once
// Properties of standard output: a terminal and its size, or a file.

#include <string>
#include <utility>
#include <vector>

#include "report/screens/text.hpp"

namespace ranktune::cli {

/// Environment variable in which a `ranktune run` that starts mpirun tells its ranks the columns of the real terminal,
/// 0 for none: a rank's own standard output is a pipe or a pseudo-terminal of mpirun.
inline constexpr const char* terminal_variable = "RANKTUNE_TERMINAL_COLUMNS";
/// The same for its rows.
inline constexpr const char* rows_variable = "RANKTUNE_TERMINAL_ROWS";

struct Terminal {
    bool interactive = false; ///< a table can be redrawn in place
    bool narrow = false;      ///< lines would wrap, so a table cannot be redrawn in place
    std::size_t rows = 24;    ///< a taller table cannot be redrawn in place
    std::size_t columns = 0;  ///< of the terminal, not of the lines (style.width); 0: unknown
    report::Style style;
};

/// The same for its device ("/dev/pts/3"), whose size can be queried again.
inline constexpr const char* device_variable = "RANKTUNE_TERMINAL";

/// Examines NO_COLOR, TERM=dumb, COLUMNS, the size of the terminal, and LC_ALL/LC_CTYPE/LANG (UTF-8 or not).
[[nodiscard]] Terminal detect_terminal();

/// Environment variables, with values, that describe this terminal to the ranks that this process starts.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> terminal_variables();

/// Queries the size of the terminal again: users resize their windows. COLUMNS still overrides the width of lines.
void measure_again(Terminal& terminal);

} // namespace ranktune::cli
