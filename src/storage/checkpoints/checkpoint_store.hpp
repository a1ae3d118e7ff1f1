// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checkpoints of trials. A trainable's state is one HDF5 file (per rank when sharded): written to a temporary name,
// synced, renamed, directory synced. What a program saved is a folder with its files unchanged and a manifest. The
// journal's COMMIT makes either valid.

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
    base::AttemptId attempt;
    std::uint32_t shard = 0;
    std::uint32_t shards = 0; ///< number of files of the checkpoint, one per rank; 0: one file, by rank 0
};

/// `checkpoints/<trial>/<iteration>-<incarnation>.<attempt>.h5`, relative to the study directory.
[[nodiscard]] std::string checkpoint_path(const CheckpointKey& key);
/// `<iteration>-<incarnation>.<attempt>.<shard>.h5`: where shard `shard` of the checkpoint `path` lies.
[[nodiscard]] std::string shard_path(const std::string& path, std::uint32_t shard);
/// Whether a name in a trial's folder has one of the forms above, or is the temporary name of a checkpoint being
/// written. No other file there belongs to a study.
[[nodiscard]] bool is_checkpoint_name(std::string_view name);
/// Paths of the files (or of the one folder) of a checkpoint.
[[nodiscard]] std::vector<std::string> paths_of(const std::string& path, std::size_t shards);
/// Joins the references to the shards, in shard order, into the reference to the checkpoint.
[[nodiscard]] study::CheckpointRef join_shards(const CheckpointKey& key,
                                               const std::vector<study::CheckpointRef>& shards);

/// Where a program's checkpoint lies: a folder, `checkpoints/<trial>/<iteration>-<incarnation>.<attempt>`.
[[nodiscard]] std::string checkpoint_folder_path(const CheckpointKey& key);
/// The file in it that lists all others; docs/reference/files.md describes it.
inline constexpr const char* manifest_name = "manifest.ranktune";

/// A file contradicts its checksums or the journal: the checkpoint is unusable. Errors of other types (file system,
/// newer version) do not mean that.
class DamageError : public base::FormatError {
  public:
    using FormatError::FormatError;
};

/// Not thread-safe.
class CheckpointStore {
  public:
    /// `direct`: large tensors bypass the page cache where the file system supports it.
    CheckpointStore(FileSystem& files, std::string study_directory, bool direct = true);

    /// Writes `state` and returns the reference to report (for a shard, the reference for `join_shards`). Computes
    /// checksums while the bytes are being written. Throws base::IoError and then leaves nothing under the final name.
    [[nodiscard]] study::CheckpointRef save(const CheckpointKey& key, const study::MemoryState& state);
    /// Removes what `save` wrote. Ignores errors: the next start removes a file that stays.
    void discard(const CheckpointKey& key) noexcept;
    /// Reads and verifies (checksum of each tensor, digest of each file). Reads all shards, so that a sharded tensor
    /// comes in several parts (MemoryState::whole joins them). Throws DamageError, base::IoError, and base::FormatError
    /// for a newer version.
    [[nodiscard]] study::MemoryState load(const study::CheckpointRef& checkpoint);
    /// A source that reads and verifies tensors and blobs on demand, so that a rank need not hold the whole state.
    /// Throws as `load`, and so does the source.
    [[nodiscard]] std::unique_ptr<study::StateSource> open_shards(const study::CheckpointRef& checkpoint);

    /// Makes a checkpoint of the file or folder `source`, which keeps its name. Its files are moved (if `move`, a
    /// rename is possible and they have no other name) or copied, made read-only, synced and listed in the manifest.
    /// Links to targets within the folder become relative links; other links are followed. Throws base::IoError for
    /// errors in the study's folder, base::Error for errors in `source`: missing, a dangling link, neither file nor
    /// folder, not readable. After an error the moved files are lost.
    [[nodiscard]] study::CheckpointRef adopt(const CheckpointKey& key, const std::string& source, bool move);
    /// Path of an adopted file or folder, after comparing every file with the manifest (size and digest). Throws
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
