// SPDX-License-Identifier: Apache-2.0
#include "launch/job_chain.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>

#include "process/command_output.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "storage/file_system.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::launch {
namespace {

using namespace std::chrono_literals;

constexpr auto controller_patience = 120s; // for a controller under load
constexpr auto queue_patience = 40s;       // asked up to three times

/// In the list of jobs: those above it were there when a person asked for a stop, those below came after.
constexpr std::string_view stop_mark = "stop";

/// The program's own error message.
std::string complaint(const process::CommandOutput& done) {
    if (!done.error.empty()) return done.error;
    if (!done.text.empty()) return done.text;
    return done.exit ? fmt::format("it ended with {} and no message", *done.exit) : std::string("it was killed");
}

/// Throws if the list exists and cannot be read: that is not an empty list.
std::string list_text(const std::string& directory) {
    auto& files = storage::posix_file_system();
    if (!files.exists(studydir::StudyDirectory{directory}.job_list())) return {};
    return storage::read_text(files, studydir::StudyDirectory{directory}.job_list());
}

/// The lines of the list.
std::vector<std::string> list_lines(const std::string& directory) {
    std::vector<std::string> lines;
    std::istringstream list(list_text(directory));
    for (std::string line; std::getline(list, line);)
        if (!line.empty()) lines.push_back(line);
    return lines;
}

void write_list(const std::string& directory, const std::vector<std::string>& lines) {
    std::string text;
    for (const auto& line : lines) text += line + "\n";
    studydir::publish_text(storage::posix_file_system(), studydir::StudyDirectory{directory}.job_list(), text, false);
}

/// One line per job of this user: its name (1200_7 for an array's task), the job id in its environment, its state.
process::CommandOutput ask_queue() {
    const std::vector<std::string> words{"squeue", "--noheader", "--user=" + std::to_string(geteuid()),
                                         "--format=%i %A %T"};
    auto queue = process::run_command(words, queue_patience);
    // A restarting or busy controller answers a little later.
    for (const auto pause : {1s, 3s}) {
        if (queue.ok() || !queue.started()) break;
        std::this_thread::sleep_for(pause);
        queue = process::run_command(words, queue_patience);
    }
    return queue;
}

/// Submits the script and returns the job's id.
std::string submit_one(const std::string& file, const std::string& after) {
    std::vector<std::string> words{"sbatch", "--parsable", "--chdir=" + std::filesystem::current_path().string()};
    if (!after.empty()) words.push_back("--dependency=afterany:" + after);
    words.push_back(file);
    const auto done = process::run_command(words, controller_patience);
    if (!done.exit && done.started())
        throw base::UsageError("sbatch did not end normally: " + complaint(done) +
                               "; check with squeue whether it took the job before you submit again\n  script  " +
                               file);
    if (!done.ok()) throw base::UsageError("sbatch refused the job: " + complaint(done) + "\n  script  " + file);
    std::string id = done.text.substr(0, done.text.find_first_of(";\n"));
    if (id.empty()) throw base::UsageError("sbatch gave no job number: " + complaint(done) + "\n  script  " + file);
    return id;
}

} // namespace

std::vector<std::string> noted_jobs(const std::string& directory) {
    std::vector<std::string> known = list_lines(directory);
    std::erase(known, stop_mark);
    return known;
}

void note_stop(const std::string& directory) {
    std::vector<std::string> lines = noted_jobs(directory);
    if (lines.empty()) return;
    lines.emplace_back(stop_mark);
    write_list(directory, lines);
}

QueuedJobs queued_jobs(const std::vector<std::string>& jobs) {
    const auto queue = ask_queue();
    QueuedJobs found;
    if (!queue.ok()) {
        found.trouble = complaint(queue);
        return found;
    }
    std::istringstream lines(queue.text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string id, number, state;
        words >> id >> number >> state;
        const auto is_meant = [&](const std::string& job) { return job == id || job == number; };
        if (std::ranges::none_of(jobs, is_meant)) continue;
        std::ranges::transform(state, state.begin(),
                               [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        found.ids.push_back(id);
        found.states.push_back(state.empty() ? "there" : state);
    }
    return found;
}

std::vector<std::string> jobs_after_stop(const std::string& directory) {
    std::vector<std::string> lines = list_lines(directory);
    const auto mark = std::ranges::find(lines, stop_mark);
    if (mark == lines.end()) return {};
    lines.erase(lines.begin(), mark + 1);
    return lines;
}

std::vector<std::string> living_jobs(const std::string& directory) {
    std::vector<std::string> known = noted_jobs(directory);
    if (known.empty()) return {};
    const QueuedJobs queue = queued_jobs(known);
    if (!queue.trouble.empty())
        throw base::UsageError(fmt::format(
            "squeue does not say which of this study's jobs still wait or run ({}), so nothing was submitted\n"
            "  submitted  {}\n"
            "  next       the same line again when squeue answers; or, if none of them is left: rm {}",
            queue.trouble, base::join(known), studydir::StudyDirectory{directory}.job_list()));
    std::erase_if(known, [&](const std::string& id) { return std::ranges::find(queue.ids, id) == queue.ids.end(); });
    return known;
}

std::vector<std::string> submit_chain(const std::string& directory, const std::string& file,
                                      const std::vector<std::string>& before, std::uint32_t count) {
    std::vector<std::string> submitted;
    std::vector<std::string> list = list_lines(directory);
    std::erase_if(list, [&](const std::string& line) {
        return line != stop_mark && std::ranges::find(before, line) == before.end();
    });
    while (!list.empty() && list.front() == stop_mark) list.erase(list.begin()); // of jobs that are over
    std::string last = before.empty() ? "" : before.back();
    try {
        while (submitted.size() < count) {
            last = submit_one(file, last);
            submitted.push_back(last);
            list.push_back(last);
            write_list(directory, list); // the job may already run
        }
    } catch (const std::exception& error) {
        if (submitted.empty()) throw;
        throw base::UsageError(
            fmt::format("{}\n"
                        "  submitted  {} of {} jobs: {}\n"
                        "  next       they wait or run, one after the other; scancel {}\n"
                        "             ends them, the same line again adds jobs behind them",
                        error.what(), submitted.size(), count, base::join(submitted), base::join(submitted, " ")));
    }
    return submitted;
}

} // namespace ranktune::launch
