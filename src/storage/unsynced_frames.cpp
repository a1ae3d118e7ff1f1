// SPDX-License-Identifier: Apache-2.0
#include "storage/unsynced_frames.hpp"

#include <algorithm>
#include <cstring>

#include "ranktune/base/huge_pages.hpp"
#include "storage/segment.hpp"

namespace ranktune::storage {
namespace {

constexpr std::size_t smallest_piece = std::size_t{64} * 1024;
/// A page fault for each 4 KiB would cost as much as writing them.
constexpr std::size_t largest_piece = base::huge_page_bytes;

constexpr std::size_t cache_line = 64;
constexpr std::size_t most_prefetched = 8192;

} // namespace

UnsyncedFrames::Frame UnsyncedFrames::frame_at(const Piece& piece, std::size_t at) {
    Frame frame;
    std::byte* const head = piece.memory.get() + at;
    std::memcpy(&frame.first_sequence, head, 8);
    std::memcpy(&frame.count, head + 8, 4);
    std::memcpy(&frame.record_bytes, head + 12, 4);
    frame.bytes = {head + head_bytes, static_cast<std::size_t>(frame_size(frame.record_bytes))};
    return frame;
}

UnsyncedFrames::Piece UnsyncedFrames::new_piece(std::size_t size) {
    Piece piece;
    piece.memory.reset(static_cast<std::byte*>(base::allocate_large(size)));
    piece.size = size;
    return piece;
}

UnsyncedFrames::Piece UnsyncedFrames::make_spare() {
    constexpr std::size_t page = 4096;
    Piece piece = new_piece(largest_piece);
    for (std::size_t at = 0; at < piece.size; at += page) piece.memory.get()[at] = std::byte{0};
    return piece;
}

/// Pieces double with what is kept: a quiet study needs one small piece.
void UnsyncedFrames::add_piece(std::size_t wanted) {
    const auto kept = static_cast<std::size_t>(std::min<std::uint64_t>(2 * bytes_, largest_piece));
    const std::size_t size = std::max({smallest_piece, kept, wanted});
    const auto found = std::find_if(spare_.begin(), spare_.end(), [&](const Piece& p) { return p.size >= size; });
    if (found == spare_.end()) {
        pieces_.push_back(new_piece(size));
        return;
    }
    pieces_.push_back(std::move(*found));
    spare_.erase(found);
}

void UnsyncedFrames::put_aside(Piece&& piece) {
    if (piece.size > largest_piece || spare_.size() == most_spare) return;
    piece.begin = piece.end = 0;
    piece.frame_bytes = piece.sequence = 0;
    spare_.push_back(std::move(piece));
}

void UnsyncedFrames::push(const Frame& frame) {
    const std::size_t size = head_bytes + frame.bytes.size();
    if (pieces_.empty() || pieces_.back().room() < size) add_piece(size);
    Piece& piece = pieces_.back();
    std::byte* const to = piece.memory.get() + piece.end;
    std::memcpy(to, &frame.first_sequence, 8);
    std::memcpy(to + 8, &frame.count, 4);
    std::memcpy(to + 12, &frame.record_bytes, 4);
    std::memcpy(to + head_bytes, frame.bytes.data(), frame.bytes.size());
    piece.end += size;
    piece.frame_bytes += frame.bytes.size();
    piece.sequence = frame.first_sequence + frame.count;
    bytes_ += frame.bytes.size();
    // The next frame is likely of the same size: the memory for it comes while that one is encoded.
    const std::byte* const next = to + size;
    for (std::size_t at = 0; at < std::min({size, piece.room(), most_prefetched}); at += cache_line)
        __builtin_prefetch(next + at, 1);
}

void UnsyncedFrames::drop_below(std::uint64_t sequence) {
    auto first = pieces_.begin();
    for (; first != pieces_.end() && first->sequence <= sequence; ++first) {
        bytes_ -= first->frame_bytes;
        put_aside(std::move(*first));
    }
    pieces_.erase(pieces_.begin(), first);
    if (pieces_.empty()) return;
    Piece& piece = pieces_.front();
    while (piece.begin < piece.end) {
        const Frame frame = frame_at(piece, piece.begin);
        if (frame.first_sequence >= sequence) break;
        piece.begin += head_bytes + frame.bytes.size();
        piece.frame_bytes -= frame.bytes.size();
        bytes_ -= frame.bytes.size();
    }
}

void UnsyncedFrames::clear() {
    for (Piece& piece : pieces_) put_aside(std::move(piece));
    pieces_.clear();
    bytes_ = 0;
}

} // namespace ranktune::storage
