// SPDX-License-Identifier: Apache-2.0
// logs: what a trial did and said, or what all of them say, also while they run.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/checks/missing_records.hpp"
#include "cli/study_summary.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/view_verbs.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/base/utf8.hpp"
#include "report/explain/life.hpp"
#include "report/explain/next_steps.hpp"
#include "report/screens/simulated.hpp"
#include "report/screens/text.hpp"
#include "report/view/followed_study.hpp"
#include "report/view/load.hpp"

namespace ranktune::cli {
namespace {

constexpr auto follow_pause = std::chrono::milliseconds(500);

/// How much of a log a page shows, and how much of the logs of all hosts is searched for it.
constexpr std::size_t most_shown_bytes = std::size_t{64} << 10U;
constexpr std::uint64_t most_searched_bytes = std::uint64_t{32} << 20U;

/// Where lines go.
struct LogOutput {
    std::ostream& out;
    bool screen; ///< it would obey escape sequences in the output of a program; a file gets them unchanged
    bool wraps;
    report::Style style;

    [[nodiscard]] std::string shown(const std::string& text) const { return screen ? report::escaped(text) : text; }
};

LogOutput standard_output() {
    const bool terminal = isatty(STDOUT_FILENO) != 0;
    return {std::cout, terminal, terminal, detect_terminal().style};
}

/// Which lines are of a trial, or of a side task (study::unit_of).
class LinesOf {
  public:
    explicit LinesOf(base::TrialId unit)
        : word_(study::unit_text(unit)), pattern_(fmt::format(R"((^|[ \[#])(trial=|task=|#){}([ .\]:]|$))", word_)) {}
    [[nodiscard]] bool operator()(const std::string& line) const {
        return line.find(word_) != std::string::npos && std::regex_search(line, pattern_);
    }

  private:
    std::string word_; ///< most lines lack it, which is seen in a tenth of the time
    std::regex pattern_;
};

/// The lines that the logs of a study have got since the last call.
class LogLines {
  public:
    using Sink = std::function<void(const std::string& file, const std::string& line)>;

    LogLines(const std::string& directory, std::optional<LinesOf> only, Sink sink)
        : folder_(std::filesystem::path(directory) / "logs"), only_(std::move(only)), sink_(std::move(sink)) {}
    LogLines(const std::string& directory, std::optional<LinesOf> only, const LogOutput& to)
        : LogLines(directory, std::move(only), [&to](const std::string& file, const std::string& line) {
              to.out << to.shown(file) << ": " << to.shown(line) << "\n";
          }) {}

    /// `all`: nobody writes to them any more, so a line without an end is one, too. `newest`: so many bytes, the last
    /// ones of each file.
    void read(bool all, std::uint64_t newest = std::numeric_limits<std::uint64_t>::max()) {
        if (!std::filesystem::is_directory(folder_)) return;
        std::vector<std::filesystem::path> files;
        for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
            std::error_code error; // a FIFO would block for ever
            if (entry.path().extension() == ".log" && entry.is_regular_file(error)) files.push_back(entry.path());
        }
        std::ranges::sort(files);
        for (const auto& file : files) {
            std::error_code error;
            const std::uint64_t size = std::filesystem::file_size(file, error);
            const std::uint64_t part = newest / files.size();
            if (!error && size > part) read_[file.filename().string()] = static_cast<std::streamoff>(size - part);
            read(file, all);
        }
    }

  private:
    void read(const std::filesystem::path& file, bool all) {
        std::ifstream in(file, std::ios::binary);
        std::streamoff& read = read_[file.filename().string()];
        in.seekg(read);
        for (std::string line; std::getline(in, line);) {
            if (in.eof() && !all) break; // still being written
            read += static_cast<std::streamoff>(line.size()) + 1;
            if (!only_ || (*only_)(line)) sink_(file.filename().string(), line);
        }
    }

