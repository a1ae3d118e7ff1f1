// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which nodes of this job can take no step any more, asked of Slurm and of the nodes themselves.

#include <map>
#include <string>
#include <vector>

namespace ranktune::launch {

/// Node -> why it is gone, in words. Asks `scontrol show node` (10 s at most) for states, and connects to every node's
/// slurmd (3 s at most, all at once): the controller needs minutes to notice (SlurmdTimeout), and no step could be
/// started through a slurmd that does not answer. What cannot be found out counts as living.
[[nodiscard]] std::map<std::string, std::string> nodes_gone(const std::vector<std::string>& nodes);

/// Whether the job may start another step; yes outside Slurm.
[[nodiscard]] bool job_goes_on(const std::string& job);

} // namespace ranktune::launch
