// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chooses the cores of each rank of a node. Pure: input are the cores that the launcher granted and the node's
// topology.
//
// Ranks that were granted the same processors split them. The head gets one core, because it sleeps between messages;
// where the workers need all cores it stays unbound. A rank never gets a processor that it was not granted, and no rank
// is bound where a worker would get too few processors.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/topology/machine.hpp"

namespace ranktune::comm {

struct NodeBinding {
    /// By position in `granted`; empty: the rank is not bound.
    std::vector<CpuSet> cpus;
    /// Log texts, one per group of ranks with the same grant: "8 cores split: 1 for the head, 7 for 3 workers".
    std::vector<std::string> words;
};

/// `granted`: the mask of every rank of one node, by rank. `head`: position of the head among them. `cpus_per_rank`:
/// minimum of processors per worker (`resources.cpus_per_rank`).
///
///   granted {0-7, 0-7, 0-7}, head 0, 8 cores   ->  {0}, {1-3}, {4-7}
///   granted {0}, {1}, {2}                      ->  as they are: the launcher has bound them
///   granted {0-1} x 3, 2 cores                 ->  {} for the head (it may use both), {0}, {1}
///   granted {0-1} x 5, 2 cores                 ->  as they are: fewer cores than workers
[[nodiscard]] NodeBinding bind_node(const std::vector<CpuSet>& granted, std::optional<std::size_t> head,
                                    const Machine& machine, std::uint32_t cpus_per_rank);

/// The NUMA domain that contains all of `cpus`; nothing: several domains, or unknown.
[[nodiscard]] std::optional<std::uint32_t> domain_of(const CpuSet& cpus, const Machine& machine);

} // namespace ranktune::comm
