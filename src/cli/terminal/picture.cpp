// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/picture.hpp"

#include <algorithm>
#include <ostream>

namespace ranktune::cli {
namespace {

/// Display width of a line, without its colour escape sequences.
std::size_t shown_width(std::string_view line) {
    std::string text;
    for (std::size_t at = 0; at < line.size();) {
        const auto escape = std::min(line.find('\x1b', at), line.size());
        text += line.substr(at, escape - at);
        const auto end = line.find('m', escape);
        at = end == std::string_view::npos ? line.size() : end + 1;
    }
    return report::display_width(text);
}

} // namespace

std::size_t Picture::rows(const Terminal& terminal) const {
    std::size_t rows = 0;
    for (const std::size_t width : drawn_)
        rows += terminal.columns == 0 ? 1 : std::max<std::size_t>(1, (width + terminal.columns - 1) / terminal.columns);
    return rows;
}

void Picture::draw(std::ostream& out, const Terminal& terminal, const std::string& lines) {
    std::string text;
    if (!drawn_.empty()) text += "\x1b[" + std::to_string(rows(terminal)) + "A";
    drawn_.clear();
    // Clear each line before writing it: clearing after a full-width line would erase its last column. At the end,
    // clear the rest of a taller table.
    for (std::size_t at = 0; at < lines.size();) {
        const std::size_t end = std::min(lines.find('\n', at), lines.size() - 1) + 1;
        const std::string line = lines.substr(at, end - at);
        text += "\x1b[K" + line;
        drawn_.push_back(shown_width(line.substr(0, line.find('\n'))));
        at = end;
    }
    out << text << "\x1b[J" << std::flush;
}

void Picture::erase(std::ostream& out, Terminal& terminal) {
    if (drawn_.empty()) return;
    measure_again(terminal);
    out << "\x1b[" << rows(terminal) << "A\x1b[J" << std::flush;
    drawn_.clear();
}

} // namespace ranktune::cli
