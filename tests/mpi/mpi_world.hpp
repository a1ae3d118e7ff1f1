// SPDX-License-Identifier: Apache-2.0
#pragma once
// The world that MPI tests run in: its environment, and which of its ranks form groups.

#include <vector>

#include "comm/mpi/environment.hpp"
#include "ranktune/base/ids.hpp"

namespace ranktune::test {

/// The environment that main created: valid in every test case.
[[nodiscard]] const comm::mpi::Environment& world();

using Roster = std::vector<base::Rank>;

/// With seven ranks or more: rank 0 alone (the head), then groups of 3, 2 and 1, and the rest. Else one group of all.
inline std::vector<Roster> rosters(int world_size) {
    const auto range = [](std::uint32_t begin, std::uint32_t end) {
        Roster roster;
        for (auto rank = begin; rank < end; ++rank) roster.push_back(base::Rank{rank});
        return roster;
    };
    const auto size = static_cast<std::uint32_t>(world_size);
    if (size < 7) return {range(0, size)};
    std::vector<Roster> result{range(0, 1), range(1, 4), range(4, 6), range(6, 7)};
    if (size > 7) result.push_back(range(7, size));
    return result;
}

/// The group that `rank` belongs to.
inline Roster roster_of(int rank, int world_size) {
    const base::Rank me{static_cast<std::uint32_t>(rank)};
    for (const auto& roster : rosters(world_size)) {
        if (roster.front() <= me && me <= roster.back()) return roster;
    }
    return {me};
}

} // namespace ranktune::test
