// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bytes of a checkpoint file. docs/reference/files.md has the same as tables.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ranktune/study/state.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "storage/hdf5/shell.hpp"

namespace ranktune::storage {

/// Version of the layout, in the root attribute `schema_version`.
inline constexpr std::uint64_t checkpoint_schema = 1;
inline constexpr std::uint64_t checkpoint_seal_bytes = 64;

/// Last 64 bytes of the file (data set `seal`): lets a reader check the HDF5 metadata before libhdf5 parses it.
struct CheckpointSeal {
    std::uint64_t file_bytes = 0;
    std::uint64_t metadata_bytes = 0; ///< at the beginning of the file
    std::uint64_t digest = 0;         ///< of the state
    std::uint32_t metadata_crc = 0;
};
[[nodiscard]] std::vector<std::byte> encode_seal(const CheckpointSeal& seal);
/// Throws DamageError when these are not the last bytes of an intact checkpoint, base::FormatError for a newer version.
[[nodiscard]] CheckpointSeal decode_seal(std::span<const std::byte> bytes, const std::string& path);

/// Where a tensor, some rows of one, or a blob lies in the file.
struct StoredPart {
    study::TensorInfo info; ///< of a blob: the name only
    std::uint64_t index = 0;
    std::uint64_t offset = 0; ///< 0 when it has no bytes
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;
};
struct CheckpointContents {
    std::uint64_t digest = 0;
    std::vector<StoredPart> tensors; ///< in the order of saving
    std::vector<StoredPart> blobs;
};

/// Builds the HDF5 metadata of a checkpoint whose bytes are written before their checksums are known. Used on the HDF5
/// thread only.
class CheckpointBuilder {
  public:
    CheckpointBuilder(const CheckpointKey& key, const study::MemoryState& state);
    /// File offsets of tensors, blobs and seal, in this order; 0: nothing to write.
    [[nodiscard]] const std::vector<std::uint64_t>& offsets() { return builder_.place(); }
    /// `crcs` in the order of the offsets, without the seal's.
    [[nodiscard]] hdf5::Shell finish(std::span<const std::uint32_t> crcs, std::uint64_t digest);

  private:
    hdf5::ShellBuilder builder_;
};
/// Throws base::FormatError for a newer version.
[[nodiscard]] CheckpointContents read_checkpoint_metadata(std::vector<std::byte> metadata, std::uint64_t file_bytes,
                                                          const std::string& path);

} // namespace ranktune::storage
