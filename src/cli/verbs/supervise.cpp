// SPDX-License-Identifier: Apache-2.0
// supervise: runs the launcher of a study, and starts it again when a rank dies.

#include <chrono>
#include <iostream>
#include <utility>

#include "cli/study_input.hpp"
#include "cli/terminal/message.hpp"
#include "cli/verbs/verbs.hpp"
#include "launch/launch_line.hpp"
#include "launch/supervisor.hpp"
#include "process/signals.hpp"
#include "ranktune/base/error.hpp"
#include "report/screens/text.hpp"

namespace ranktune::cli {

int supervise(const SuperviseArguments& arguments, const ParseRun& parse_run) {
    process::block_stop_signals(); // first: job scripts wait for this before they forward a signal
    launch::LaunchLine line = launch::launch_line(arguments.command);
    std::string directory = arguments.directory;
    if (directory.empty()) {
        if (!line.program)
            throw base::UsageError(
                "the command has no `ranktune run STUDY` in it; say with --dir DIR where the study is");
        const RunArguments run = parse_run(line.run_arguments());
        if (run.dry_run) throw base::UsageError("--dry-run starts nothing that could be supervised");
        const StudyInput input = read_study(run.study, run.overrides);
        directory = directory_for(run, input);
        refuse_directory(directory, run.study, input, run.fresh);
    }
    const auto say = [](const std::string& what) {
        std::cerr << "ranktune supervise: " << report::escaped(what) << "\n" << std::flush;
    };
    return or_trouble([&] {
        const auto end =
            launch::supervise(std::move(line), absolute_directory(directory),
                              {arguments.max_restarts, std::chrono::seconds(arguments.launcher_wait_s), say});
        if (!end.words.empty()) std::cerr << error_message(end.words, end.code);
        return end.code;
    });
}

} // namespace ranktune::cli
