// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which nodes of this job can run no more steps, according to Slurm and the nodes themselves.

#include <map>
#include <string>
#include <vector>

namespace ranktune::launch {

/// Node -> why it is gone. Asks `scontrol show node` (10 s at most) for states, and connects to every node's slurmd (3
/// s at most, in parallel): the controller needs minutes to notice a dead one (SlurmdTimeout), and no step can start
/// without it. Unknown nodes count as living.
[[nodiscard]] std::map<std::string, std::string> nodes_gone(const std::vector<std::string>& nodes);

/// Whether the job may start another step; yes outside Slurm.
[[nodiscard]] bool job_goes_on(const std::string& job);

} // namespace ranktune::launch
