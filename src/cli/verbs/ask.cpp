// SPDX-License-Identifier: Apache-2.0
// ask: a study without MPI, whose trials somebody else runs.

#include <algorithm>
#include <csignal>

#include <pthread.h>
#include <unistd.h>

#include "cli/study_input.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/version.hpp"
#include "head/asktell/serve_asks.hpp"
#include "process/signals.hpp"
#include "ranktune/trainables/algorithms.hpp"
#include "storage/journal/journal.hpp"
#include "study/steering_file.hpp"
#include "studydir/earlier/earlier_results.hpp"

namespace ranktune::cli {

int ask(const RunArguments& arguments) {
    process::block_stop_signals();
    sigset_t pipe; // a reader that has ended is seen by the write
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    StudyInput input = read_study(arguments.study, arguments.overrides);
    const std::string directory = directory_for(arguments, input);
    refuse_directory(directory, arguments.study, input, false);
    head::RunOptions options;
    options.version = version();
    options.build_type = build_type();
    if (!storage::has_journal(storage::posix_file_system(), directory)) // otherwise the journal has them
        options.earlier =
            studydir::read_earlier_results(storage::posix_file_system(), input.spec, trainables::known_algorithms());
    const auto sets_places = [](const auto& text) { return study::key_of(text) == "study.max_concurrent"; };
    if (!input.directory.empty() && std::ranges::none_of(arguments.overrides, sets_places))
        input.spec.max_concurrent = 0; // the directory's own is that of an earlier loop
    options.spec = std::move(input.spec);
    if (input.directory != directory) options.study_text = std::move(input.text);
    options.directory = absolute_directory(directory);
    return head::serve_asks(std::move(options), STDIN_FILENO, STDOUT_FILENO, static_cast<std::uint64_t>(getppid()));
}

} // namespace ranktune::cli
