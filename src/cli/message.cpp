// SPDX-License-Identifier: Apache-2.0
#include "cli/message.hpp"

namespace ranktune::cli {

std::string error_message(std::string_view what, int exit_code) {
    const std::size_t end = what.find('\n');
    std::string text = "ranktune: " + std::string(what.substr(0, end)) + " (exit " + std::to_string(exit_code) + ")";
    if (end != std::string_view::npos) text += what.substr(end);
    if (text.back() != '\n') text += '\n';
    return text;
}

} // namespace ranktune::cli
