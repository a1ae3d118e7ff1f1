// SPDX-License-Identifier: Apache-2.0
#pragma once
// What standard output is: a terminal of so many columns, or a file.

#include <string>
#include <utility>
#include <vector>

#include "report/text.hpp"

namespace ranktune::cli {

/// Name of the variable by which a `ranktune run` that starts mpirun tells its ranks what the real terminal is: a
/// rank's own standard output is a pipe or a pseudo-terminal of mpirun's. Value: columns, or 0 for no terminal.
inline constexpr const char* terminal_variable = "RANKTUNE_TERMINAL_COLUMNS";
/// The same for its lines.
inline constexpr const char* rows_variable = "RANKTUNE_TERMINAL_ROWS";

struct Terminal {
    bool interactive = false; ///< lines may be drawn over
    bool narrow = false;      ///< lines are longer than its width, and would be wrapped: nothing can be drawn over
    std::size_t rows = 24;    ///< what is taller cannot be drawn over
    std::size_t columns = 0;  ///< that it has, whatever width the lines are made for; 0: not known
    report::Style style;
};

/// Its device ("/dev/pts/3"), to be asked for its size again; empty: not known.
inline constexpr const char* device_variable = "RANKTUNE_TERMINAL";

/// Respects NO_COLOR, TERM=dumb, COLUMNS, the size of the terminal, and LC_ALL/LC_CTYPE/LANG (UTF-8 or not).
[[nodiscard]] Terminal detect_terminal();

/// What ranks that this process starts are told of its terminal: variables and their values.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> terminal_variables();

/// Takes over the size that the terminal has now, if it can be asked: people resize their windows. Does nothing where
/// COLUMNS says what to use.
void measure_again(Terminal& terminal);

} // namespace ranktune::cli
