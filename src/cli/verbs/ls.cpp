// SPDX-License-Identifier: Apache-2.0
// ls: the studies of folders. A small file that the head leaves is enough for most of them; the journal is read where
// it is not.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "cli/checks/missing_records.hpp"
#include "cli/study_summary.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/view_verbs.hpp"
#include "process/program/json_input.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "report/explain/next_steps.hpp"
#include "report/screens/study_list.hpp"
#include "report/view/load.hpp"
#include "report/view/wall_time.hpp"
#include "storage/journal/lease.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::cli {
namespace {

using report::ListedState;
using report::ListedStudy;

/// The facts in the file `status`, which the head writes about once a second and at its end. Nothing when there is no
/// such file, or another version wrote it.
std::optional<ListedStudy> from_status(storage::FileSystem& files, const std::string& directory, bool is_run) {
    try {
        const studydir::StudyDirectory place{directory};
        if (!files.exists(place.status_file())) return std::nullopt;
        const auto status =
            process::read_json(storage::read_text(files, place.status_file(), studydir::most_status_bytes));
        ListedStudy study;
        study.directory = directory;
        study.name = status.at("study").get<std::string>();
        study.num_trials = status.at("num_trials").get<std::uint64_t>();
        study.metric = status.at("metric").get<std::string>();
        study.metrics = status.value("metrics", study.metric);
        study.front = status.value("front", std::uint64_t{0});
        if (status.contains("nearest")) study.nearest = status["nearest"].get<std::uint64_t>();
        study.mode = status.at("mode").get<std::string>() == "max" ? study::Mode::max : study::Mode::min;
        study.trials = status.at("trials").get<std::uint64_t>();
        const auto& phases = status.at("phases");
        for (const char* phase : {"paused", "finished", "stopped", "failed"})
            study.done += phases.at(phase).get<std::uint64_t>();
        if (status.contains("best") && status["best"].at("value").is_number())
            study.best = {status["best"].at("trial").get<std::uint64_t>(), status["best"].at("value").get<double>()};
        study.newest = report::unix_seconds(status.at("time").get<std::string>());
        study.state = ListedState::running;
        if (storage::newest_start(files, directory) < status.at("start").get<std::uint32_t>()) return std::nullopt;
        if (is_run) return study;
        // If its head was killed, the file may be older than the journal.
        const auto outcome = studydir::read_outcome(files, place);
        const bool same_start = outcome && outcome->start == status.at("start").get<std::uint32_t>();
        if (!status.at("ended").get<bool>() || !same_start) return std::nullopt;
        study.state = report::state_after(outcome->outcome);
        study.exit_code = static_cast<int>(outcome->outcome);
        return study;
    } catch (const nlohmann::json::exception&) { // from another version
    } catch (const base::Error&) {               // unreadable, or not JSON; or the journal is, which is read then
    }
    return std::nullopt;
}

/// The facts in the newest snapshot of the journal and the records behind it.
ListedStudy from_journal(const std::string& directory, bool is_run) {
    const MissingRecords missing(directory);
    const report::LoadedStudy loaded = report::load_state(storage::posix_file_system(), directory);
    ListedStudy study = report::listed(*loaded.tuner, directory);
    study.problem = missing.words(loaded.journal);
    if (loaded.tuner->state().ended) return study;
    study.state = is_run ? ListedState::running : ListedState::interrupted;
    if (const auto outcome = standing_of(loaded.tuner->state(), directory).outcome) {
        study.state = report::state_after(outcome->outcome);
        study.exit_code = static_cast<int>(outcome->outcome);
    }
    return study;
}

ListedStudy listed_study(storage::FileSystem& files, const std::string& directory) {
    try {
        const bool is_run = storage::possible_writer(files, directory).has_value();
        if (auto study = from_status(files, directory, is_run)) return *std::move(study);
        return from_journal(directory, is_run);
    } catch (const base::Error& error) {
        ListedStudy study;
        study.directory = directory;
        study.name = std::filesystem::path(directory).filename().string();
        study.state = ListedState::unreadable;
        study.problem = error.what();
        return study;
    }
}

} // namespace

std::vector<std::string> studies_in(const std::string& folder, std::vector<std::string>* closed) {
    auto& files = storage::posix_file_system();
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error))
        throw base::UsageError("'" + folder + "' is not a folder; give a folder with studies in it, or a study");
    const auto is_study = [&](const std::string& path) {
        return storage::has_journal(files, path) || files.exists(studydir::StudyDirectory{path}.resolved_file());
    };
    if (is_study(folder)) return {folder};
    std::vector<std::string> found;
    for (const std::string& name : files.list(folder)) {
        const std::string path = folder == "." ? name : (std::filesystem::path(folder) / name).string();
        try {
            if (std::filesystem::is_directory(path, error) && is_study(path)) found.push_back(path);
        } catch (const base::IoError&) { // another user's
            if (closed != nullptr) closed->push_back(path);
        }
    }
    std::ranges::sort(found);
    return found;
}

void drop_repeated(std::vector<std::string>& directories) {
    std::set<std::filesystem::path> seen;
    std::erase_if(directories, [&](const std::string& directory) {
        return !seen.insert(std::filesystem::weakly_canonical(directory)).second;
    });
}

int list_studies(const ListArguments& arguments) {
    auto& files = storage::posix_file_system();
    std::vector<std::string> directories;
    std::vector<std::string> closed;
    for (const std::string& folder :
         arguments.directories.empty() ? std::vector<std::string>{"."} : arguments.directories)
        std::ranges::copy(studies_in(folder, &closed), std::back_inserter(directories));
    drop_repeated(directories);
    std::vector<ListedStudy> studies;
    for (const std::string& directory : directories) studies.push_back(listed_study(files, directory));
    if (arguments.format == Format::json) {
        std::cout << report::studies_json(std::move(studies))
                         .dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                  << "\n";
        return 0;
    }
    const report::Style style = detect_terminal().style;
    if (studies.empty())
        std::cout << report::paragraph("no studies here; a study is a directory that `ranktune run` made", style);
    if (!studies.empty()) std::cout << report::studies_text(std::move(studies), report::seconds_now(), style);
    for (std::string& each : closed) each = report::unbroken(report::printable(each));
    if (!closed.empty())
        std::cout << report::encoded(
            report::prose("closed", base::join_some(closed, 6) + ": you may not read what is in there", style), style);
    return 0;
}

} // namespace ranktune::cli
