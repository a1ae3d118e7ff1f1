// SPDX-License-Identifier: Apache-2.0
#pragma once
// Walking through a journal, frame by frame: what counts, where it ends, and whether something is missing. Used by
// readers and by a head that takes a study over.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/journal/segment.hpp"

namespace ranktune::storage {

/// What to do about a journal that is damaged or of which files are missing.
inline constexpr const char* restore_advice =
    "Restore the file from a backup or a snapshot of the file system. Without one, start again with the study file "
    "(not the directory) and --fresh; checkpoints and result files stay readable";

/// A frame in a buffer of the walker: valid until the next call.
struct FrameView {
    FrameHeader header;
    std::span<const std::byte> records;
    std::uint64_t size = 0;
};

/// One segment, open for reading through a window of plain reads.
class SegmentView {
  public:
    /// Throws base::IoError, or base::FormatError when the header page is not sound or not of this number.
    SegmentView(FileSystem& files, const std::string& study_directory, std::uint32_t number);

    [[nodiscard]] const SegmentHeader& header() const { return header_; }
    [[nodiscard]] const std::string& path() const { return path_; }
    /// The frame at `at` of the payload, if a valid one lies there and ends before `limit`. `near`: see decode_frame.
    [[nodiscard]] std::optional<FrameView> frame_at(std::uint64_t at, std::uint64_t limit, std::uint64_t near);
    /// What lies behind `at`, where no frame was found.
    struct Rest {
        std::uint64_t bytes = 0;        ///< from `at` to the last byte that is not zero
        std::uint64_t synced_below = 0; ///< the largest claim of the valid frames found, wherever they lie
        std::uint64_t end = 0;          ///< number behind the last record of those frames; 0: none
    };
    [[nodiscard]] Rest scan(std::uint64_t at, std::uint64_t near);
    /// The next access reads from the file again.
    void forget() { window_size_ = 0; }
    /// The same, and gives the memory back.
    void release() {
        forget();
        std::vector<std::byte>().swap(window_);
    }

  private:
    /// `size` bytes at `at` of the payload, fewer at its end.
    [[nodiscard]] std::span<const std::byte> bytes(std::uint64_t at, std::uint64_t size) {
        const std::uint64_t skip = at - window_at_;
        if (at < window_at_ || skip + size > window_size_) return bytes_behind_window(at, size);
        return {window_.data() + skip, static_cast<std::size_t>(size)};
    }
    [[nodiscard]] std::span<const std::byte> bytes_behind_window(std::uint64_t at, std::uint64_t size);

    std::string path_;
    std::unique_ptr<File> file_;
    SegmentHeader header_;
    std::vector<std::byte> window_;
    std::uint64_t window_at_ = 0;
    std::size_t window_size_ = 0;
};

struct WalkResult {
    SegmentHeader newest;
    JournalPosition end;         ///< behind the last record that counts
    std::uint64_t cut_bytes = 0; ///< behind it, of frames that cannot be used
    /// Records of which it is known that they were written whole, up to the last such one: power was lost before they
    /// were safe. 0: what was cut is one frame whose write never returned.
    std::uint64_t cut_records = 0;
    std::uint32_t segments = 0;     ///< files
    std::uint64_t begin = 0;        ///< first record that was visited
    std::uint64_t synced_below = 0; ///< records below this number are known to have been on the disk
};

/// Visits every frame that counts, in order. A torn tail ends the walk. Throws base::UsageError when there is no
/// journal, base::FormatError for a damaged middle (with advice) and for a newer format.
WalkResult walk_journal(FileSystem& files, const std::string& study_directory,
                        const std::function<void(const FrameView&)>& visit);

/// The same from the newest segment on whose first frame begins at record `at_most` or before it and of which `begins`
/// says that a reader can go on from it; from record 0 if there is none. Frames before it are not read, so their damage
/// is not seen. The walk counts if the result's `synced_below` is not below its `begin`: otherwise what lies before
/// may have been lost with the power, and then another frame is the last that counts.
WalkResult walk_journal_from(FileSystem& files, const std::string& study_directory, std::uint64_t at_most,
                             const std::function<bool(const FrameView&)>& begins,
                             const std::function<void(const FrameView&)>& visit);

/// What has been written behind the end of an earlier walk; the result is that of a walk through everything. The frames
/// before it are not read again.
WalkResult walk_journal_behind(FileSystem& files, const std::string& study_directory, const JournalPosition& end,
                               std::uint64_t synced_below);

} // namespace ranktune::storage
