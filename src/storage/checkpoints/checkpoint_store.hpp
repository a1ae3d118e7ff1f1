// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checkpoints of trials. A trainable's state: one HDF5 file each, written aside, synced, renamed, directory synced.
// What a program saved: a folder with its files as they are and a manifest. The journal's COMMIT makes either valid.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/error.hpp"
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
    std::uint32_t shard = 0;
    std::uint32_t shards = 0; ///< files that the checkpoint is made of, one per rank; 0: one file by rank 0
};

/// `checkpoints/<trial>/<iteration>-<incarnation>.<attempt>.h5`, relative to the study directory.
[[nodiscard]] std::string checkpoint_path(const CheckpointKey& key);
/// `<iteration>-<incarnation>.<attempt>.<shard>.h5`: where shard `shard` of the checkpoint `path` lies.
[[nodiscard]] std::string shard_path(const std::string& path, std::uint32_t shard);
/// Whether a file or folder in the folder of a trial has a name of the forms above, or of a checkpoint that was being
/// written: nothing else there is from a study.
[[nodiscard]] bool is_checkpoint_name(std::string_view name);
/// The files (or the one folder) of a checkpoint.
[[nodiscard]] std::vector<std::string> paths_of(const std::string& path, std::size_t shards);
/// The reference to a checkpoint from those to its shards, in their order.
[[nodiscard]] study::CheckpointRef join_shards(const CheckpointKey& key,
                                               const std::vector<study::CheckpointRef>& shards);

/// The same for what a program saved: a folder, `checkpoints/<trial>/<iteration>-<incarnation>.<attempt>`.
[[nodiscard]] std::string checkpoint_folder_path(const CheckpointKey& key);
/// The file in it that lists all others; docs/reference/files.md describes it.
inline constexpr const char* manifest_name = "manifest.ranktune";

/// A file is not what its checksums or the journal say: it is of no use to anybody. Errors of any other type (of the
/// file system, of a newer version) do not say that.
class DamageError : public base::FormatError {
  public:
    using FormatError::FormatError;
};

/// Not thread-safe: all HDF5 calls of a process come from one thread (its I/O thread).
class CheckpointStore {
  public:
    /// `direct`: large tensors are written past the page cache where the file system can.
    CheckpointStore(FileSystem& files, std::string study_directory, bool direct = true);

    /// Writes `state` and returns the reference to report; of a shard, the one to give to `join_shards`. Checksums are
    /// computed while the bytes are being written. Throws base::IoError; nothing is left under the final name then.
    [[nodiscard]] study::CheckpointRef save(const CheckpointKey& key, const study::MemoryState& state);
    /// Removes what `save` wrote, where that can be done: a file that stays is removed by the next start.
    void discard(const CheckpointKey& key) noexcept;
    /// Reads and verifies (checksum of each tensor, digest of each file). Of shards, all of them, so that a sharded
    /// tensor comes in several parts (MemoryState::whole joins them). Throws DamageError, base::IoError, and
    /// base::FormatError for a newer version.
    [[nodiscard]] study::MemoryState load(const study::CheckpointRef& checkpoint);
    /// A source that reads what is asked for from the shards, when it is asked for, and verifies what it reads: a rank
    /// need not hold the whole state. Throws as `load`, and so does the source.
    [[nodiscard]] std::unique_ptr<study::StateSource> open_shards(const study::CheckpointRef& checkpoint);

    /// Makes a checkpoint of the file or folder `source`, which keeps its name: its files are moved (`move`, and where
    /// the file system can) or copied, made read-only, synced and listed in the manifest. Links to something within the
    /// folder stay links, relative ones; others are followed. Throws base::IoError when the study's folder is in
    /// trouble, base::Error when `source` is: nothing there, a link to nothing, neither file nor folder, not readable.
    /// What was moved is lost then.
    [[nodiscard]] study::CheckpointRef adopt(const CheckpointKey& key, const std::string& source, bool move);
    /// The path of what was adopted, after comparing every file with the manifest (size and digest). Throws
    /// DamageError, base::IoError, and base::FormatError for a newer version.
    [[nodiscard]] std::string locate(const study::CheckpointRef& checkpoint);

  private:
    void write(File& file, const CheckpointKey& key, const study::MemoryState& state, study::CheckpointRef& reference);
    void load_file(const std::string& path, std::uint64_t digest, study::MemoryState& state);

    FileSystem& files_;
    std::string directory_;
    bool direct_;
};

} // namespace ranktune::storage
