// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which nodes of a job are gone, from what Slurm's programs and launchers print. Text in, value out.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ranktune::slurm {

/// One node as the controller sees it.
struct NodeFacts {
    std::string name;
    std::string state;      ///< as printed: "IDLE", "ALLOCATED+DRAIN", "DOWN*+CLOUD"
    std::string address;    ///< where its slurmd is reached; empty: not told
    std::uint32_t port = 0; ///< of its slurmd; 0: the cluster's common one
    friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

/// The answer of `scontrol show node --oneliner LIST`, one node per line. Lines in another form are left out.
[[nodiscard]] std::vector<NodeFacts> nodes_in(std::string_view scontrol);

/// Whether no step can be started on a node in this state: down, failing, powered down, or not responding (`*`). A node
/// that drains keeps the job it has; an unknown word is no reason to give a node up.
[[nodiscard]] bool is_gone(std::string_view state);

/// SlurmdPort in the answer of `scontrol show config`; Slurm's own default, 6818, when it is not told.
[[nodiscard]] std::uint32_t slurmd_port(std::string_view config);

/// The nodes that a line of srun says are gone, of those in `nodes`: "srun: error: Node failure on n2", "... task
/// launch for StepId=7.0 failed on node n2: ...". A killed task, or an orted that mpirun has lost, says nothing about
/// its node.
[[nodiscard]] std::vector<std::string> nodes_blamed(std::string_view line, const std::vector<std::string>& nodes);

/// Whether the job may start another step, from `scontrol show job ID --oneliner`: it runs, is not being preempted, and
/// has half a minute left. An answer that is not understood counts as yes.
[[nodiscard]] bool may_start_steps(std::string_view scontrol);

} // namespace ranktune::slurm
