// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checkpoints of trials. A trainable's state: one HDF5 file each, written aside, synced, renamed, directory synced.
// What a program saved: a folder with its files as they are and a manifest. The journal's COMMIT makes either valid.

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

/// The same for what a program saved: a folder, `checkpoints/<trial>/<iteration>-<incarnation>.<attempt>`.
[[nodiscard]] std::string checkpoint_folder_path(const CheckpointKey& key);
/// The file in it that lists all others; docs/reference/files.md describes it.
inline constexpr const char* manifest_name = "manifest.ranktune";

/// Not thread-safe: all HDF5 calls of a process come from one thread (its I/O thread).
class CheckpointStore {
  public:
    CheckpointStore(FileSystem& files, std::string study_directory);

    /// Writes `state` and returns the reference to report. Throws base::IoError; nothing is left under the final name
    /// then.
    [[nodiscard]] study::CheckpointRef save(const CheckpointKey& key, const study::MemoryState& state);
    /// Reads and verifies (checksum of each tensor, digest). Throws base::IoError or base::FormatError.
    [[nodiscard]] study::MemoryState load(const study::CheckpointRef& checkpoint);

    /// Makes a checkpoint of the file or folder `source`, which keeps its name: its files are moved (`move`, and where
    /// the file system can) or copied, made read-only, synced and listed in the manifest. Links to something within the
    /// folder stay links, relative ones; others are followed. Throws base::IoError when the study's folder is in
    /// trouble, base::Error when `source` is: nothing there, a link to nothing, neither file nor folder, not readable.
    /// What was moved is lost then.
    [[nodiscard]] study::CheckpointRef adopt(const CheckpointKey& key, const std::string& source, bool move);
    /// The path of what was adopted, after comparing every file with the manifest (size and digest). Throws
    /// base::IoError or base::FormatError.
    [[nodiscard]] std::string locate(const study::CheckpointRef& checkpoint);

  private:
    FileSystem& files_;
    std::string directory_;
};

} // namespace ranktune::storage
