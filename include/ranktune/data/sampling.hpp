// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which rank trains on which sample when: pure functions of (seed, trial, epoch) and the number of ranks.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ranktune::data {

/// A half-open range of positions.
struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
    [[nodiscard]] constexpr std::size_t size() const { return end - begin; }
    friend constexpr bool operator==(Range, Range) = default;
};

/// Rank `rank`'s contiguous piece of `range` among `size` ranks: sizes differ by at most one, the larger ones first;
/// empty when there are more ranks than positions. The pieces in rank order are the whole range.
///
///   shard({0, 7}, 0, 3) = {0, 3}   shard({0, 7}, 1, 3) = {3, 5}   shard({0, 7}, 2, 3) = {5, 7}
[[nodiscard]] constexpr Range shard(Range range, int rank, int size) {
    const std::size_t pieces = static_cast<std::size_t>(size);
    const std::size_t piece = static_cast<std::size_t>(rank);
    const std::size_t each = range.size() / pieces;
    const std::size_t larger = range.size() % pieces;
    const std::size_t begin = range.begin + piece * each + (piece < larger ? piece : larger);
    return {begin, begin + each + (piece < larger ? 1 : 0)};
}

/// The progress of a training run, independent of the number of ranks: `sample` is a position in the epoch's order.
struct Position {
    std::uint64_t epoch = 0;
    std::uint64_t sample = 0;
    friend constexpr bool operator==(Position, Position) = default;
};

/// The samples 0 .. count-1 in the order of one epoch: Fisher and Yates' shuffle (Knuth's algorithm P) with the stream
/// (seed, shuffle, trial, epoch). Fills `order`, reusing its memory. Requires count <= 2^32.
void shuffle_epoch(std::vector<std::uint32_t>& order, std::size_t count, std::uint64_t seed, std::uint32_t trial,
                   std::uint64_t epoch);

/// The global batches of one epoch: `batch` samples each; the last one has the remaining samples.
class Batches {
  public:
    /// Requires batch > 0.
    constexpr Batches(std::size_t count, std::size_t batch) : count_(count), batch_(batch) {}
    [[nodiscard]] constexpr std::size_t size() const { return (count_ + batch_ - 1) / batch_; }
    [[nodiscard]] constexpr Range operator[](std::size_t i) const {
        const std::size_t begin = i * batch_;
        return {begin, begin + batch_ < count_ ? begin + batch_ : count_};
    }

  private:
    std::size_t count_;
    std::size_t batch_;
};

} // namespace ranktune::data
