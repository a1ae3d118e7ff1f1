// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/message.hpp"

#include <iostream>

#include "report/screens/text.hpp"
#include "studydir/enter.hpp"

namespace ranktune::cli {

std::string error_message(std::string_view words, int exit_code) {
    // Names from a study file or the command line could move the cursor of a terminal, or worse.
    const std::string what = report::escaped(words);
    const std::size_t end = what.find('\n');
    std::string text = "ranktune: " + std::string(what.substr(0, end)) + " (exit " + std::to_string(exit_code) + ")";
    if (end != std::string::npos) text += what.substr(end);
    if (text.back() != '\n') text += '\n';
    return text;
}

int tell_trouble(const base::IoError& error) {
    const auto trouble = studydir::early_trouble(error);
    const int code = static_cast<int>(trouble.outcome);
    std::cerr << error_message(trouble.words, code) << std::flush;
    return code;
}

} // namespace ranktune::cli
