// SPDX-License-Identifier: Apache-2.0
#pragma once
// The ranks of an attempt, without memory of their own where they are few.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "ranktune/study/schema.hpp"

namespace ranktune::tuner {

/// A std::vector<Rank> that holds up to two ranks in place: every trial keeps the ranks of its newest attempt, and most
/// have one. It takes 16 bytes, where a vector of one rank takes 56 and an allocation at each start.
class RankList {
  public:
    using Rank = study::Rank;

    RankList() = default;
    RankList(std::span<const Rank> ranks) { assign(ranks); }    // NOLINT(google-explicit-constructor)
    RankList(const std::vector<Rank>& ranks) { assign(ranks); } // NOLINT(google-explicit-constructor)
    RankList(const RankList& other) : RankList(std::span(other)) {}
    RankList(RankList&& other) noexcept { swap(other); }
    RankList& operator=(RankList other) noexcept {
        swap(other);
        return *this;
    }
    RankList& operator=(std::initializer_list<Rank> ranks) { return *this = RankList(std::span(ranks)); }
    ~RankList() {
        if (!in_place()) delete[] memory_.many;
    }

    operator std::vector<Rank>() const { return {begin(), end()}; } // NOLINT(google-explicit-constructor)
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] const Rank* begin() const { return in_place() ? memory_.few : memory_.many; }
    [[nodiscard]] const Rank* end() const { return begin() + size_; }
    /// Requires !empty().
    [[nodiscard]] Rank front() const { return *begin(); }
    [[nodiscard]] Rank operator[](std::size_t position) const { return begin()[position]; }
    friend bool operator==(const RankList& a, const RankList& b) { return std::ranges::equal(a, b); }
    friend bool operator==(const RankList& a, const std::vector<Rank>& b) { return std::ranges::equal(a, b); }

  private:
    static constexpr std::uint32_t most_in_place = 2;
    union Memory {
        Memory() : many(nullptr) {}
        Rank few[most_in_place];
        Rank* many; ///< owned
    };
    [[nodiscard]] bool in_place() const { return size_ <= most_in_place; }
    /// Requires that it is empty.
    void assign(std::span<const Rank> ranks) {
        size_ = static_cast<std::uint32_t>(ranks.size());
        if (!in_place()) memory_.many = new Rank[size_];
        std::ranges::copy(ranks, in_place() ? memory_.few : memory_.many);
    }
    void swap(RankList& other) noexcept {
        std::swap(size_, other.size_);
        std::swap(memory_, other.memory_);
    }

    std::uint32_t size_ = 0;
    Memory memory_;
};

} // namespace ranktune::tuner

namespace ranktune::study {

template <class Sink>
void put(BasicEncoder<Sink>& out, const tuner::RankList& ranks) {
    put(out, std::vector<Rank>(ranks));
}
inline void get(Decoder& in, tuner::RankList& ranks) { ranks = tuner::RankList(decoded<std::vector<Rank>>(in)); }

} // namespace ranktune::study
