// SPDX-License-Identifier: Apache-2.0
#include "cli/manual/command_line.hpp"

#include "ranktune/base/text.hpp"

namespace ranktune::cli {

std::string VerbWords::usage() const {
    std::string text = "ranktune " + name + " [OPTIONS]";
    for (const OptionWords& option : options) {
        if (!option.is_argument()) continue;
        const std::string word = heading_of(option);
        text += option.required ? " " + word : " [" + word + "]";
    }
    return text;
}

ValueKind kind_of(const OptionWords& option) {
    if (!option.accepted.empty()) return ValueKind::word;
    if (option.value == "STUDY") return ValueKind::study;
    if (option.value == "DIR") return ValueKind::directory;
    if (option.value == "FILE" || option.value == "PATH") return ValueKind::file;
    if (option.value == "OVERRIDE" || option.value.starts_with("KEY")) return ValueKind::key;
    return option.value == "TRIAL" ? ValueKind::trial : ValueKind::other;
}

std::string heading_of(const OptionWords& option) {
    if (option.is_argument()) return option.value + (option.repeated ? "..." : "");
    return base::join(option.names, ",") + (option.is_flag() ? "" : " " + option.value);
}

} // namespace ranktune::cli
