// SPDX-License-Identifier: Apache-2.0
#pragma once
// What Slurm tells its tasks about their node: where it hangs in the network, and how much of it is the job's.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ranktune/base/variables.hpp"

namespace ranktune::slurm {

/// The switches above this process's node, the outermost first: "s0.s2" for SLURM_TOPOLOGY_ADDR=s0.s2.n7 with
/// SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node. Empty: none are configured, or the variables speak of another node
/// than `node` (a launcher passed on those of its own).
[[nodiscard]] std::string switches_above(const base::Variables& variables, std::string_view node);

/// Processors of this node that the job was granted. Nothing: not told, or not in a job.
[[nodiscard]] std::optional<std::uint32_t> cpus_on_node(const base::Variables& variables);

} // namespace ranktune::slurm
