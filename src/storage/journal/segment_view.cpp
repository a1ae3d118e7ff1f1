// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ranktune/base/error.hpp"
#include "storage/fields.hpp"
#include "storage/journal/journal_walk.hpp"

namespace ranktune::storage {
namespace {

/// Small enough to stay in the CPU's cache between read and checksum.
constexpr std::uint64_t window_bytes = std::uint64_t{256} * 1024;

} // namespace

SegmentView::SegmentView(FileSystem& files, const std::string& study_directory, std::uint32_t number)
    : path_(segment_path(study_directory, number)),
      file_(files.open(path_, FileSystem::Open::read)),
      header_(read_segment_header(*file_, path_)) {
    if (header_.segment != number) {
        throw base::FormatError("'" + path_ + "' is segment " + std::to_string(header_.segment) +
                                " under another number: journal files were renamed or copied over each other");
    }
    // Size and header are synced before the segment gets its name, so no crash makes it shorter.
    if (const std::uint64_t all = header_.payload_offset + header_.payload_bytes; file_->size() < all) {
        throw base::FormatError("'" + path_ + "' is cut short: " + std::to_string(file_->size()) + " of " +
                                std::to_string(all) +
                                " bytes are there. This is not the unfinished end of a crashed run: a copy was not "
                                "finished, or something has truncated the file. " +
                                restore_advice);
    }
}

/// Reads a new window from `at`, unless the present one reaches the payload's end.
std::span<const std::byte> SegmentView::bytes_behind_window(std::uint64_t at, std::uint64_t size) {
    const std::uint64_t left = header_.payload_bytes - std::min(at, header_.payload_bytes);
    size = std::min(size, left);
    if (at < window_at_ || at + size > window_at_ + window_size_) {
        const std::uint64_t wanted = std::min(std::max(size, window_bytes), left);
        // One frame with a snapshot may be a thousand times larger than the others.
        if (window_.size() < wanted || window_.size() > std::max(wanted, window_bytes))
            std::vector<std::byte>(std::max(wanted, std::min(window_bytes, left))).swap(window_);
        window_at_ = at;
        window_size_ = file_->read_at(header_.payload_offset + at, std::span(window_).first(wanted));
    }
    const std::uint64_t skip = at - window_at_;
    return std::span<const std::byte>(window_).subspan(skip, std::min<std::uint64_t>(size, window_size_ - skip));
}

std::optional<FrameView> SegmentView::frame_at(std::uint64_t at, std::uint64_t limit, std::uint64_t near) {
    limit = std::min(limit, header_.payload_bytes);
    if (at + frame_header_bytes > limit) return {};
    const std::uint64_t size = sound_frame_size(bytes(at, frame_header_bytes), limit - at);
    if (size == 0) return {};
    const auto frame = bytes(at, size);
    if (frame.size() < size) return {};
    const auto header = decode_frame(frame, header_.crc, near);
    if (!header) return {};
    return FrameView{*header, frame.subspan(frame_header_bytes, header->bytes), size};
}

SegmentView::Rest SegmentView::scan(std::uint64_t at, std::uint64_t near) {
    Rest rest;
    const std::uint64_t begin = at;
    while (at < header_.payload_bytes) {
        const std::uint64_t data = file_->next_data(header_.payload_offset + at) - header_.payload_offset;
        at = std::max(at, data / frame_alignment * frame_alignment);
        const auto block = bytes(at, window_bytes);
        if (block.size() < frame_alignment) break;
        std::uint64_t step = 0;
        for (; step + frame_alignment <= block.size(); step += frame_alignment) {
            if (get<std::uint64_t>(block, step) == 0) continue;
            // A frame's header may continue after this block: begin the next block here.
            const bool more = at + block.size() < header_.payload_bytes;
            if (more && step > 0 && block.size() - step < frame_header_bytes) break;
            rest.bytes = at + step + frame_alignment - begin;
            if (sound_frame_size(block.subspan(step), header_.payload_bytes - at - step) == 0) continue;
            // Reading the frame may move the window: continue after it, or after this word, in a new block.
            if (const auto frame = frame_at(at + step, header_.payload_bytes, near)) {
                rest.synced_below = std::max(rest.synced_below, frame->header.synced_below());
                rest.end = std::max(rest.end, frame->header.first_sequence + frame->header.count);
                step += frame->size;
                rest.bytes = at + step - begin;
            } else {
                step += frame_alignment;
            }
            break;
        }
        at += std::max(step, frame_alignment);
    }
    return rest;
}

} // namespace ranktune::storage
