// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ledger: which worker ranks are free, and where a group of n would go.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ranktune/study/vocabulary.hpp"

namespace ranktune::tuner {

/// Free ranks, by host. `plan` is pure and depends on the set of free ranks alone, never on the order in which they
/// fell free. No operation depends on the number of trials; each is O(log hosts + ranks moved).
class Ledger {
  public:
    /// All of `workers` are free. Hosts are numbered in order of their first rank.
    void reset(const std::vector<study::RankInfo>& workers);

    [[nodiscard]] std::uint32_t free() const { return free_; }
    [[nodiscard]] std::uint32_t alive() const { return alive_; }
    /// Ranks for a group of `size`, ascending: the lowest free ranks of the host that fits it most tightly (ties: the
    /// lower host); if no host fits, of the hosts with most free ranks. Empty when fewer than `size` are free. Requires
    /// size > 0.
    [[nodiscard]] std::vector<study::Rank> plan(std::uint32_t size) const;
    /// Requires that `rank` is free.
    void take(study::Rank rank);
    /// Requires that `rank` is taken and alive.
    void release(study::Rank rank);
    /// The rank is gone, free or not.
    void lose(study::Rank rank, bool was_free);
    [[nodiscard]] bool is_free(study::Rank rank) const;

  private:
    struct Host {
        std::set<study::Rank> free;
    };
    [[nodiscard]] std::uint32_t host_of(study::Rank rank) const;
    void move(std::uint32_t host, std::size_t before);

    std::vector<Host> hosts_;
    std::vector<std::uint32_t> host_by_rank_;                        ///< position: rank
    std::map<std::uint32_t, std::set<std::uint32_t>> hosts_by_free_; ///< number of free ranks (> 0) -> hosts
    std::uint32_t free_ = 0;
    std::uint32_t alive_ = 0;
};

} // namespace ranktune::tuner