    std::filesystem::path folder_;
    std::optional<LinesOf> only_;
    Sink sink_;
    std::map<std::string, std::streamoff> read_; ///< bytes
};

/// What the journal says of a trial.
void print_life(const tuner::Tuner& tuner, base::TrialId id, const std::string& directory, const LogOutput& to) {
    const auto& state = tuner.state().trial(id);
    if (const auto mark = report::simulated_text(tuner.state()); !mark.empty())
        to.out << report::paragraph(mark, to.style);
    to.out << report::paragraph(
        fmt::format("trial #{}: {}, iteration {}", id.value(), study::name(state.phase), state.iteration), to.style);
    for (const auto& line :
         report::life_of(storage::posix_file_system(), directory, id, tuner.spec().objective.metric)) {
        // Wrap lines for a terminal only: in a file they are searched.
        const std::string text = to.shown(line);
        to.out << (to.wraps
                       ? report::prose(text.substr(0, report::label_width), text.substr(report::label_width), to.style)
                       : text + "\n");
    }
    if (!state.failure.empty()) to.out << "message: " << to.shown(study::describe(state.failure)) << "\n";
}

/// The task that `word` names, if it names one: "before" or "after".
std::optional<study::SideTask> task_named(const std::string& word) {
    for (const study::SideTask& task :
         {study::SideTask{study::SideTask::Kind::before, {}}, study::SideTask{study::SideTask::Kind::after, {}}})
        if (word == study::describe(task)) return task;
    return std::nullopt;
}

/// The same as `print_life` and LogLines, as one object.
std::string logs_json(const tuner::Tuner& tuner, std::optional<base::TrialId> trial, const std::string& directory) {
    using Json = nlohmann::ordered_json;
    Json json{{"schema", 1}, {"study", base::as_utf8(tuner.spec().name)}, {"trial", nullptr}};
    if (trial && study::side_task_of(*trial)) {
        json["task"] = study::unit_text(*trial);
    } else if (trial) {
        const auto& state = tuner.state().trial(*trial);
        json["trial"] = trial->value();
        json["state"] = study::name(state.phase);
        json["iteration"] = state.iteration;
        json["message"] = base::as_utf8(study::describe(state.failure));
        json["history"] = Json::array();
        for (const auto& line :
             report::life_of(storage::posix_file_system(), directory, *trial, tuner.spec().objective.metric))
            json["history"].push_back(
                {{"at", base::trimmed(std::string_view(line).substr(0, report::label_width))},
                 {"text", base::as_utf8(line.substr(std::min(report::label_width, line.size())))}});
    }
    Json lines = Json::array();
    LogLines(directory, trial ? std::optional<LinesOf>(*trial) : std::nullopt,
             [&lines](const std::string& file, const std::string& line) {
                 lines.push_back({{"file", base::as_utf8(file)}, {"text", base::as_utf8(line)}});
             })
        .read(true);
    json["lines"] = std::move(lines);
    return json.dump(2) + "\n";
}

/// Whether nobody writes to the logs any more.
bool is_over(report::FollowedStudy& study, const std::string& directory) {
    try {
        study.refresh();
    } catch (const base::IoError&) { // a network file system that does not answer now
        return false;
    }
    return study.tuner().state().ended || live_of(study.tuner(), directory).interrupted;
}

} // namespace

int logs(const LogsArguments& arguments) {
    const std::string& directory = arguments.directory;
    const bool json = arguments.format == Format::json;
    if (json && arguments.follow)
        throw base::UsageError("--follow shows lines as they come, and JSON is one object at the end: leave out one");
    const MissingRecords missing(directory);
    report::FollowedStudy study(storage::posix_file_system(), directory);
    missing.tell(study.journal());
    std::optional<base::TrialId> trial;
    if (const auto task = task_named(arguments.trial))
        trial = unit_of(*task);
    else if (!arguments.trial.empty())
        trial = report::trial_named(study.tuner().state(), arguments.trial, directory);
    if (json) {
        std::cout << logs_json(study.tuner(), trial, directory);
        return 0;
    }
    const LogOutput to = standard_output();
    if (trial && !study::side_task_of(*trial)) print_life(study.tuner(), *trial, directory, to);
    LogLines lines(directory, trial ? std::optional<LinesOf>(*trial) : std::nullopt, to);
    lines.read(!arguments.follow);
    while (arguments.follow && std::cout) {
        std::cout << std::flush;
        const bool over = is_over(study, directory);
        lines.read(over);
        if (over) break;
        std::this_thread::sleep_for(follow_pause);
    }
    std::cout << std::flush;
    return 0;
}

std::string log_of(const std::string& directory, base::TrialId trial) {
    const auto study = report::load_state(storage::posix_file_system(), directory);
    const base::TrialId id = report::trial_named(study.tuner->state(), std::to_string(trial.value()), directory);
    std::ostringstream out;
    const LogOutput to{out, true, false, {.width = most_shown_bytes}};
    print_life(*study.tuner, id, directory, to);
    LogLines(directory, LinesOf(id), to).read(true, most_searched_bytes);
    const std::string text = std::move(out).str();
    if (text.size() <= most_shown_bytes) return text;
    const std::size_t cut = text.size() - most_shown_bytes;
    const std::size_t line = text.find('\n', cut);
    return "the last 64 KiB; all of it: " + report::command_text({"logs", directory, std::to_string(id.value())}) +
           "\n" + text.substr(line == std::string::npos ? cut : line + 1);
}

} // namespace ranktune::cli
