// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checkpoints of trials: one HDF5 file each, written aside, synced, renamed, directory synced. The journal's COMMIT
// makes it valid.

#include <memory>
#include <string>

#include "ranktune/base/ids.hpp"
#include "ranktune/study/state.hpp"
#include "ranktune/study/vocabulary.hpp"
#include "storage/file_system.hpp"

namespace ranktune::storage {

struct CheckpointKey {
    base::TrialId trial;
    base::Iteration iteration = 0;
    base::Incarnation incarnation;
    base::Attempt attempt;
};

/// `checkpoints/<trial>/<iteration>-<incarnation>.<attempt>.h5`, relative to the study directory.
[[nodiscard]] std::string checkpoint_path(const CheckpointKey& key);

/// Not thread-safe: all HDF5 calls of a process come from one thread (its I/O thread).
class CheckpointStore {
  public:
    CheckpointStore(FileSystem& files, std::string study_directory);

    /// Writes `state` and returns the reference to report. Throws base::IoError; nothing is left under the final name
    /// then.
    [[nodiscard]] study::CheckpointRef save(const CheckpointKey& key, const study::MemoryState& state);
    /// Reads and verifies (checksum of each tensor, digest). Throws base::IoError or base::FormatError.
    [[nodiscard]] study::MemoryState load(const study::CheckpointRef& checkpoint);

  private:
    FileSystem& files_;
    std::string directory_;
};

} // namespace ranktune::storage
