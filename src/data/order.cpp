// SPDX-License-Identifier: Apache-2.0
#include "ranktune/data/order.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>
#include <utility>

#include "ranktune/base/rng.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::data {

namespace {

constexpr std::uint64_t rest_part = ~std::uint64_t{0};
constexpr std::uint64_t smallest_unit_bytes = std::uint64_t{256} << 10U;
constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
constexpr std::uint64_t enough_lanes = 240; ///< batches are nearly as even as those of `full`

/// The random numbers of one key. The epoch is in the place of a purpose.
base::RngStream draws_of(const PermutationKey& key) {
    return {key.seed, static_cast<base::Purpose>(key.epoch), static_cast<std::uint32_t>(key.part >> 32) ^ key.trial,
            static_cast<std::uint32_t>(key.part)};
}

/// Stafford's mix 13 of a 64-bit number, as in SplitMix64.
std::uint64_t mix13(std::uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9U;
    x = (x ^ x >> 27) * 0x94D049BB133111EBU;
    return x ^ x >> 31;
}

/// 960, 480, 240, and then the next divisor of 960, so that many numbers of ranks divide them.
std::uint64_t fewer_lanes(std::uint64_t lanes) {
    if (lanes > enough_lanes) return lanes / 2;
    do --lanes;
    while (960 % lanes != 0);
    return lanes;
}

/// The next smaller and the next larger divisor: "8 or 10".
std::string divisors_beside(std::uint64_t lanes, std::uint64_t ranks) {
    std::uint64_t fewer = ranks - 1;
    while (lanes % fewer != 0) --fewer;
    std::uint64_t more = ranks + 1;
    while (more < lanes && lanes % more != 0) ++more;
    return std::to_string(fewer) + (more <= lanes ? " or " + std::to_string(more) : "");
}

std::uint64_t low_bits(std::uint64_t x, int count) { return x & ((std::uint64_t{1} << count) - 1); }

} // namespace

Permutation::Permutation(std::uint64_t size, const PermutationKey& key) : size_(size) {
    base::RngStream draws = draws_of(key);
    if (size > table_limit) {
        bits_ = std::bit_width(size - 1);
        for (std::uint64_t& round : keys_) round = draws();
        return;
    }
    table_.resize(size);
    std::iota(table_.begin(), table_.end(), std::uint32_t{0});
    for (std::uint64_t i = size; i > 1; --i) std::swap(table_[i - 1], table_[draws.below(i)]);
}

std::uint64_t Permutation::operator()(std::uint64_t x) const {
    assert(x < size_);
    if (bits_ == 0) return table_[x];
    do x = feistel(x);
    while (x >= size_);
    return x;
}

/// (high, low) -> (low, high ^ mix13(low ^ key)), in each round: the widths of the halves change places.
std::uint64_t Permutation::feistel(std::uint64_t x) const {
    int width = bits_ / 2;
    for (const std::uint64_t round : keys_) {
        const int other = bits_ - width;
        const std::uint64_t low = low_bits(x, width);
        const std::uint64_t high = x >> width;
        x = low << other | low_bits(high ^ mix13(low ^ round), other);
        width = other;
    }
    return x;
}

OrderShape order_shape(const Extent& extent, const OrderOptions& options) {
    const auto [shuffle, memory] = options;
    OrderShape shape{.samples = extent.samples};
    shape.shuffled = shuffle != Shuffle::none;
    const std::uint64_t sample = std::max<std::uint64_t>(extent.sample_bytes, 1);
    const bool fits = extent.samples <= memory / sample;
    if (!shape.shuffled || shuffle == Shuffle::full) return shape;
    if (shuffle == Shuffle::automatic && (extent.chunk_samples <= 1 || fits)) return shape;
    const std::uint64_t chunk = std::max<std::uint64_t>(extent.chunk_samples, 1) * sample;
    shape.unit = std::max<std::uint64_t>(extent.chunk_samples, 1) * ((smallest_unit_bytes + chunk - 1) / chunk);
    while (shape.lanes > 1 && shape.lanes > memory / sample / shape.unit) shape.lanes = fewer_lanes(shape.lanes);
    return shape;
}

