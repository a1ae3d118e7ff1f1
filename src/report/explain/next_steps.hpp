// SPDX-License-Identifier: Apache-2.0
#pragma once
// Commands to type next, each with a remark. They are meant to be copied, so they are never cut.

#include <string>
#include <string_view>
#include <vector>

#include "report/screens/screens.hpp"

namespace ranktune::report {

struct NextStep {
    std::string command;
    std::string remark;
    bool runs = false; ///< the command runs the study
};
/// One command per line, with aligned remarks after them; a remark that does not fit stands below its command.
[[nodiscard]] std::string steps_text(const std::vector<NextStep>& steps, const Style& style);

/// `ranktune <words>`, quoted for a shell: what a user is told to type. A program with algorithms or trainables of its
/// own, which knows its studies better, has another name.
[[nodiscard]] std::string command_text(std::vector<std::string> words);
/// Names this program in commands from now on: once, before threads begin.
void name_program(std::string name);

/// The command that goes on with the study in a directory (studydir::command_that_goes_on), to be typed.
[[nodiscard]] std::string going_on(const std::string& directory, const std::vector<std::string>& overrides = {});
/// After a resumable stop.
[[nodiscard]] std::vector<NextStep> steps_to_go_on(const std::string& directory);
/// For the end screen. Commands that go on with the study name its directory, which holds all its settings; commands
/// for a mended study file repeat the command that was typed.
[[nodiscard]] std::vector<NextStep> steps_after(const tuner::Tuner& tuner, const FilesInfo& files);
/// For a study that has nothing more to do.
[[nodiscard]] std::vector<NextStep> steps_of_finished(const tuner::Tuner& tuner, const FilesInfo& files);

} // namespace ranktune::report
