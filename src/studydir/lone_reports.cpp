// SPDX-License-Identifier: Apache-2.0
#include "studydir/lone_reports.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "ranktune/base/error.hpp"
#include "storage/file_system.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::studydir {
namespace {

std::string path_in(const std::string& study_directory) {
    return StudyDirectory{study_directory}.logs() + "/rank-0-alone";
}

} // namespace

std::uint64_t lone_reports(const std::string& study_directory) {
    auto& files = storage::posix_file_system();
    const std::string path = path_in(study_directory);
    try {
        if (!files.exists(path)) return 0;
        const std::string text = storage::read_text(files, path);
        return static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
    } catch (const base::IoError&) {
        return 0;
    }
}

void note_lone_reports(const std::string& study_directory) {
    constexpr char line[] = "rank 0 alone reported; the other ranks were stopped by signal\n";
    try {
        const auto file = storage::open_own_file(path_in(study_directory), O_WRONLY | O_CREAT | O_APPEND);
        static_cast<void>(!write(file.get(), line, sizeof line - 1));
    } catch (const base::IoError&) { // without the note the next attempt waits as long as this one
    }
}

void forget_lone_reports(const std::string& study_directory) {
    try {
        storage::posix_file_system().remove(path_in(study_directory));
    } catch (const base::IoError&) { // then it counts for one more attempt
    }
}

} // namespace ranktune::studydir
