// SPDX-License-Identifier: Apache-2.0
// The command line as a page of the reference.

#include <fmt/format.h>

#include "cli/help/exit_codes.hpp"
#include "cli/manual/manual.hpp"
#include "ranktune/base/text.hpp"
#include "report/explain/reference.hpp"

namespace ranktune::cli {
namespace {

std::string option_table(const std::vector<OptionWords>& options) {
    std::string text = report::table_head({"option", "what it does"});
    for (const OptionWords& option : options) {
        std::string words = option.description;
        if (!option.accepted.empty()) words += " [" + base::join(option.accepted) + "]";
        text += report::table_row({"`" + heading_of(option) + "`", words});
    }
    return text;
}

} // namespace

std::string command_line_page(const CommandLine& line) {
    std::string text = report::page_begin("The command line",
                                          "The same in a terminal: `ranktune --help`, `ranktune VERB --help`, `man "
                                          "ranktune`. Every verb has `--help`. STUDY is a "
                                          "study file, or the directory of a study.");
    text += "\n## Exit codes\n\n" + report::table_head({"code", "in short", "meaning"});
    for (const ExitCode& code : exit_codes)
        text += report::table_row({std::to_string(code.code), code.brief, code.meaning});
    std::string group;
    for (const VerbWords& verb : line.verbs) {
        if (group != verb.group) text += fmt::format("\n## {}\n", verb.group);
        group = verb.group;
        text +=
            fmt::format("\n### `ranktune {}`\n\n{}.\n\n```\n{}\n```\n\n", verb.name, verb.description, verb.usage());
        text += option_table(verb.options);
        if (!verb.footer.empty()) text += fmt::format("\n```\n{}\n```\n", verb.footer);
    }
    return text;
}

} // namespace ranktune::cli
