// SPDX-License-Identifier: Apache-2.0
#include "slurm/topology.hpp"

#include "slurm/lists.hpp"

namespace ranktune::slurm {

std::string switches_above(const base::Variables& variables, std::string_view node) {
    const auto address = base::value_of(variables, "SLURM_TOPOLOGY_ADDR");
    const auto pattern = base::value_of(variables, "SLURM_TOPOLOGY_ADDR_PATTERN");
    if (!address || !pattern || !pattern->ends_with("switch.node")) return {};
    const std::string end = "." + std::string(node);
    if (!address->ends_with(end)) return {};
    return std::string(address->substr(0, address->size() - end.size()));
}

std::optional<std::uint32_t> cpus_on_node(const base::Variables& variables) {
    const auto counts = expand_counts(base::value_of(variables, "SLURM_CPUS_ON_NODE").value_or(""));
    if (!counts || counts->size() != 1 || !base::value_of(variables, "SLURM_JOB_ID")) return std::nullopt;
    return counts->front();
}

} // namespace ranktune::slurm
