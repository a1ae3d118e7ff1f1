// SPDX-License-Identifier: Apache-2.0
#include "cli/shared_memory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace ranktune::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* all = "/dev/shm";

std::string prefix() { return "ranktune-" + std::to_string(geteuid()) + "-"; }

/// An open folder that this process has locked; -1: somebody else has, or it is not there.
int locked(const std::string& folder) {
    const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    close(fd);
    return -1;
}

void remove_abandoned() {
    std::error_code error;
    for (fs::directory_iterator entry(all, error), end; !error && entry != end; entry.increment(error)) {
        if (!entry->path().filename().string().starts_with(prefix())) continue;
        const int fd = locked(entry->path());
        if (fd < 0) continue;
        std::error_code ignored;
        fs::remove_all(entry->path(), ignored);
        close(fd);
    }
}

} // namespace

SharedMemoryFolder::SharedMemoryFolder() {
    remove_abandoned();
    // Between its making and its lock another process may take the folder for an abandoned one.
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

} // namespace ranktune::cli
