// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bytes of a journal segment: header page and frames. docs/reference/files.md has the same as tables.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/file_system.hpp"
#include "storage/journal/journal_values.hpp"

namespace ranktune::storage {

/// A reader refuses another major and accepts a larger minor.
inline constexpr std::uint16_t journal_major = 2;
inline constexpr std::uint16_t journal_minor = 1;
/// Size of the payload's first page; also the step in which a reader searches the file for it.
inline constexpr std::uint64_t segment_header_bytes = 4096;
/// The payload begins within the first so many bytes of the file.
inline constexpr std::uint64_t segment_search_bytes = std::uint64_t{64} * 1024;
inline constexpr std::uint64_t frame_header_bytes = 24;
/// A frame holds fewer records.
inline constexpr std::uint64_t max_frame_records = 1U << 24U;
inline constexpr std::uint64_t frame_alignment = 8;

/// First 4 KiB of a segment's payload. Written and synced before the segment is published; never changed.
struct SegmentHeader {
    std::uint32_t segment = 0; ///< counted from 1; also in the file's name
    std::uint32_t incarnation = 0;
    std::string uuid;
    /// Published ahead of need, while its writer still appended to the segment before: that one ends where its frames
    /// end, and `cut` only says what was synced at the time. Otherwise `cut` is the end of the valid records of all
    /// earlier segments, whatever else they contain.
    bool ahead = false;
    JournalPosition cut;
    /// If `ahead`: the segment that this one continues. 0: unknown (journal format 2.0).
    std::uint32_t after = 0;
    std::uint64_t payload_offset = 0; ///< in the file
    std::uint64_t payload_bytes = 0;
    std::string host;
    std::string boot_id;
    std::string job;
    std::uint64_t pid = 0;
    std::uint32_t restart_count = 0;
    /// Checksum of the page; seeds the checksums of this segment's frames.
    std::uint32_t crc = 0;
};

/// One page. Texts that are too long are cut; a uuid that is too long throws base::UsageError.
[[nodiscard]] std::vector<std::byte> encode_segment_header(SegmentHeader& header);
/// Decodes a page from `offset` of its file; nothing when it is not a header. Throws base::FormatError for another
/// major version.
[[nodiscard]] std::optional<SegmentHeader> decode_segment_header(std::span<const std::byte> page, std::uint64_t offset);
/// Finds the header by its magic and checksum, without HDF5. Throws base::FormatError when there is none.
[[nodiscard]] SegmentHeader read_segment_header(File& file, const std::string& path);

/// A frame is this header, `bytes` bytes of records, then zeros up to a multiple of 8.
struct FrameHeader {
    std::uint32_t crc = 0;      ///< of everything after it, seeded with the segment header's
    std::uint32_t previous = 0; ///< `crc` of the previous frame, in this segment or an earlier one; 0: none
    std::uint32_t bytes = 0;
    std::uint64_t first_sequence = 0;
    std::uint32_t count = 0;    ///< of records
    std::uint64_t unsynced = 0; ///< earlier records not known to be synced when the frame was written
    /// Records below this number were synced when the frame was written.
    [[nodiscard]] std::uint64_t synced_below() const { return first_sequence - unsynced; }
};

[[nodiscard]] constexpr std::uint64_t frame_size(std::uint64_t record_bytes) {
    return (frame_header_bytes + record_bytes + frame_alignment - 1) / frame_alignment * frame_alignment;
}
/// Writes the 24-byte header into `frame`, which has `frame_size(header.bytes)` bytes and contains records and padding
/// already. Sets header.crc.
void seal_frame(std::span<std::byte> frame, FrameHeader& header, std::uint32_t segment_crc);
/// Size of the frame that begins here if its header is plausible (the checksum is not verified), else 0.
[[nodiscard]] std::uint64_t sound_frame_size(std::span<const std::byte> head, std::uint64_t room);
/// Decodes a whole frame; nothing when its checksum does not match in this segment. A frame stores the lower half of
/// its first record's number; the result is the number closest to `near`.
[[nodiscard]] std::optional<FrameHeader> decode_frame(std::span<const std::byte> frame, std::uint32_t segment_crc,
                                                      std::uint64_t near);

[[nodiscard]] std::string journal_directory(const std::string& study_directory);
/// `<study>/journal/000001.h5`
[[nodiscard]] std::string segment_path(const std::string& study_directory, std::uint32_t segment);
/// Numbers of the published segments, ascending.
[[nodiscard]] std::vector<std::uint32_t> list_segments(const FileSystem& files, const std::string& study_directory);
/// Syncs all segments: a killed writer may have left data in the page cache. Costs nothing for clean files. Throws
/// base::IoError.
void sync_segments(FileSystem& files, const std::string& study_directory);

} // namespace ranktune::storage
