// SPDX-License-Identifier: Apache-2.0
#pragma once
// Creates and publishes journal segments.

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "ranktune/base/log.hpp"
#include "storage/file_system.hpp"
#include "storage/journal/journal_values.hpp"
#include "storage/journal/segment.hpp"

namespace ranktune::storage::hdf5 {
struct Shell; // this header is included where HDF5 is not
}

namespace ranktune::storage {

/// A published segment, open for writing.
struct OpenSegment {
    SegmentHeader header;
    std::string path;
    std::unique_ptr<File> file;
    std::uint64_t used = segment_header_bytes; ///< bytes of the payload

    [[nodiscard]] std::uint64_t room() const { return header.payload_bytes - used; }
};

/// HDF5 metadata of a segment with this payload size. Built once per size and process, on the HDF5 thread.
[[nodiscard]] const hdf5::Shell& segment_shell(std::uint64_t payload_bytes);

/// Publishes segments of increasing size. Not thread-safe.
class SegmentPublisher {
  public:
    SegmentPublisher(FileSystem& files, const JournalOptions& options, base::LogSink& log);

    struct Room {
        std::uint64_t needed = 0;                                       ///< bytes of frames that must fit
        std::uint64_t most = std::numeric_limits<std::uint64_t>::max(); ///< size up to which segments double
    };
    /// Writes segment `number` to a temporary name, reserves its space, syncs it, links it into place, syncs the
    /// directory. `after`: SegmentHeader::after when published ahead, otherwise 0. Returns null when the number is
    /// taken: another head owns the study. Throws base::IoError and then leaves nothing behind.
    [[nodiscard]] std::unique_ptr<OpenSegment> publish(std::uint32_t number, std::uint32_t after,
                                                       const JournalPosition& cut, const Room& room);
    /// Removes temporary files of earlier processes. Only the study's owner may call it.
    void remove_leftovers();

  private:
    void write_aside(OpenSegment& segment, const std::string& aside);

    FileSystem& files_;
    const JournalOptions& options_;
    base::LogSink& log_;
    std::uint64_t next_bytes_;
    bool said_sparse_ = false;
};

} // namespace ranktune::storage
