// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which cores each rank of a node should keep to. Pure: from what the launcher granted, and the shape of the node.
//
// Ranks that were granted the same processors share them out. The head gets one core, because it naps between messages;
// where the workers need all of them it stays unbound. A rank never gets a processor that it was not granted, and
// nobody is bound where that would cost a worker processors that it needs.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/topology/machine.hpp"

namespace ranktune::comm {

struct NodeBinding {
    /// By position in `granted`; empty: the rank stays as it is.
    std::vector<CpuSet> cpus;
    /// In words for a log, by group of ranks that share a grant: "8 cores split: 1 for the head, 7 for 3 workers".
    std::vector<std::string> words;
    [[nodiscard]] bool any() const;
};

/// `granted`: the mask of every rank of one node, by rank. `head`: position of the head among them. `cpus_per_rank`:
/// processors that a worker needs at least (`resources.cpus_per_rank`).
///
///   granted {0-7, 0-7, 0-7}, head 0, 8 cores   ->  {0}, {1-3}, {4-7}
///   granted {0}, {1}, {2}                      ->  as they are: the launcher has bound them
///   granted {0-1} x 3, 2 cores                 ->  {} for the head (it may use both), {0}, {1}
///   granted {0-1} x 5, 2 cores                 ->  as they are: fewer cores than workers
[[nodiscard]] NodeBinding bind_node(const std::vector<CpuSet>& granted, std::optional<std::size_t> head,
                                    const Machine& machine, std::uint32_t cpus_per_rank);

/// The NUMA domain in which all of `cpus` lie; nothing: several, or not known.
[[nodiscard]] std::optional<std::uint32_t> domain_of(const CpuSet& cpus, const Machine& machine);

} // namespace ranktune::comm
