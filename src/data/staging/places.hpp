// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a node keeps copies of data.

#include <cstdint>
#include <string>
#include <vector>

namespace ranktune::data {

/// A folder `ranktune-<uid>` that only its user may read.
struct CopyPlace {
    std::string folder;
    std::uint64_t room = 0; ///< bytes that a copy may take
    std::string shortage{}; ///< what the room is a share of, for a message: "free on '/local'"
};

/// Why there are no more of them, for people: "$TMPDIR (/scratch/ada) is a network file system".
struct CopyPlaces {
    std::vector<CopyPlace> usable; ///< best first
    std::vector<std::string> refused;
};

/// `directory` if it is given ([data] directory). Otherwise $TMPDIR, unless it is a network file system, then /dev/shm.
/// In memory all copies together may take a quarter of what is free without them or, if that is less, of the memory of
/// this job. Makes the folders.
[[nodiscard]] CopyPlaces find_places(const std::string& directory);
/// The same, but makes no folders.
[[nodiscard]] CopyPlaces look_for_places(const std::string& directory);

/// Of file systems that other nodes have, too: NFS, Lustre, GPFS, BeeGFS, Ceph, and what runs in user space.
[[nodiscard]] bool is_network(const std::string& path);
/// Whether two paths lie on one file system.
[[nodiscard]] bool same_file_system(const std::string& a, const std::string& b);

} // namespace ranktune::data
