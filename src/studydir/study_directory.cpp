// SPDX-License-Identifier: Apache-2.0
#include "studydir/study_directory.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <span>
#include <sstream>
#include <utility>

#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "studydir/log_file.hpp"
#include "trainables/program/python_module.hpp"

namespace ranktune::studydir {

std::string start_name(const std::string& slurm_job, std::uint32_t incarnation) {
    return (slurm_job.empty() ? "" : "job-" + slurm_job + "-") + "start-" + std::to_string(incarnation);
}

namespace {

constexpr std::array<std::pair<EndCause, std::string_view>, 7> cause_names{{{EndCause::over, "over"},
                                                                            {EndCause::asked, "asked"},
                                                                            {EndCause::storage, "storage"},
                                                                            {EndCause::trials, "trials"},
                                                                            {EndCause::ranks, "ranks"},
                                                                            {EndCause::error, "error"},
                                                                            {EndCause::stalled, "stalled"}}};

EndCause cause_named(std::string_view word) {
    for (const auto& [cause, text] : cause_names)
        if (text == word) return cause;
    return EndCause::error;
}

constexpr std::array<std::string_view, 3> requeue_names{"no", "yes", "failed"};

Requeue requeue_named(std::string_view word) {
    const auto found = std::ranges::find(requeue_names, word);
    return found == requeue_names.end() ? Requeue::no : static_cast<Requeue>(found - requeue_names.begin());
}

} // namespace

std::string_view name(EndCause cause) { return cause_names.at(static_cast<std::size_t>(cause)).second; }

std::string_view name(Requeue requeue) { return requeue_names.at(static_cast<std::size_t>(requeue)); }

EndCause end_cause(study::StudyOutcome outcome, study::Reason reason) {
    if (reason == study::Reason::after_failed) return EndCause::over; // its next start is for users to decide
    if (outcome == study::StudyOutcome::runtime_error)
        return reason == study::Reason::lost ? EndCause::ranks : EndCause::error;
    if (outcome != study::StudyOutcome::resumable) return EndCause::over;
    switch (reason) {
        case study::Reason::unsaved:
        case study::Reason::unreachable:
        case study::Reason::unstarted:
            return EndCause::storage;
        case study::Reason::failures_in_a_row:
            return EndCause::trials;
        case study::Reason::no_ranks:
            return EndCause::ranks;
        case study::Reason::lost: // all ranks at once, because the head was silent (HeadMachine::desertion)
            return EndCause::stalled;
        default:
            return EndCause::asked;
    }
}

std::string outcome_text(const OutcomeFile& outcome) {
    const std::string reason = base::gist(outcome.reason); // one line; the log and the journal have the full text
    const bool resumable = outcome.outcome == study::StudyOutcome::resumable;
    std::string text;
    text += "exit=" + std::to_string(static_cast<int>(outcome.outcome)) + "\n";
    text += "reason=" + reason + "\n";
    text += std::string("resumable=") + (resumable ? "true" : "false") + "\n";
    text += std::string("progress=") + (outcome.progress ? "true" : "false") + "\n";
    text += "reports=" + std::to_string(outcome.reports) + "\n";
    text += "start=" + std::to_string(outcome.start) + "\n";
    if (outcome.records > 0) text += "records=" + std::to_string(outcome.records) + "\n";
    text += "cause=" + std::string(name(outcome.cause)) + "\n";
    if (outcome.by != study::Asker::none) text += "asked_by=" + std::string(study::name(outcome.by)) + "\n";
    text += "time=" + outcome.time + "\n";
    text += "requeue=" + std::string(name(outcome.requeue)) + "\n";
    if (!outcome.tables.empty()) text += "tables=" + base::gist(outcome.tables) + "\n";
    if (!outcome.launch.empty()) text += "launch=" + outcome.launch + "\n";
    return text;
}

void publish_outcome(storage::FileSystem& files, const StudyDirectory& directory, const OutcomeFile& outcome,
                     base::LogSink& log) noexcept {
    const std::string text = outcome_text(outcome);
    const std::string path = directory.outcome_file();
    const std::string reserve = directory.outcome_reserve();
    try {
        publish_text(files, path, text, true);
    } catch (const std::exception& error) {
        log.write(base::LogLevel::warning, "outcome", {{"error", error.what()}, {"instead", "in its reserve"}});
        try {
            if (files.exists(reserve)) {
                storage::overwrite(files, reserve, text);
                files.rename(reserve, path);
            } else {
                storage::overwrite(files, path, text); // the reserve was renamed to it earlier
            }
        } catch (const std::exception& again) {
            log.write(base::LogLevel::error, "outcome", {{"error", again.what()}});
        }
    }
}

std::optional<OutcomeFile> parse_outcome(const std::string& text) {
    OutcomeFile found;
    bool complete = false;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        const auto at = line.find('=');
        if (at == std::string::npos) continue;
        const std::string key = line.substr(0, at);
        const std::string value = line.substr(at + 1);
        if (key == "exit") {
            found.outcome = static_cast<study::StudyOutcome>(std::atoi(value.c_str()));
            complete = true;
        } else if (key == "reason") {
            found.reason = value;
        } else if (key == "progress") {
            found.progress = value == "true";
        } else if (key == "reports") {
            found.reports = std::strtoull(value.c_str(), nullptr, 10);
        } else if (key == "start") {
            found.start = static_cast<std::uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
        } else if (key == "records") {
            found.records = std::strtoull(value.c_str(), nullptr, 10);
        } else if (key == "cause") {
            found.cause = cause_named(value);
        } else if (key == "asked_by") {
            found.by = study::asker_named(value).value_or(study::Asker::none);
        } else if (key == "time") {
            found.time = value;
        } else if (key == "requeue") {
            found.requeue = requeue_named(value);
        } else if (key == "launch") {
            found.launch = value;
        } else if (key == "tables") {
            found.tables = value;
        }
    }
    return complete ? std::optional(found) : std::nullopt;
}

