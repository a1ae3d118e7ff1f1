// SPDX-License-Identifier: Apache-2.0
// logs: what a trial did and said, or what all of them say, also while they run.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <regex>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>

#include "cli/checks/missing_records.hpp"
#include "cli/study_summary.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/view_verbs.hpp"
#include "ranktune/base/error.hpp"
#include "report/explain/life.hpp"
#include "report/screens/simulated.hpp"
#include "report/screens/text.hpp"
#include "report/view/followed_study.hpp"
#include "report/view/load.hpp"

namespace ranktune::cli {
namespace {

constexpr auto follow_pause = std::chrono::milliseconds(500);

/// Output of a program could hold escape sequences, which a terminal would execute; a file gets it unchanged.
std::string shown(const std::string& text) { return isatty(STDOUT_FILENO) != 0 ? report::escaped(text) : text; }

/// The lines that the logs of a study have got since the last call.
class LogLines {
  public:
    LogLines(const std::string& directory, std::optional<std::regex> only)
        : folder_(std::filesystem::path(directory) / "logs"), only_(std::move(only)) {}

    /// `all`: nobody writes to them any more, so a line without an end is one, too.
    void print(bool all) {
        if (!std::filesystem::is_directory(folder_)) return;
        std::vector<std::filesystem::path> files;
        for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
            std::error_code error; // a FIFO would block for ever
            if (entry.path().extension() == ".log" && entry.is_regular_file(error)) files.push_back(entry.path());
        }
        std::ranges::sort(files);
        for (const auto& file : files) print(file, all);
        std::cout << std::flush;
    }

  private:
    void print(const std::filesystem::path& file, bool all) {
        std::ifstream in(file, std::ios::binary);
        std::streamoff& read = read_[file.filename().string()];
        in.seekg(read);
        for (std::string line; std::getline(in, line);) {
            if (in.eof() && !all) break; // still being written
            read += static_cast<std::streamoff>(line.size()) + 1;
            if (!only_ || std::regex_search(line, *only_))
                std::cout << shown(file.filename().string()) << ": " << shown(line) << "\n";
        }
    }

    std::filesystem::path folder_;
    std::optional<std::regex> only_;
    std::map<std::string, std::streamoff> read_; ///< bytes
};

/// What the journal says of a trial.
void print_life(const tuner::Tuner& tuner, base::TrialId id, const std::string& directory) {
    const bool terminal = isatty(STDOUT_FILENO) != 0;
    const auto& state = tuner.state().trial(id);
    const report::Style style = detect_terminal().style;
    if (const auto mark = report::simulated_text(tuner.state()); !mark.empty())
        std::cout << report::paragraph(mark, style);
    std::cout << report::paragraph(
        fmt::format("trial #{}: {}, iteration {}", id.value(), study::name(state.phase), state.iteration), style);
    for (const auto& line :
         report::life_of(storage::posix_file_system(), directory, id, tuner.spec().objective.metric)) {
        // Wrap lines for a terminal only: in a file they are searched.
        const std::string text = shown(line);
        std::cout << (terminal
                          ? report::prose(text.substr(0, report::label_width), text.substr(report::label_width), style)
                          : text + "\n");
    }
    if (!state.failure.empty()) std::cout << "message: " << shown(study::describe(state.failure)) << "\n";
}

/// Whether nobody writes to the logs any more.
bool is_over(report::FollowedStudy& study, const std::string& directory) {
    try {
        study.refresh();
    } catch (const base::IoError&) { // a network file system that does not answer now
        return false;
    }
    const auto& state = study.tuner().state();
    return state.ended || live_of(state, directory).interrupted;
}

} // namespace

int logs(const LogsArguments& arguments) {
    const std::string& directory = arguments.directory;
    const MissingRecords missing(directory);
    report::FollowedStudy study(storage::posix_file_system(), directory);
    missing.tell(study.journal());
    std::optional<std::regex> only;
    if (!arguments.trial.empty()) {
        const base::TrialId id = report::trial_named(study.tuner().state(), arguments.trial, directory);
        print_life(study.tuner(), id, directory);
        only.emplace(fmt::format(R"((^|[ \[#])(trial=|#){}([ .\]:]|$))", id.value()));
    }
    LogLines lines(directory, std::move(only));
    lines.print(!arguments.follow);
    while (arguments.follow && std::cout) {
        const bool over = is_over(study, directory);
        lines.print(over);
        if (over) break;
        std::this_thread::sleep_for(follow_pause);
    }
    return 0;
}

} // namespace ranktune::cli
