// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which nodes of a job are gone, parsed from the output of Slurm's programs and launchers. Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ranktune::slurm {

/// One node as the controller sees it.
struct NodeFacts {
    std::string name;
    std::string state;      ///< as printed: "IDLE", "ALLOCATED+DRAIN", "DOWN*+CLOUD"
    std::string address;    ///< address of its slurmd; empty: unknown
    std::uint32_t port = 0; ///< of its slurmd; 0: the cluster's default
    friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

/// The answer of `scontrol show node --oneliner LIST`, one node per line. Other lines are ignored.
[[nodiscard]] std::vector<NodeFacts> nodes_in(std::string_view scontrol);

/// Whether no step can be started on a node in this state: down, failing, powered down, or not responding (`*`). A
/// draining node keeps its job; a node with an unknown state is not given up.
[[nodiscard]] bool is_gone(std::string_view state);

/// SlurmdPort in the answer of `scontrol show config`; Slurm's default, 6818, when missing.
[[nodiscard]] std::uint32_t slurmd_port(std::string_view config);

/// The nodes, among `nodes`, that a line of srun reports as gone: "srun: error: Node failure on n2", "... task launch
/// for StepId=7.0 failed on node n2: ...". A killed task, or an orted that mpirun has lost, says nothing about its
/// node.
[[nodiscard]] std::vector<std::string> nodes_blamed(std::string_view line, const std::vector<std::string>& nodes);

/// Whether this line of srun says that a task has ended badly: "srun: error: n2: tasks 3-4: Segmentation fault".
[[nodiscard]] bool is_about_a_dead_task(std::string_view line);

/// Whether the job may start another step, from `scontrol show job ID --oneliner`: it is running, not being preempted,
/// and has half a minute left. An answer that is not understood counts as yes.
[[nodiscard]] bool may_start_steps(std::string_view scontrol);

} // namespace ranktune::slurm
