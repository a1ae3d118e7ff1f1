// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the journal has written and does not yet know to be on the disk.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ranktune/base/huge_pages.hpp"

namespace ranktune::storage {

/// Copies of frames in the order of their records, in a few large pieces of memory: one allocation for thousands of
/// frames, and pieces are used again. Not thread-safe.
class UnsyncedFrames {
  public:
    struct Frame {
        std::uint64_t first_sequence = 0;
        std::uint32_t count = 0;        ///< of records
        std::uint32_t record_bytes = 0; ///< without head and padding
        std::span<std::byte> bytes;     ///< the whole frame, `frame_size(record_bytes)` bytes
    };

    /// Copies the frame. Throws std::bad_alloc; nothing is changed then.
    void push(const Frame& frame);
    /// Forgets the frames that begin below this record; `sequence` lies between two frames.
    void drop_below(std::uint64_t sequence);
    void clear();

    [[nodiscard]] bool empty() const { return bytes_ == 0; }
    /// Of all frames.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    /// Calls `visit` with every frame, in order.
    template <class Visit>
    void for_each(Visit&& visit) {
        for (const Piece& piece : pieces_) {
            for (std::size_t at = piece.begin; at < piece.end;) {
                const Frame frame = frame_at(piece, at);
                visit(frame);
                at += head_bytes + frame.bytes.size();
            }
        }
    }

    struct Free {
        void operator()(std::byte* memory) const noexcept { base::free_large(memory); }
    };
    /// Memory for frames.
    struct Piece {
        std::unique_ptr<std::byte, Free> memory;
        std::size_t size = 0;
        std::size_t begin = 0; ///< of the first frame that is still needed
        std::size_t end = 0;
        std::uint64_t frame_bytes = 0; ///< of the frames between `begin` and `end`
        std::uint64_t sequence = 0;    ///< behind the last frame
        [[nodiscard]] std::size_t room() const { return size - end; }
    };
    /// Frames come so fast that it pays to make memory ready for them on another thread.
    [[nodiscard]] bool wants_spare() const { return bytes_ >= spare_from && spare_.size() < most_spare; }
    /// The next piece is needed, and would have to come from the kernel.
    [[nodiscard]] bool lacks_memory(const Frame& frame) const {
        return spare_.empty() && (pieces_.empty() || pieces_.back().room() < head_bytes + frame.bytes.size());
    }
    /// Of the largest usual size, every page of it touched. Throws std::bad_alloc. May run beside everything else.
    [[nodiscard]] static Piece make_spare();
    void add_spare(Piece&& piece) { put_aside(std::move(piece)); }

  private:
    /// Number of the first record, number of records, their bytes: before every frame.
    static constexpr std::size_t head_bytes = 16;
    static constexpr std::size_t most_spare = 8;
    static constexpr std::uint64_t spare_from = std::uint64_t{512} * 1024;

    [[nodiscard]] static Frame frame_at(const Piece& piece, std::size_t at);
    [[nodiscard]] static Piece new_piece(std::size_t size);
    void add_piece(std::size_t wanted);
    void put_aside(Piece&& piece);

    std::vector<Piece> pieces_; ///< the last one is written to
    std::vector<Piece> spare_;
    std::uint64_t bytes_ = 0;
};

} // namespace ranktune::storage
