// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where ranks that this program starts keep the memory that they share.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ranktune/base/variables.hpp"

namespace ranktune::launch {

/// The variable by which Open MPI's ranks are told such a folder.
inline constexpr const char* backing_directory = "OMPI_MCA_btl_vader_backing_directory";

/// What killed ranks of this user have left on this machine, and no process holds: folders like the one
/// below, Open MPI's segments in /dev/shm (one pattern for each of its jobs), and session folders of mpirun in TMPDIR.
[[nodiscard]] std::vector<std::string> abandoned_by_ranks();

struct CleanedUp {
    std::size_t runs = 0;              ///< whose remains are gone
    std::size_t young = 0;             ///< whose remains were made within the last minute: one may be just beginning
    std::vector<std::string> failures; ///< what is still there, and why
};
/// Looks again and removes what abandoned_by_ranks() names, but for what is too young to be judged.
CleanedUp remove_abandoned_by_ranks();

/// What to do when there is too little room for the memory that so many ranks of this machine share; empty: there is
/// enough, or nobody knows. `folder`: where they keep it; empty: where Open MPI does by itself.
[[nodiscard]] std::string shared_memory_shortage(const std::string& folder, std::uint32_t ranks,
                                                 const base::Variables& variables);

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

} // namespace ranktune::launch
