// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shell: an ordinary HDF5 file of which the library only ever sees the metadata. Our own writes put it on the disk and
// fill in the bulk, so that no HDF5 call touches the study directory, no HDF5 lock is taken there, and the crash tests
// see every byte.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/hdf5/hdf5.hpp"
#include "storage/hdf5/memory_driver.hpp"

namespace ranktune::storage::hdf5 {

/// The finished shell. The file is `metadata` at offset 0, then the bulk of each data set at its offset.
struct Shell {
    std::vector<std::byte> metadata;    ///< everything that is not bulk, from offset 0
    std::vector<std::uint64_t> offsets; ///< of the bulk data sets, in the order of add_bulk; 0: an empty one
    std::uint64_t size = 0;             ///< of the whole file
};

/// Builds a shell in memory; the bulk takes none. Used on the HDF5 thread only.
class ShellBuilder {
  public:
    /// Bulk data sets of at least `align_from` bytes will start at multiples of 4 KiB; 0: none.
    explicit ShellBuilder(std::uint64_t align_from);

    /// The file, to add groups, attributes and small data sets to. Use the default creation properties.
    [[nodiscard]] hid_t file() const { return file_.get(); }
    /// A contiguous data set whose bytes the caller writes itself. `shape` empty: a scalar. Attributes may be put on
    /// the returned handle until `finish`.
    [[nodiscard]] hid_t add_bulk(hid_t where, const std::string& name, hid_t type,
                                 const std::vector<std::uint64_t>& shape);
    /// Allocates the bulk data sets behind all metadata, in the order of add_bulk, and returns their offsets (0: an
    /// empty one). After it attributes may only be written again. Throws base::FormatError when this HDF5 library lays
    /// the file out in another way.
    const std::vector<std::uint64_t>& place();
    /// Ends the builder; calls `place` if nobody has. Throws as it does.
    [[nodiscard]] Shell finish();
    /// The data set of the n-th add_bulk, until `finish`.
    [[nodiscard]] hid_t bulk(std::size_t n) const { return bulk_[n].get(); }

  private:
    std::unique_ptr<MemoryImage> image_; // before the file: it is written when the file closes
    FileHandle file_;
    std::vector<DatasetHandle> bulk_;
    std::vector<std::uint64_t> offsets_;
    std::uint64_t first_ = 0; ///< of the offsets
    std::uint64_t end_ = 0;
    bool placed_ = false;
};

/// Opens HDF5 metadata (verified bytes of a file of `file_size` bytes whose bulk lies behind them) for reading.
class ShellReader {
  public:
    ShellReader(std::vector<std::byte> metadata, std::uint64_t file_size);
    [[nodiscard]] hid_t file() const { return file_.get(); }

  private:
    std::unique_ptr<MemoryImage> image_;
    FileHandle file_;
};

} // namespace ranktune::storage::hdf5
