// SPDX-License-Identifier: Apache-2.0
#include "data/staging/copy_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "ranktune/base/error.hpp"
#include "storage/file_system.hpp"

namespace ranktune::data {
namespace {

/// False: others have it.
bool locked(int file, int how, const std::string& path) {
    while (::flock(file, how | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) return false;
        if (errno != EINTR) throw base::IoError("cannot lock", path, std::error_code(errno, std::generic_category()));
    }
    return true;
}

} // namespace

/// Whoever removes the file holds it alone, so that this can only become false before the lock was granted.
bool CopyLock::is_there() const {
    struct stat mine {};
    struct stat there {};
    return ::fstat(file_.get(), &mine) == 0 && ::lstat(path_.c_str(), &there) == 0 && mine.st_ino == there.st_ino &&
           mine.st_dev == there.st_dev;
}

std::optional<CopyLock> CopyLock::take(const std::string& path) {
    CopyLock lock(path, storage::open_own_file(path, O_RDWR | O_CREAT), Held::alone);
    if (!locked(lock.file_.get(), LOCK_EX, path)) {
        lock.held_ = Held::together;
        if (!locked(lock.file_.get(), LOCK_SH, path)) return std::nullopt;
    }
    if (!lock.is_there()) return std::nullopt;
    return lock;
}

std::optional<CopyLock> CopyLock::take_unused(const std::string& path) {
    CopyLock lock(path, storage::open_own_file(path, O_RDWR), Held::alone);
    if (!locked(lock.file_.get(), LOCK_EX, path) || !lock.is_there()) return std::nullopt;
    return lock;
}

bool CopyLock::share() {
    held_ = Held::together;
    return locked(file_.get(), LOCK_SH, path_) && is_there();
}

bool CopyLock::is_last() {
    held_ = Held::alone;
    return locked(file_.get(), LOCK_EX, path_) && is_there();
}

void CopyLock::remove_file() { ::unlink(path_.c_str()); }

} // namespace ranktune::data
