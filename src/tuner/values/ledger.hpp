// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ledger: which worker ranks are free, and where a group of n would go.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ranktune/study/vocabulary.hpp"

namespace ranktune::tuner {

/// Free ranks, by place: domains (NVLink or NUMA) within hosts within switches. `plan` is pure and depends only on the
/// set of free ranks, not on the order in which they became free. No operation depends on the number of trials; each is
/// O(depth * log places + ranks of the place moved).
class Ledger {
  public:
    /// All of `workers` are free. Places are numbered in order of their first rank.
    void reset(const std::vector<study::RankInfo>& workers);

    [[nodiscard]] std::uint32_t free() const { return free_; }
    [[nodiscard]] std::uint32_t alive() const { return alive_; }
    /// Ranks for a group of `size`, ascending: from the domain that fits most tightly; if none fits, from such a host;
    /// then from such a switch, lower ones first; otherwise from the whole job. Ties go to the place that was numbered
    /// first. Within a place, inner places with the most free ranks come first, so that the group is split into few
    /// parts. In an innermost place, groups begin at multiples of their size where such a block is free, so that the
    /// same ranks meet again and find their communicator in the cache; otherwise they get the lowest ranks. `largest`:
    /// the size of the largest groups of the study; smaller ones of a power of two leave larger blocks whole. (When all
    /// groups have one rank, each gets the lowest.) Empty when fewer than `size` are free. Requires size > 0.
    [[nodiscard]] std::vector<study::Rank> plan(std::uint32_t size, std::uint32_t largest) const;
    /// Requires that `rank` is free.
    void take(study::Rank rank);
    /// Requires that `rank` is taken and alive.
    void release(study::Rank rank);
    /// The rank is gone, free or not.
    void lose(study::Rank rank, bool was_free);
    [[nodiscard]] bool is_free(study::Rank rank) const;

  private:
    using PlaceIndex = std::uint32_t;
    struct Free {
        std::uint32_t ranks = 0; ///< > 0
        PlaceIndex place = 0;
    };
    struct TightestFirst {
        bool operator()(const Free& a, const Free& b) const {
            return a.ranks != b.ranks ? a.ranks < b.ranks : a.place < b.place;
        }
    };
    struct WidestFirst {
        bool operator()(const Free& a, const Free& b) const {
            return a.ranks != b.ranks ? a.ranks > b.ranks : a.place < b.place;
        }
    };
    struct Place {
        PlaceIndex around = 0; ///< the place that this one lies in; the whole job lies in itself
        std::size_t level = 0; ///< in `levels_`
        std::uint32_t free = 0;
        std::set<Free, WidestFirst> within; ///< the places in it
        /// Free ranks of an innermost place, descending, because the lowest are taken first.
        std::vector<study::Rank> ranks;
        std::vector<study::Rank> members; ///< all ranks of an innermost place, ascending; in service or not
    };
    template <class Places>
    static void recount(Places& places, PlaceIndex place, std::uint32_t before, std::uint32_t after);
    [[nodiscard]] PlaceIndex place_of(study::Rank rank) const;
    void add(PlaceIndex place, std::int32_t ranks);
    void collect(PlaceIndex place, std::uint32_t wanted, bool aligned, std::vector<study::Rank>& ranks) const;
    [[nodiscard]] std::size_t start_of_block(const Place& place, std::uint32_t size) const;
    [[nodiscard]] std::uint32_t room_around(const Place& place, std::uint32_t first, std::uint32_t size) const;

    std::vector<Place> places_;                  ///< the first: the whole job
    std::vector<PlaceIndex> place_by_rank_;      ///< position: rank
    std::vector<std::uint32_t> number_in_place_; ///< position: rank; its position in Place::members
    /// Places by level, in the order of the search: domains, hosts, switches upwards.
    std::vector<std::set<Free, TightestFirst>> levels_;
    std::uint32_t free_ = 0;
    std::uint32_t alive_ = 0;
};

} // namespace ranktune::tuner
