// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where ranks that this program starts keep the memory that they share.

#include <string>

namespace ranktune::cli {

/// A folder in /dev/shm that goes with this object, and with everything that killed ranks left in it. Nobody removes
/// what is left when this process is killed itself; so each new folder first removes those of this user whose owners
/// are gone. They hold a lock on theirs, which ends with them.
class SharedMemoryFolder {
  public:
    SharedMemoryFolder();
    ~SharedMemoryFolder();
    SharedMemoryFolder(const SharedMemoryFolder&) = delete;
    SharedMemoryFolder& operator=(const SharedMemoryFolder&) = delete;
    /// Empty: there is no /dev/shm, or nothing can be made in it.
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
    int fd_ = -1;
};

} // namespace ranktune::cli
