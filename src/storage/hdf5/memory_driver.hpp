// SPDX-License-Identifier: Apache-2.0
#pragma once
// A sparse in-memory HDF5 file driver: a file of 100 GiB whose bulk data is never written through the library takes a
// few KiB. (The library's own `core` driver fills the whole extent with zeros.)

#include <cstddef>
#include <cstdint>
#include <vector>

#include "storage/hdf5/hdf5.hpp"

namespace ranktune::storage::hdf5 {

/// The bytes of a file. Everything after `written` reads as zeros.
struct MemoryImage {
    std::vector<std::byte> written;
    std::uint64_t size = 0;   ///< allocated size of the file
    bool discard_raw = false; ///< raw data written from here on is dropped
    /// Raw data of at least this size is placed at multiples of 4 KiB; 0: never. (The library's own alignment fills
    /// gaps with later data, so the order would be unknown.)
    std::uint64_t align_raw_from = 0;
};

/// Makes files opened with `access` live in `image`, which must outlive them. On the HDF5 thread.
void use_memory_driver(hid_t access, MemoryImage& image);

} // namespace ranktune::storage::hdf5
