// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lines that are redrawn in place on a terminal.

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "cli/terminal/terminal.hpp"

namespace ranktune::cli {

class Picture {
  public:
    /// Draws `lines`, each with its line end, over those of the last call. They must fit the terminal's rows.
    void draw(std::ostream& out, const Terminal& terminal, const std::string& lines);
    /// Erases them; measures the terminal again.
    void erase(std::ostream& out, Terminal& terminal);

  private:
    /// Rows that the lines take at the terminal's current width, where longer lines wrap.
    [[nodiscard]] std::size_t rows(const Terminal& terminal) const;

    std::vector<std::size_t> drawn_; ///< width in columns of each line
};

} // namespace ranktune::cli
