// SPDX-License-Identifier: Apache-2.0
#pragma once
// Walks a journal frame by frame and finds its valid frames, its end and missing parts. Used by readers and by a head
// that takes a study over.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/journal/segment.hpp"

namespace ranktune::storage {

/// Advice for a damaged or incomplete journal.
inline constexpr const char* restore_advice =
    "Restore the file from a backup or a snapshot of the file system. Without one, start again with the study file "
    "(not the directory) and --fresh; checkpoints and result files stay readable";

/// A frame in a buffer of the view; valid until the next call.
struct FrameView {
    FrameHeader header;
    std::span<const std::byte> records;
    std::uint64_t size = 0;
};

/// One segment, read by plain reads through a window buffer.
class SegmentView {
  public:
    /// Throws base::IoError, or base::FormatError when the header page is invalid or names another segment.
    SegmentView(FileSystem& files, const std::string& study_directory, std::uint32_t number);

    [[nodiscard]] const SegmentHeader& header() const { return header_; }
    [[nodiscard]] const std::string& path() const { return path_; }
    /// Bytes of the file behind its header page. Throws base::IoError.
    [[nodiscard]] std::uint64_t payload_size() const {
        return std::max(file_->size(), header_.payload_offset) - header_.payload_offset;
    }
    /// The frame at payload offset `at`, if it is valid and ends at or before `limit`. `near`: see decode_frame.
    [[nodiscard]] std::optional<FrameView> frame_at(std::uint64_t at, std::uint64_t limit, std::uint64_t near);
    /// What follows `at`, where no valid frame was found.
    struct Rest {
        std::uint64_t bytes = 0;        ///< from `at` to the last byte that is not zero
        std::uint64_t synced_below = 0; ///< the largest value of the valid frames found
        std::uint64_t end = 0;          ///< one past the last record of those frames; 0: no frames
    };
    [[nodiscard]] Rest scan(std::uint64_t at, std::uint64_t near);
    /// Drops the window: the next access reads from the file.
    void forget() { window_size_ = 0; }
    /// The same, and frees the memory.
    void release() {
        forget();
        std::vector<std::byte>().swap(window_);
    }

  private:
    /// `size` bytes at payload offset `at`, fewer at its end.
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
    JournalPosition end;         ///< after the last valid record
    std::uint64_t cut_bytes = 0; ///< unusable bytes after `end`
    /// Complete records among the cut bytes: power was lost before they were synced. 0: only one unfinished frame was
    /// cut.
    std::uint64_t cut_records = 0;
    std::uint32_t segments = 0;     ///< files
    std::uint64_t begin = 0;        ///< first record that was visited
    std::uint64_t synced_below = 0; ///< records below this number are known to have been synced
};

/// Visits every valid frame, in order. A torn tail ends the walk. Throws base::UsageError when there is no journal,
/// base::FormatError for a damaged middle (with advice) and for a newer format.
WalkResult walk_journal(FileSystem& files, const std::string& study_directory,
                        const std::function<void(const FrameView&)>& visit);

/// The same, but starts at the newest segment whose first frame begins at or before record `at_most` and for which
/// `begins` returns true (a reader can start there); at record 0 if there is none. Earlier frames are not read, so
/// their damage is not seen. The result is valid only if `synced_below` >= `begin`: otherwise earlier records may have
/// been lost with the power, and the journal may end before `begin`.
WalkResult walk_journal_from(FileSystem& files, const std::string& study_directory, std::uint64_t at_most,
                             const std::function<bool(const FrameView&)>& begins,
                             const std::function<void(const FrameView&)>& visit);

/// Continues from the end of an earlier walk without reading earlier frames again; gives the result of a walk through
/// the whole journal.
WalkResult walk_journal_behind(FileSystem& files, const std::string& study_directory, const JournalPosition& end,
                               std::uint64_t synced_below);

/// The same for a reader that follows a journal, and visits the frames behind `end`. Nothing when the journal does not
/// hold what was read up to `end`: it belongs to another study than `uuid`, or another head went on before `end`.
std::optional<WalkResult> walk_journal_on(FileSystem& files, const std::string& study_directory,
                                          const std::string& uuid, const JournalPosition& end,
                                          std::uint64_t synced_below,
                                          const std::function<void(const FrameView&)>& visit);

} // namespace ranktune::storage
