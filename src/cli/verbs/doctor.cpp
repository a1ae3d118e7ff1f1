// SPDX-License-Identifier: Apache-2.0
// doctor: checks of this machine. support: an archive for whoever helps the user.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/checks/doctor.hpp"
#include "cli/study_input.hpp"
#include "cli/verbs/verbs.hpp"
#include "data/staging/stager.hpp"
#include "launch/shared_memory.hpp"
#include "process/command_output.hpp"
#include "ranktune/base/error.hpp"
#include "report/screens/screens.hpp"
#include "report/screens/text.hpp"
#include "report/view/load.hpp"
#include "storage/file_system.hpp"
#include "storage/journal/journal.hpp"
#include "studydir/open_study.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::cli {
namespace {

namespace fs = std::filesystem;

/// All files together before compression: the archive stays below 5 MB.
constexpr std::size_t most_bytes = 4'500'000;
constexpr std::size_t most_of_a_log = 200'000;
constexpr std::size_t most_logs = 12;

/// Whether a folder between `root` and the file `name` below it is a symbolic link.
bool leads_elsewhere(const fs::path& root, const fs::path& name) {
    std::error_code error;
    fs::path at = root;
    for (const fs::path& part : name.parent_path())
        if (fs::is_symlink(at /= part, error)) return true;
    return false;
}

/// The last `most` bytes of the file `name` below `root`, from the beginning of a line on; empty when it cannot be
/// read. Symbolic links below `root` are not followed: they could lead to private files.
std::string tail(const fs::path& root, const fs::path& name, std::size_t most) {
    if (leads_elsewhere(root, name)) return "";
    try {
        const auto file = storage::open_own_file((root / name).string(), O_RDONLY);
        struct stat info {};
        if (::fstat(file.get(), &info) != 0) return "";
        const auto size = static_cast<std::size_t>(info.st_size);
        const std::size_t begin = size > most ? size - most : 0;
        std::string text(size - begin, '\0');
        const ssize_t got = ::pread(file.get(), text.data(), text.size(), static_cast<off_t>(begin));
        text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (begin > 0) text.erase(0, text.find('\n') + 1);
        return text;
    } catch (const base::IoError&) {
        return "";
    }
}

/// The files of an archive, in a temporary folder until they are packed.
class Collection {
  public:
    explicit Collection(const std::string& name) {
        std::string pattern = (fs::temp_directory_path() / "ranktune-support-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr)
            throw base::UsageError("cannot make a folder in " + fs::temp_directory_path().string() + " (TMPDIR)");
        root_ = pattern;
        name_ = name;
        fs::create_directories(root_ / name_);
    }
    ~Collection() {
        std::error_code error;
        fs::remove_all(root_, error);
    }
    Collection(const Collection&) = delete;
    Collection& operator=(const Collection&) = delete;

    void add(const std::string& name, const std::string& text) {
        const std::string safe = without_secrets(text);
        if (text.empty() || bytes_ + safe.size() > most_bytes) return;
        bytes_ += safe.size();
        fs::create_directories((root_ / name_ / name).parent_path());
        std::ofstream(root_ / name_ / name, std::ios::binary) << safe;
        names_.push_back(name);
    }
    void pack(const std::string& archive) const {
        const auto done =
            process::run_command({"tar", "-czf", archive, "-C", root_.string(), "--", name_}, std::chrono::minutes(2));
        if (!done.ok()) throw base::UsageError("cannot write " + archive + ": " + done.error);
    }
    [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  private:
    fs::path root_;
    std::string name_;
    std::size_t bytes_ = 0;
    std::vector<std::string> names_;
};

/// Names of the newest regular files in the folder of logs, by modification time.
std::vector<std::string> newest_logs(const fs::path& folder) {
    std::vector<std::pair<fs::file_time_type, std::string>> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
        if (entry.symlink_status(error).type() == fs::file_type::regular)
            found.emplace_back(entry.last_write_time(error), entry.path().filename().string());
    std::ranges::sort(found, std::greater<>());
    std::vector<std::string> newest;
    for (const auto& [time, name] : found)
        if (newest.size() < most_logs) newest.push_back(name);
    return newest;
}

/// A summary of the journal, or the error that makes it unreadable.
std::string journal_summary(const std::string& directory) {
    try {
        const auto study = report::load_study(storage::posix_file_system(), directory);
        const auto& state = study.tuner->state();
        std::string text = fmt::format("records {}\nsegments {}\ncut_bytes {}\nstarts {}\ntrials {}\nreports {}\n",
                                       study.journal.records, study.journal.segments, study.journal.cut_bytes,
                                       state.incarnation.value(), state.trials.size(), state.reports);
        for (std::size_t i = 0; i < study::phase_count; ++i)
            text += fmt::format("{} {}\n", study::name(static_cast<study::TrialPhase>(i)),
                                state.in(static_cast<study::TrialPhase>(i)));
        for (std::size_t i = 0; i < study.began.size(); ++i)
            text += fmt::format("start {} at {} with {} workers\n", i + 1, study.began[i], study.workers[i].size());
        if (state.ended)
            text += fmt::format("{}, exit {}: {}\n", tuner::is_over(state) ? "finished" : "stopped",
                                static_cast<int>(state.outcome), state.end_message);
        std::size_t shown = 0;
        for (std::size_t i = 0; i < state.trials.size() && shown < 50; ++i) {
            const auto& trial = state.trials[i];
            if (trial.failure.empty()) continue;
            ++shown;
            text += fmt::format("#{} {} attempt {} at {}: {}\n", i, study::name(trial.phase), trial.attempt.id.value(),
                                trial.iteration, study::describe(trial.failure));
        }
        return text;
    } catch (const std::exception& error) {
        return std::string("the journal cannot be read: ") + error.what() + "\n";
    }
}

void collect(const studydir::StudyDirectory& directory, Collection& files) {
    files.add("journal.txt", journal_summary(directory.path));
    const auto checks = examine(directory.path);
    files.add("doctor.txt", doctor_text(checks));
    files.add("doctor.json", doctor_json(checks));
    for (const char* name :
         {"study.toml", "resolved.toml", "outcome", "status", "lease", "submit/job.sbatch", "submit/jobs"})
        files.add(name, tail(directory.path, name, most_of_a_log));
    for (const std::string& log : newest_logs(directory.logs()))
        files.add("logs/" + log, tail(directory.path, "logs/" + log, most_of_a_log));
}

} // namespace

int doctor(const std::string& directory, Format format, bool clean) {
    if (clean) {
        const launch::CleanedUp done = launch::remove_abandoned_by_ranks();
        std::cerr << fmt::format("removed what {} run{} that {} killed had left behind\n", done.runs,
                                 done.runs == 1 ? "" : "s", done.runs == 1 ? "was" : "were");
        if (done.young > 0)
            std::cerr << fmt::format("left what {} other{} left less than a minute ago: the same command again then\n",
                                     done.young, done.young == 1 ? " has" : "s have");
        std::size_t copies = 0;
        for (const data::CopyPlace& place : data::find_places("").usable)
            copies += data::sweep(storage::posix_file_system(), place.folder, {});
        if (copies > 0)
            std::cerr << fmt::format("removed {} of data that nobody uses\n",
                                     copies == 1 ? "a copy" : fmt::format("{} copies", copies));
        for (const auto& failure : done.failures) std::cerr << "could not remove " << report::escaped(failure) << "\n";
    }
    const auto checks = examine(directory);
    std::cout << (format == Format::json ? doctor_json(checks) : doctor_text(checks));
    return std::ranges::any_of(checks, [](const Check& c) { return c.state == Check::State::wrong; }) ? 1 : 0;
}

int support(const std::string& directory, const std::string& output) {
    if (std::error_code error; !fs::is_directory(directory, error))
        throw base::UsageError("there is no study directory '" + directory + "'");
    const std::string study = absolute_directory(directory);
    std::string name = fs::path(study).filename().string();
    name = (name.empty() ? "ranktune" : name) + "-support";
    if (!studydir::holds_study(storage::posix_file_system(), study))
        std::cerr
            << "there is no study in '" << report::escaped(directory)
            << "', so the archive says no more than `ranktune doctor`; give the directory that `ranktune run` made\n";
    const std::string archive = fs::absolute(output.empty() ? name + ".tar.gz" : output).string();
    Collection files(name);
    collect(studydir::StudyDirectory{study}, files);
    files.pack(archive);
    std::cout << report::escaped(archive) << ": " << files.names().size() << " files, " << fs::file_size(archive)
              << " bytes, without data, weights, and values whose names say that they are secret\n";
    for (const auto& file : files.names()) std::cout << "  " << report::escaped(file) << "\n";
    std::cout << "look into it before you send it: tar -xzf " << report::escaped(fs::path(archive).filename().string())
              << "\n";
    return 0;
}

} // namespace ranktune::cli