std::optional<OutcomeFile> read_outcome(storage::FileSystem& files, const StudyDirectory& directory) {
    try {
        if (!files.exists(directory.outcome_file())) return std::nullopt;
        return parse_outcome(storage::read_text(files, directory.outcome_file()));
    } catch (const base::IoError& error) {
        if (error.code() == storage::not_a_file()) throw; // no head wrote this: nobody knows how the study ended
        return std::nullopt;
    }
}

void ask_to_stop(storage::FileSystem& files, const StudyDirectory& directory, study::Asker who) {
    publish_text(files, directory.stop_file(),
                 std::string(study::name(who)) + ", from " + process::host_name() + " at " + wall_time_now() + "\n",
                 false);
}

std::optional<study::Asker> take_stop_request(storage::FileSystem& files, const std::string& stop_file) {
    if (!files.exists(stop_file)) return std::nullopt;
    const std::string text = storage::read_text(files, stop_file);
    files.remove(stop_file);
    const std::string_view who = std::string_view(text).substr(0, text.find(','));
    return study::asker_named(who) == study::Asker::keyboard ? study::Asker::keyboard : study::Asker::verb;
}

void create_study_directory(storage::FileSystem& files, const StudyDirectory& directory, const std::string& study,
                            bool is_new) {
    files.make_directories(directory.path);
    files.make_directories(directory.checkpoints());
    files.make_directories(directory.logs());
    if (study.empty()) return;
    const std::string path = directory.study_file();
    if (is_new && files.exists(path) && storage::read_text(files, path) != study)
        files.rename(path, storage::free_name(files, path));
    publish_text(files, path, study, true);
}

std::vector<std::string> command_that_goes_on(storage::FileSystem& files, const StudyDirectory& directory,
                                              const std::string& program) {
    return {program, files.exists(directory.job_list()) ? "submit" : "run", directory.path};
}

bool is_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string foreign_entry(storage::FileSystem& files, const StudyDirectory& directory) {
    // Leftovers of starts that were killed before their first record.
    const auto is_own = [](const std::string& name) {
        if (name.starts_with(".") || name == "lost+found" || name.starts_with("lease")) return true;
        if (name.ends_with(".tmp") || name.starts_with("study.toml")) return true;
        static const std::set<std::string> own{"logs",    "submit",      "stop",     "python",
                                               "journal", "checkpoints", "attempts", "control"};
        return own.contains(name);
    };
    for (const std::string& name : files.list(directory.path))
        if (!is_own(name)) return name;
    // A later start removes unknown entries of these folders. (Empty folders of trials are allowed.)
    for (const std::string& name : files.list(directory.checkpoints()))
        if (!is_number(name) || !files.list(directory.checkpoints() + "/" + name).empty()) return "checkpoints/" + name;
    for (const std::string& name : files.list(directory.attempts())) return "attempts/" + name;
    for (const std::string& name : files.list(directory.python()))
        if (!name.starts_with("ranktune") && name != "__pycache__") return "python/" + name;
    for (const std::string& name : files.list(directory.path + "/journal"))
        if (!name.ends_with(".tmp")) return "journal/" + name;
    return {};
}

std::string trace_of_a_journal(storage::FileSystem& files, const StudyDirectory& directory) {
    for (const std::string& path :
         {directory.resolved_file(), directory.outcome_file(), directory.metrics_file(), directory.status_file()})
        if (files.exists(path)) return path.substr(directory.path.size() + 1);
    return {};
}

std::string without_journal(storage::FileSystem& files, const StudyDirectory& directory) {
    const std::string trace = trace_of_a_journal(files, directory);
    if (trace.empty()) return {};
    return "'" + directory.path + "' holds a study (there is '" + trace +
           "') whose journal is gone: restore the folder 'journal' from a backup or a snapshot of the file system. Or "
           "begin again with the study file: --fresh moves the old directory aside, -o takes another one";
}

void publish_python_module(storage::FileSystem& files, const StudyDirectory& directory) {
    files.make_directories(directory.python());
    files.publish(directory.python_module(), trainables::python_module(), false);
    files.publish(directory.python_function(), trainables::python_function(), false);
    files.publish(directory.python() + "/ranktune_data.py", trainables::python_data(), false);
    files.publish(directory.python() + "/ranktune_files.py", trainables::python_files(), false);
    files.publish(directory.python() + "/ranktune_order.py", trainables::python_order(), false);
    files.publish(directory.python() + "/ranktune_tasks.py", trainables::python_tasks(), false);
    files.publish(directory.python() + "/ranktune_torch.py", trainables::python_torch(), false);
}

void publish_text(storage::FileSystem& files, const std::string& path, const std::string& text, bool sync) {
    files.publish(path, std::as_bytes(std::span(text)), sync);
}

} // namespace ranktune::studydir
