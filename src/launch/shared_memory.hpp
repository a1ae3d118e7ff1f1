// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared memory of ranks that this program starts.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ranktune/base/variables.hpp"

namespace ranktune::launch {

/// Open MPI's variable for the folder of shared memory segments.
inline constexpr const char* backing_directory = "OMPI_MCA_btl_vader_backing_directory";

/// Remains of killed ranks of this user on this machine that no process holds: folders like the one below, Open MPI's
/// segments in /dev/shm (one pattern per job), and session folders of mpirun in TMPDIR.
[[nodiscard]] std::vector<std::string> abandoned_by_ranks();

struct CleanedUp {
    std::size_t runs = 0;              ///< runs whose remains were removed
    std::size_t young = 0;             ///< skipped: made within the last minute, so the run may be starting
    std::vector<std::string> failures; ///< what could not be removed, and why
};
/// Removes what abandoned_by_ranks() finds, except what is too young.
CleanedUp remove_abandoned_by_ranks();

/// Advice when shared memory is too small for this many ranks of this machine; empty: it suffices, or is unknown.
/// `folder`: where the ranks keep it; empty: Open MPI's default.
[[nodiscard]] std::string shared_memory_shortage(const std::string& folder, std::uint32_t ranks,
                                                 const base::Variables& variables);

/// A folder in /dev/shm, removed with this object, including what killed ranks left in it. A killed process cannot
/// remove its folder, so each new object first removes this user's abandoned ones: owners hold a lock, which ends with
/// them.
class SharedMemoryFolder {
  public:
    SharedMemoryFolder();
    ~SharedMemoryFolder();
    SharedMemoryFolder(const SharedMemoryFolder&) = delete;
    SharedMemoryFolder& operator=(const SharedMemoryFolder&) = delete;
    /// Empty: there is no writable /dev/shm.
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
    int fd_ = -1;
};

} // namespace ranktune::launch
