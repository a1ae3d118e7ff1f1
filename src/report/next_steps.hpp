// SPDX-License-Identifier: Apache-2.0
#pragma once
// Commands to type next, each with a word on what it does. They are there to be copied: none is ever cut.

#include <string>
#include <string_view>
#include <vector>

#include "report/screens.hpp"

namespace ranktune::report {

struct NextStep {
    std::string command;
    std::string remark;
};
/// Commands below each other, the remarks in line behind them; a remark that does not fit stands below its command.
[[nodiscard]] std::string steps_text(const std::vector<NextStep>& steps, const Style& style);

/// `ranktune <words>`, quoted for a shell.
[[nodiscard]] std::string command_text(std::vector<std::string> words);

/// After a stop that is resumable.
[[nodiscard]] std::vector<NextStep> steps_to_go_on(const std::string& directory);
/// After an end screen. Whatever goes on with a study names its directory, which holds all that was asked for; what
/// begins with a mended study file repeats the command that was typed.
[[nodiscard]] std::vector<NextStep> steps_after(const tuner::Tuner& tuner, const FilesInfo& files);
/// For a study that has nothing more to do.
[[nodiscard]] std::vector<NextStep> steps_of_finished(const tuner::Tuner& tuner, const FilesInfo& files);

} // namespace ranktune::report
