// SPDX-License-Identifier: Apache-2.0
#pragma once
// Order: which sample stands at which position of an epoch. Pure functions of (seed, trial, epoch, position): nothing
// is saved, and any rank, start or language computes the same. tools/python/ranktune_order.py has them in Python.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ranktune::data {

/// Names one permutation. `part`: 0 the units of an epoch, 1 + place the rows of one unit, 2^63 + period a mixture,
/// 2^64 - 1 the rest of an epoch.
struct PermutationKey {
    std::uint64_t seed = 0;
    std::uint32_t trial = 0;
    std::uint32_t epoch = 0;
    std::uint64_t part = 0;
};

/// A bijection of 0 .. size-1. Up to `table_limit` values: Fisher and Yates' shuffle in a table. Above: an unbalanced
/// Feistel network of 6 rounds on ceil(log2 size) bits, applied again while the result is out of range (cycle-walking:
/// Black and Rogaway 2002; at most 2 tries on average), without a table. Copyable.
class Permutation {
  public:
    static constexpr std::uint64_t table_limit = 65536;

    Permutation(std::uint64_t size, const PermutationKey& key);
    [[nodiscard]] std::uint64_t size() const { return size_; }
    /// Requires x < size().
    [[nodiscard]] std::uint64_t operator()(std::uint64_t x) const;

  private:
    static constexpr int rounds = 6;
    [[nodiscard]] std::uint64_t feistel(std::uint64_t x) const;

    std::uint64_t size_;
    int bits_ = 0;
    std::array<std::uint64_t, rounds> keys_{};
    std::vector<std::uint32_t> table_;
};

enum class Shuffle : std::uint8_t {
    automatic, ///< `full` or `lanes`, by the data: see order_shape
    full,      ///< one permutation of all samples
    lanes,     ///< units of neighbouring samples in random order, many of them open at once
    none,      ///< the order of the file
};

/// What an order depends on. A function of the data and of options, never of ranks, hosts or memory that is free.
struct OrderShape {
    std::uint64_t samples = 0;
    std::uint64_t unit = 1;    ///< samples that are read together; 1: no lanes
    std::uint64_t lanes = 960; ///< units that are open at once, over all ranks; 960 = 2^6 * 3 * 5
    bool shuffled = true;
    friend bool operator==(const OrderShape&, const OrderShape&) = default;
};

/// What the user chooses.
struct OrderOptions {
    Shuffle shuffle = Shuffle::automatic;
    std::uint64_t memory = std::uint64_t{1} << 30U; ///< bytes of the units that are open at once, over all ranks
};

/// How samples lie in their file.
struct Extent {
    std::uint64_t samples = 0;
    std::uint64_t sample_bytes = 0;  ///< of all fields
    std::uint64_t chunk_samples = 1; ///< 1: a sample can be read by itself
};

/// `automatic` is `full` where samples can be read by themselves, or all of them fit into `memory`; otherwise `lanes`.
/// A unit has whole chunks and 256 KiB at least. The number of lanes is the largest of 960, 480, 240 and the smaller
/// divisors of 960 whose units fit into `memory`; at least 1.
[[nodiscard]] OrderShape order_shape(const Extent& extent, const OrderOptions& options);

/// What makes this order mix less, or ranks read more, than could be: sentences for the user, without the file's name.
/// Dataset._advice of tools/python/ranktune_data.py says the same.
[[nodiscard]] std::vector<std::string> order_advice(const Extent& extent, const OrderOptions& options, int ranks);

/// The samples of one epoch, each once. Position p belongs to lane p % lanes, so that a number of ranks which divides
/// the number of lanes reads each unit on one rank. Lanes are out of step, so that reading is even. What does not fill
/// all lanes comes last, mixed as one. Copyable; calls need one thread at a time, because open units are remembered.
class Order {
  public:
    /// Requires shape.unit > 0 and shape.lanes > 0. The upper half of `epoch` is ignored.
    Order(const OrderShape& shape, std::uint64_t seed, std::uint32_t trial, std::uint64_t epoch);
    [[nodiscard]] std::uint64_t size() const { return shape_.samples; }
    /// The sample at a position; requires position < size(). Takes 20 to 80 ns.
    [[nodiscard]] std::uint64_t operator()(std::uint64_t position);

  private:
    struct Lane {
        std::uint64_t place = ~std::uint64_t{0}; ///< of the open unit
        std::uint64_t first = 0;                 ///< its first sample
        std::vector<Permutation> rows;           ///< one, if a unit is open
    };
    [[nodiscard]] std::uint64_t in_lane(std::uint64_t position);
    [[nodiscard]] std::uint64_t in_rest(std::uint64_t position);
    [[nodiscard]] PermutationKey key(std::uint64_t part) const { return {seed_, trial_, epoch_, part}; }

    OrderShape shape_;
    std::uint64_t seed_;
    std::uint32_t trial_;
    std::uint32_t epoch_;
    std::uint64_t whole_units_;
    std::uint64_t turns_; ///< units of each lane
    std::uint64_t rest_;  ///< the first position behind the lanes
    std::vector<Permutation> units_;
    std::vector<Lane> lanes_;
    std::vector<Permutation> mixed_; ///< the rest, once it is reached
};

/// The positions of [begin, end) that rank `rank` of `size` trains: p % size == rank. Shares differ by at most one.
///
///   Share(6, 13, 1, 3): 7 10
class Share {
  public:
    /// Requires begin <= end and 0 <= rank < size.
    constexpr Share(std::uint64_t begin, std::uint64_t end, int rank, int size)
        : step_(static_cast<std::uint64_t>(size)),
          first_(begin + (static_cast<std::uint64_t>(rank) + step_ - begin % step_) % step_),
          count_(first_ < end ? (end - first_ + step_ - 1) / step_ : 0) {}
    [[nodiscard]] constexpr std::uint64_t size() const { return count_; }
    /// Requires i < size().
    [[nodiscard]] constexpr std::uint64_t operator[](std::uint64_t i) const { return first_ + i * step_; }

  private:
    std::uint64_t step_;
    std::uint64_t first_;
    std::uint64_t count_;
};

} // namespace ranktune::data
