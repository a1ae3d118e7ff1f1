// SPDX-License-Identifier: Apache-2.0
#include "head/external/program.hpp"

#include <algorithm>

#include "process/environment.hpp"
#include "process/program/environment.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"

namespace ranktune::head {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds grace{1};                     // between TERM and KILL
constexpr std::size_t most_unsent = std::size_t{256} << 10U; // below the limit of Child::send

/// The time of an answer is over.
struct Overdue {};

/// The program speaks through its standard streams; Child has a socket at descriptor 3.
std::string with_streams(const std::string& command) { return "exec 0<&3 1>&3 3>&-\n" + command; }

/// The last line that is not blank: there is the exception of a Python program. The log has all lines.
std::string last_line(std::string_view text) {
    text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    return std::string(text.substr(text.rfind('\n') + 1));
}

} // namespace

std::vector<std::string> program_environment(const std::string& study_directory) {
    std::vector<std::string> environment = process::environment_entries();
    std::erase_if(environment, [](const std::string& entry) {
        const std::size_t equals = std::min(entry.find('='), entry.size());
        const std::string_view name = std::string_view(entry).substr(0, equals);
        const auto value = std::string_view(entry).substr(std::min(equals + 1, entry.size()));
        return name == "RANKTUNE_STUDY_DIR" || process::is_launcher_variable(name, value);
    });
    environment.push_back("RANKTUNE_STUDY_DIR=" + study_directory);
    return environment;
}

space::Configuration SearchProgram::answer(const searchers::ExternalQuestion& question) {
    try {
        return converse(question);
    } catch (const base::Error& error) {
        const std::string words = child_ ? last_line(child_->last_words()) : std::string();
        child_.reset();
        throw base::Error("the program '" + question.setting->command + "' " + error.what() +
                          (words.empty() ? "" : "; it said: " + words));
    }
}

space::Configuration SearchProgram::converse(const searchers::ExternalQuestion& question) {
    const searchers::ExternalSetting& setting = *question.setting;
    const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(setting.timeout);
    try {
        if (!child_) start(setting);
        for (; told_ < question.seen.size(); ++told_) send(teller_.next(question, told_), end);
        send(ask_line(question.ticket), end);
        return read_answer(wait_for_line(end), question.ticket, setting.space);
    } catch (const Overdue&) {
        throw base::Error("gave no answer within " + study::duration_text(setting.timeout) + " (searcher.timeout)");
    }
}

void SearchProgram::start(const searchers::ExternalSetting& setting) {
    teller_ = {};
    told_ = 0;
    try {
        child_.emplace(std::vector<std::string>{"/bin/sh", "-c", with_streams(setting.command)}, environment_,
                       setting.directory, say_, grace);
    } catch (const base::Error& error) {
        throw base::Error(std::string("cannot be started: ") + error.what());
    }
    child_->send(study_line(setting));
}

void SearchProgram::send(const std::string& line, Clock::time_point end) {
    while (child_->unsent() > most_unsent) wait_until(end);
    child_->send(line);
}

std::string SearchProgram::wait_for_line(Clock::time_point end) {
    for (;;) {
        try {
            if (auto line = child_->next_line()) return *line;
        } catch (const base::FormatError& error) {
            throw base::Error(std::string("wrote ") + error.what());
        }
        wait_until(end);
    }
}

void SearchProgram::wait_until(Clock::time_point end) {
    if (child_->exited()) throw base::Error("ended (" + child_->exited()->text() + ") instead of answering");
    if (called_off_()) throw base::Error("was not needed any more");
    const Clock::time_point now = Clock::now();
    if (now >= end) throw Overdue{};
    child_->wait(std::min<Clock::duration>(end - now, 100ms));
}

} // namespace ranktune::head
