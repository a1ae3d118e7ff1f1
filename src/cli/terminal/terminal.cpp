// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/terminal.hpp"
#include "process/environment.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace ranktune::cli {

namespace {

int columns_of_terminal() {
    if (const std::string told = process::environment_variable(terminal_variable); !told.empty())
        return std::atoi(told.c_str());
    if (isatty(STDOUT_FILENO) == 0) return 0;
    // A launcher's pseudo-terminal has no size; count it as no terminal.
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
    return size.ws_col;
}

std::size_t rows_of_terminal() {
    int rows = std::atoi(process::environment_variable(rows_variable).c_str());
    winsize size{};
    if (rows <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) rows = size.ws_row;
    return rows > 0 ? static_cast<std::size_t>(rows) : 24;
}

constexpr int fewest_columns = 20;

// The tables are made for 80 columns; narrower terminals get fewer columns, wider ones lines of at most 120.
std::size_t line_width(int columns) {
    return columns > 0 ? static_cast<std::size_t>(std::clamp(columns, fewest_columns, 120)) : 80;
}

bool is_narrow(int columns) { return columns > 0 && columns < fewest_columns; }

bool utf8_locale() {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        std::string value = process::environment_variable(name);
        if (value.empty()) continue;
        std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::tolower(c); });
        return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
    }
    return false;
}

} // namespace

Terminal detect_terminal() {
    Terminal terminal;
    const int columns = columns_of_terminal();
    const bool dumb = process::environment_variable("TERM") == "dumb";
    terminal.narrow = is_narrow(columns);
    terminal.interactive = columns > 0 && !dumb && !terminal.narrow;
    terminal.rows = rows_of_terminal();
    terminal.columns = static_cast<std::size_t>(std::max(columns, 0));
    terminal.style.colour = terminal.interactive && process::environment_variable("NO_COLOR").empty();
    terminal.style.utf8 = utf8_locale();
    const int wanted = std::atoi(process::environment_variable("COLUMNS").c_str());
    terminal.style.width = line_width(wanted > 0 ? wanted : columns);
    return terminal;
}

void measure_again(Terminal& terminal) {
    const std::string device = process::environment_variable(device_variable);
    const int fd = device.empty() ? STDOUT_FILENO : open(device.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC);
    winsize size{};
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        terminal.narrow = is_narrow(size.ws_col);
        terminal.columns = size.ws_col;
        if (std::atoi(process::environment_variable("COLUMNS").c_str()) <= 0)
            terminal.style.width = line_width(size.ws_col);
        if (size.ws_row > 0) terminal.rows = size.ws_row;
    }
    if (fd > STDERR_FILENO) close(fd);
}

std::vector<std::pair<std::string, std::string>> terminal_variables() {
    const Terminal terminal = detect_terminal();
    std::vector<std::pair<std::string, std::string>> variables{
        {terminal_variable, terminal.interactive ? std::to_string(terminal.style.width) : "0"},
        {rows_variable, std::to_string(terminal.rows)}};
    char device[256] = {};
    if (terminal.interactive && ttyname_r(STDOUT_FILENO, device, sizeof device) == 0)
        variables.emplace_back(device_variable, device);
    return variables;
}

} // namespace ranktune::cli
