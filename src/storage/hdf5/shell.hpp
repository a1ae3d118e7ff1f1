// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shell: the metadata of an ordinary HDF5 file, built in memory by the library. Ranktune itself writes it to disk
// together with the bulk data, so that no HDF5 call touches the study directory, no HDF5 lock is taken there, and the
// crash tests see every byte.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/hdf5/hdf5.hpp"
#include "storage/hdf5/memory_driver.hpp"

namespace ranktune::storage::hdf5 {

/// The finished shell. The file is `metadata` at offset 0, then the bulk data of each data set at its offset.
struct Shell {
    std::vector<std::byte> metadata;    ///< everything that is not bulk data
    std::vector<std::uint64_t> offsets; ///< of the bulk data sets, in the order of add_bulk; 0: empty data set
    std::uint64_t size = 0;             ///< of the whole file
};

/// Builds a shell in memory; bulk data takes no memory. Used on the HDF5 thread only.
class ShellBuilder {
  public:
    /// Bulk data sets of at least `align_from` bytes start at multiples of 4 KiB; 0: no alignment.
    explicit ShellBuilder(std::uint64_t align_from);

    /// The file, to add groups, attributes and small data sets to. Use the default creation properties.
    [[nodiscard]] hid_t file() const { return file_.get(); }
    /// A contiguous data set whose bytes the caller writes itself. `shape` empty: a scalar. Attributes may be put on
    /// the returned handle until `finish`.
    [[nodiscard]] hid_t add_bulk(hid_t where, const std::string& name, hid_t type,
                                 const std::vector<std::uint64_t>& shape);
    /// Allocates the bulk data sets after all metadata, in the order of add_bulk, and returns their offsets (0: empty
    /// data set). Afterwards existing attributes may be overwritten, but none added. Throws base::FormatError when this
    /// HDF5 library lays the file out in another way.
    const std::vector<std::uint64_t>& place();
    /// Ends the builder; calls `place` if that was not done. Throws as `place`.
    [[nodiscard]] Shell finish();
    /// The data set of the n-th add_bulk, until `finish`.
    [[nodiscard]] hid_t bulk(std::size_t n) const { return bulk_[n].get(); }

  private:
    std::unique_ptr<MemoryImage> image_; // declared before file_, because closing the file writes to it
    FileHandle file_;
    std::vector<DatasetHandle> bulk_;
    std::vector<std::uint64_t> offsets_;
    std::uint64_t first_ = 0; ///< of the offsets
    std::uint64_t end_ = 0;
    bool placed_ = false;
};

/// Opens HDF5 metadata (verified bytes of a file of `file_size` bytes, followed by the bulk data) for reading.
class ShellReader {
  public:
    ShellReader(std::vector<std::byte> metadata, std::uint64_t file_size);
    [[nodiscard]] hid_t file() const { return file_.get(); }

  private:
    std::unique_ptr<MemoryImage> image_;
    FileHandle file_;
};

} // namespace ranktune::storage::hdf5
