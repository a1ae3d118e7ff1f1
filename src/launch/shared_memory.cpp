// SPDX-License-Identifier: Apache-2.0
#include "launch/shared_memory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <system_error>

#include "comm/mpi/launch.hpp"
#include "report/screens/text.hpp"

namespace ranktune::launch {
namespace {

namespace fs = std::filesystem;

constexpr const char* all = "/dev/shm";

std::string prefix() { return "ranktune-" + std::to_string(geteuid()) + "-"; }

/// Opens a folder and locks it; -1: it is missing, or another process has the lock.
int locked(const std::string& folder) {
    const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    close(fd);
    return -1;
}

/// Entries of a folder that begin with `beginning` and belong to this user.
std::vector<std::string> owned(const std::string& folder, const std::string& beginning) {
    std::vector<std::string> found;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        struct stat facts {};
        if (entry->path().filename().string().starts_with(beginning) && lstat(entry->path().c_str(), &facts) == 0 &&
            facts.st_uid == geteuid())
            found.push_back(entry->path());
    }
    std::sort(found.begin(), found.end());
    return found;
}

void remove_abandoned() {
    for (const auto& folder : owned(all, prefix())) {
        const int fd = locked(folder);
        if (fd < 0) continue;
        std::error_code ignored;
        fs::remove_all(folder, ignored);
        close(fd);
    }
}

/// Files in /dev/shm that a process of this user has mapped.
std::set<std::string> mapped_files() {
    std::set<std::string> files;
    for (const auto& process : owned("/proc", "")) {
        std::ifstream maps(process + "/maps");
        for (std::string line; std::getline(maps, line);)
            if (const auto at = line.find(all); at != std::string::npos) files.insert(line.substr(at));
    }
    return files;
}

} // namespace

std::vector<std::string> abandoned_by_ranks() {
    std::vector<std::string> found;
    for (const auto& folder : owned(all, prefix())) {
        const int fd = locked(folder);
        if (fd < 0) continue;
        close(fd);
        found.push_back(folder);
    }
    // vader_segment.<host>.<user>.<job>.<rank>: a job lives while one of its segments is mapped.
    std::map<std::string, bool> jobs;
    const auto segments = owned(all, "vader_segment.");
    const auto mapped = mapped_files(); // after listing: newer segments are not in the list
    for (const auto& segment : segments) jobs[segment.substr(0, segment.rfind('.'))] |= mapped.count(segment) != 0;
    for (const auto& [job, lives] : jobs)
        if (!lives) found.push_back(job + ".*");
    // ompi.<host>.<user>/pid.<mpirun>/...
    std::array<char, 256> host{};
    std::error_code error;
    const fs::path temporary = fs::temp_directory_path(error);
    if (error || gethostname(host.data(), host.size() - 1) != 0) return found;
    const std::string sessions =
        (temporary / ("ompi." + std::string(host.data()) + "." + std::to_string(geteuid()))).string();
    for (const auto& session : owned(sessions, "pid."))
        if (!fs::exists("/proc/" + session.substr(session.rfind('.') + 1), error)) found.push_back(session);
    return found;
}

namespace {

/// A starting rank creates its segment before it maps it.
bool is_young(const std::vector<std::string>& paths) {
    const auto limit = fs::file_time_type::clock::now() - std::chrono::minutes(1);
    std::error_code error;
    return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
        const auto time = fs::last_write_time(path, error);
        return !error && time > limit;
    });
}

} // namespace

CleanedUp remove_abandoned_by_ranks() {
    CleanedUp done;
    const std::string own = std::string(all) + "/" + prefix();
    for (const std::string& name : abandoned_by_ranks()) {
        const bool is_pattern = name.ends_with(".*");
        const bool is_own = name.starts_with(own);
        const auto paths = is_pattern ? owned(all, fs::path(name.substr(0, name.size() - 1)).filename().string())
                                      : std::vector<std::string>{name};
        if (!is_own && is_young(paths)) {
            ++done.young;
            continue;
        }
        const int lock = is_own ? locked(name) : -1;
        if (is_own && lock < 0) continue; // a process has it now
        const std::size_t failures = done.failures.size();
        for (const auto& path : paths) {
            std::error_code error;
            fs::remove_all(path, error);
            if (error) done.failures.push_back(path + ": " + error.message());
        }
        if (lock >= 0) close(lock);
        if (failures == done.failures.size()) ++done.runs;
    }
    return done;
}

std::string shared_memory_shortage(const std::string& folder, std::uint32_t ranks, const base::Variables& variables) {
    const std::string place = folder.empty() ? all : folder;
    struct statvfs room {};
    if (statvfs(place.c_str(), &room) != 0 || room.f_blocks == 0) return {}; // no such place, or one without a limit
    const std::uint64_t free = std::uint64_t{room.f_bavail} * room.f_frsize;
    const std::uint64_t needed = comm::mpi::shared_memory_needed(variables, ranks);
    if (free >= needed) return {};
    return "too little shared memory: " + base::bytes_text(free) + " are free in " + place + ", and " +
           std::to_string(ranks) + " ranks need " + base::bytes_text(needed) +
           ". Remove what killed runs left there (ranktune doctor --clean), or make it larger (as root: mount -o "
           "remount,size=1G /dev/shm; a container: --shm-size=1g), or name another folder: " +
           backing_directory + "=/tmp";
}

SharedMemoryFolder::SharedMemoryFolder() {
    remove_abandoned();
    // Another process may remove the folder as abandoned before it is locked: try again.
    for (int attempt = 0; attempt < 3 && path_.empty(); ++attempt) {
        std::string name = std::string(all) + "/" + prefix() + "XXXXXX";
        if (mkdtemp(name.data()) == nullptr) return;
        fd_ = locked(name);
        if (fd_ >= 0 && access(name.c_str(), W_OK) == 0) {
            path_ = name;
        } else if (fd_ >= 0) {
            close(fd_);
            fd_ = -1;
        }
    }
}

SharedMemoryFolder::~SharedMemoryFolder() {
    if (fd_ < 0) return;
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    close(fd_);
}

} // namespace ranktune::launch
