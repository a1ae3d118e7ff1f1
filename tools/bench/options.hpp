// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options of algorithms on the command lines of benchmarks.

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "ranktune/study/algorithm.hpp"

namespace ranktune::bench {

/// OPTION=VALUE, where a value that looks like a number or a boolean is one. Throws std::invalid_argument without "=".
inline study::OptionValue option_of(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) throw std::invalid_argument("not OPTION=VALUE: " + text);
    std::string name = text.substr(0, equals);
    const std::string value = text.substr(equals + 1);
    if (value == "true" || value == "false") return {std::move(name), value == "true"};
    char* end = nullptr;
    const long long whole = std::strtoll(value.c_str(), &end, 10);
    if (!value.empty() && *end == '\0') return {std::move(name), static_cast<std::int64_t>(whole)};
    const double number = std::strtod(value.c_str(), &end);
    if (!value.empty() && *end == '\0') return {std::move(name), number};
    return {std::move(name), value};
}

} // namespace ranktune::bench
