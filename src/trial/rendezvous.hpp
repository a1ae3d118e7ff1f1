// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the ranks of a program's trial learn of each other before their programs start.

#include <cstdint>
#include <string>
#include <vector>

#include "ranktune/ddp/group.hpp"
#include "ranktune/study/command.hpp"

namespace ranktune::trial {

/// Collective. What each rank says, in the order of ranks, on all of them.
[[nodiscard]] std::vector<std::string> gather(ddp::Group& group, const std::string& mine);

/// Collective. Rank 0's text on all ranks.
[[nodiscard]] std::string share(ddp::Group& group, std::string mine);

/// Where a rank of an attempt begins to look for a port. Trials that start at the same moment look at different places,
/// and so do two studies that share a node, or two lives of one: `directory` is that of the study.
[[nodiscard]] std::uint64_t port_start(const std::string& directory, const study::StartTrial& start, std::size_t rank);
/// A TCP port that nobody on this node uses now, below those that the kernel gives away by itself: the first of them
/// from the place `start` on. 0: none.
[[nodiscard]] std::uint16_t free_port(std::uint64_t start);

/// An address of this node that other nodes can resolve: `host` if it can be resolved here, else the host name.
[[nodiscard]] std::string reachable_address(const std::string& host);

} // namespace ranktune::trial
