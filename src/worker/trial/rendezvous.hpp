// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the ranks of a program's trial find each other before their programs start.

#include <cstdint>
#include <string>
#include <vector>

#include "ranktune/ddp/group.hpp"
#include "ranktune/study/command.hpp"

namespace ranktune::worker {

/// Collective. Returns the texts of all ranks, in rank order.
[[nodiscard]] std::vector<std::string> gather(ddp::Group& group, const std::string& mine);

/// Collective. Returns rank 0's text on all ranks.
[[nodiscard]] std::string share(ddp::Group& group, std::string mine);

/// Where a rank of an attempt starts to look for a port. Differs between trials, between studies on one node
/// (`directory` is the study's), and between starts of a study.
[[nodiscard]] std::uint64_t port_start(const std::string& directory, const study::StartTrial& start, std::size_t rank);
/// The first free TCP port on this node from `start` on, below the ephemeral ports; 0: none.
[[nodiscard]] std::uint16_t free_port(std::uint64_t start);

/// An address of this node that other nodes can resolve: `host` if it can be resolved here, else the host name.
[[nodiscard]] std::string reachable_address(const std::string& host);

} // namespace ranktune::worker