std::vector<std::string> order_advice(const Extent& extent, const OrderOptions& options, int ranks) {
    const OrderShape shape = order_shape(extent, options);
    if (!shape.shuffled || shape.unit == 1) return {};
    std::vector<std::string> advice;
    const std::uint64_t chunks = (shape.samples + shape.unit - 1) / shape.unit;
    if (shape.lanes < std::min(enough_lanes, chunks)) {
        const std::uint64_t open = std::min(enough_lanes * shape.unit, shape.samples);
        const std::uint64_t bytes = open * std::max<std::uint64_t>(extent.sample_bytes, 1);
        advice.push_back("batches mix " + std::to_string(shape.lanes) + " of " + base::grouped(chunks) +
                         " chunks, as no more of them fit into shuffle_memory (" + base::grouped(options.memory) +
                         " bytes); " + std::to_string((bytes + mebibyte - 1) / mebibyte) +
                         " MiB, or smaller chunks, mix " + std::to_string(std::min(enough_lanes, chunks)));
    }
    const auto size = static_cast<std::uint64_t>(ranks);
    if (const std::uint64_t reads = size / std::gcd(size, shape.lanes); reads > 1)
        advice.push_back("each chunk is read on " + std::to_string(reads) + " ranks, as " + std::to_string(ranks) +
                         " ranks do not divide the " + std::to_string(shape.lanes) + " chunks that are mixed; " +
                         divisors_beside(shape.lanes, size) + " do");
    return advice;
}

Order::Order(const OrderShape& shape, std::uint64_t seed, std::uint32_t trial, std::uint64_t epoch)
    : shape_(shape),
      seed_(seed),
      trial_(trial),
      epoch_(static_cast<std::uint32_t>(epoch)),
      whole_units_(shape.samples / shape.unit),
      turns_(shape.unit == 1 ? 0 : whole_units_ / shape.lanes),
      rest_(turns_ * shape.lanes * shape.unit),
      lanes_(turns_ == 0 ? 0 : shape.lanes) {
    if (shape.shuffled && whole_units_ > 0) units_.emplace_back(whole_units_, key(0));
}

std::uint64_t Order::operator()(std::uint64_t position) {
    assert(position < size());
    if (!shape_.shuffled) return position;
    if (shape_.unit == 1) return units_[0](position);
    return position < rest_ ? in_lane(position) : in_rest(position);
}

std::uint64_t Order::in_lane(std::uint64_t position) {
    const std::uint64_t number = position % shape_.lanes;
    // A lane begins within its first unit, and ends with what it left out there.
    const std::uint64_t begin = number * shape_.unit / shape_.lanes;
    const std::uint64_t step = (position / shape_.lanes + begin) % (turns_ * shape_.unit);
    const std::uint64_t place = step / shape_.unit * shape_.lanes + number;
    Lane& lane = lanes_[number];
    if (lane.place != place) {
        lane.place = place;
        lane.first = units_[0](place) * shape_.unit;
        lane.rows.clear();
        lane.rows.emplace_back(shape_.unit, key(1 + place));
    }
    return lane.first + lane.rows[0](step % shape_.unit);
}

std::uint64_t Order::in_rest(std::uint64_t position) {
    if (mixed_.empty()) mixed_.emplace_back(shape_.samples - rest_, key(rest_part));
    const std::uint64_t place = rest_ + mixed_[0](position - rest_);
    const std::uint64_t unit = place / shape_.unit;
    // The samples behind the last whole unit stay behind it.
    const std::uint64_t chosen = unit < whole_units_ ? units_[0](unit) : unit;
    return chosen * shape_.unit + place % shape_.unit;
}

} // namespace ranktune::data
