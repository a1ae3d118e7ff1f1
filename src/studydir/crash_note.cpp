// SPDX-License-Identifier: Apache-2.0
#include "studydir/crash_note.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>

#include "process/signals.hpp"
#include "ranktune/base/error.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::studydir {
namespace {

// Signal handlers read these: set beforehand, or lock-free.
char path[4096];
std::atomic<bool> prepared{false};
std::atomic<bool> left{false};
std::atomic<unsigned long> trial{0};
std::atomic<unsigned long> attempt{0}; ///< 0: none

constexpr const char* trial_word = "trial";
constexpr const char* device_word = "device";
constexpr std::uint64_t most_note_bytes = 64 << 10; // a note is one line

std::string name_start(std::uint32_t incarnation) { return "crash-" + std::to_string(incarnation) + "-"; }

std::string note_file(const std::string& study_directory, std::uint32_t incarnation, base::Rank rank) {
    return StudyDirectory{study_directory}.logs() + "/" + name_start(incarnation) + std::to_string(rank.value());
}

std::string read_note(storage::FileSystem& files, const std::string& file) {
    return storage::read_text(files, file, most_note_bytes);
}

/// Nothing if the line is not valid.
void add_note(const std::string& line, std::uint32_t rank, CrashNotes& to) {
    std::istringstream in(line);
    std::uint32_t trial_number = 0;
    std::uint32_t attempt_number = 0;
    std::string cause;
    std::string message;
    if (!(in >> trial_number >> attempt_number >> cause) || !std::getline(in >> std::ws, message)) return;
    if (attempt_number == 0 || (cause != trial_word && cause != device_word)) return;
    auto& list = cause == device_word ? to.device : to.trial;
    list.push_back({study::TrialId{trial_number}, study::AttemptId{attempt_number}, {message, rank}});
}

} // namespace

void prepare_crash_note(const std::string& study_directory, base::Incarnation incarnation, base::Rank rank) {
    const std::string file = note_file(study_directory, incarnation.value(), rank);
    if (file.size() >= sizeof path) return;
    std::memcpy(path, file.c_str(), file.size() + 1);
    prepared.store(true);
}

void note_attempt(const comm::AttemptKey& key) {
    if (key.attempt == base::AttemptId{}) {
        attempt.store(0);
        return;
    }
    trial.store(key.trial.value());
    attempt.store(key.attempt.value());
}

void leave_crash_note(CrashCause cause, const char* message) noexcept {
    if (!prepared.load() || attempt.load() == 0 || left.exchange(true)) return;
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (fd < 0) return;
    process::SignalText line;
    line.add(static_cast<long>(trial.load())).add(" ").add(static_cast<long>(attempt.load())).add(" ");
    line.add(cause == CrashCause::device ? device_word : trial_word).add(" ").add(message).add("\n").write_to(fd);
    close(fd);
}

CrashNotes read_crash_note(storage::FileSystem& files, const std::string& study_directory, std::uint32_t incarnation,
                           base::Rank rank) {
    CrashNotes found;
    try {
        add_note(read_note(files, note_file(study_directory, incarnation, rank)), rank.value(), found);
    } catch (const base::IoError&) { // it left none
    }
    return found;
}

CrashNotes read_crash_notes(storage::FileSystem& files, const std::string& study_directory, std::uint32_t incarnation) {
    std::map<std::uint32_t, std::string> lines; // by rank
    const std::string folder = StudyDirectory{study_directory}.logs();
    if (!files.exists(folder)) return {};
    const std::string start = name_start(incarnation);
    for (const std::string& name : files.list(folder)) {
        if (name.rfind(start, 0) != 0) continue;
        const auto rank = static_cast<std::uint32_t>(std::strtoul(name.c_str() + start.size(), nullptr, 10));
        try {
            lines.emplace(rank, read_note(files, folder + "/" + name));
        } catch (const base::IoError&) {
            continue;
        }
    }
    CrashNotes found;
    for (const auto& [rank, line] : lines) add_note(line, rank, found);
    return found;
}

} // namespace ranktune::studydir
